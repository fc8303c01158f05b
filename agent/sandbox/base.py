"""How a command is confined: what of the machine it may see and change, and what is started to hold it to that."""

import marshal
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.shell import Level

_GATE = Path(__file__).with_name("gate.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of one command with everything that it starts. Sizes are in bytes."""

    # How many processes may run at once.
    processes: int
    # Memory of all processes together.
    memory: int
    # The size to which a file may grow.
    file: int
    # By how much the free space on the disk of its folder may shrink meanwhile.
    disk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A process to start."""

    # The absolute path of a program, and its arguments.
    argv: tuple[str, ...]
    # All variables of the process.
    environment: Mapping[str, str]
    # None for a command that a person allowed on this machine itself.
    bounds: Bounds | None = None
    # What the process can read from descriptors 3, 4 and so on: what nobody is to see in the list of processes.
    passed: tuple[bytes, ...] = ()
    # A folder made for the process, to be deleted after its end.
    temporary: Path | None = None
    # Whether all of it ends as soon as the process that started it is gone, even by a crash.
    leashed: bool = False
    # The room that a sandbox lets it write in; None: none, or no sandbox holds it.
    room: Path | None = None

    def plan(self) -> bytes:
        """Return the line that tells a gate what to start. A second, empty line opens the gate."""
        told = {
            "argv": [*map(str, self.argv)],  # strings as such: marshal takes no others
            "environment": {str(name): str(value) for name, value in self.environment.items()},
            "bounds": asdict(self.bounds) if self.bounds else None,
            "passed": [*self.passed],
            "leashed": self.leashed,
        }
        return marshal.dumps(told).hex().encode() + b"\n"


def start_gate(
    plan: socket.socket, given: int, output: int, folder: Path | int, errors: int = subprocess.STDOUT
) -> "subprocess.Popen[bytes]":
    """Start a gate in a folder. Raises OSError.

    plan: the gate's end of a socket, which its plan is sent to. given: the descriptor of the command's input. output:
    the descriptor that the command writes to, or `subprocess.PIPE`. folder: where it is opened already, its descriptor,
    so that no name decides once more. errors: the descriptor for the command's errors, if another.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if isinstance(folder, Path) else folder
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GATE), str(given), str(opened)],
            stdin=plan.fileno(),
            pass_fds=(given, opened),
            stdout=output,
            stderr=errors,
            env={},  # the gate runs outside of any sandbox, so variables of a call must not influence it
            start_new_session=True,
        )
    finally:
        if opened is not folder:
            os.close(opened)


# Bounds of each command, and of its temporary folder, which may lie in memory.
BOUNDS = Bounds(processes=256, memory=2 * 1024**3, file=256 * 1024**2, disk=1024**3)
TEMPORARY_BYTES = 128 * 1024**2

# What people are told where the sandbox holds commands at the level "look" alone.
ONLY_LOOKS = (
    "It holds only commands that look. Commands that write or use the network now run on the host, and a person is "
    "asked about them: install bubblewrap (`apt install bubblewrap`), or add rules to tools.exec.allowlist."
)

# Programs, their libraries and settings, which every command may read. Of /etc only these files, because others hold
# passwords and keys.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SETTINGS = (
    "alternatives ca-certificates crypto-policies debian_version ethers fonts group hosts inputrc ld.so.cache "
    "ld.so.conf ld.so.conf.d locale.alias locale.conf localtime magic mime.types nsswitch.conf os-release passwd "
    "pki/tls/certs pki/ca-trust protocols resolv.conf rpc services shells ssl/certs ssl/openssl.cnf terminfo timezone"
)
# Folders of a room that only the service changes, besides instruction files.
KEPT_FOLDERS = ("tool-results", "media")
# The folder of notes that later prompts read, which only tools for files change.
_MEMORY = "memory"
# Folders that may hold rooms of others, which a command could replace by links.
ROOMS = ("people", "groups")
# Files and folders of a repository that control git. Commands must not change them, so that git outside of the sandbox
# runs nothing that a command put there.
_LEADS_GIT = ("config", "config.worktree", "modules", "worktrees", "commondir")
_LEADS_GIT_FOLDERS = ("hooks", "info")
# Those files that are made where they are missing. `commondir` names the folder of the others: this one.
_MADE = {"commondir": b".\n", "config.worktree": b""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What of a room a command may read but not change."""

    # Files and folders.
    files: tuple[Path, ...] = ()
    # Folders named `.git`.
    repositories: tuple[Path, ...] = ()
    # The files and folders in repositories that control git.
    leading: tuple[Path, ...] = ()
    # The folders between the room and what is kept there, the outer ones first.
    above: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one command sees of the machine."""

    level: Level
    # The one folder of the workspace that it sees; it may write there at a level above "look".
    room: Path
    # The folder in the room where it starts.
    folder: Path
    environment: Mapping[str, str]
    # An empty folder of its own, which is deleted after its end. bubblewrap does not use it.
    temporary: Path
    # Empty at the level "look", at which nothing can be changed anyway.
    kept: Kept = Kept()
    # Files and folders that it does not see, wherever they lie.
    hidden: tuple[Path, ...] = ()
    # Further files and folders that it can read and run, such as a program that is not installed for the whole system.
    shown: tuple[Path, ...] = ()


class Sandbox(Protocol):
    """A sandbox of an operating system."""

    @property
    def name(self) -> str:
        """The name as in the configuration."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels at which it holds commands."""

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        """Return the process that runs `argv` with this view. Raises OSError with a sentence."""


def readable() -> tuple[str, ...]:
    """Return the folders and files of the system that exist and that every command may read."""
    python = sys.base_prefix
    own = () if python.startswith("/usr") else (python,)
    every = (*SYSTEM, *(f"/etc/{name}" for name in SETTINGS.split()), *own)
    return tuple(path for path in every if os.path.exists(path))


def inside(environment: Mapping[str, str], temporary: str) -> dict[str, str]:
    """Return the variables of a command in a sandbox.

    Its home is its temporary folder, and PATH has only folders that it can read, always including Python.
    """
    places = [*environment.get("PATH", "").split(os.pathsep), f"{sys.base_prefix}/bin"]
    seen = readable()
    path = os.pathsep.join(place for place in places if any(Path(place).is_relative_to(folder) for folder in seen))
    own = dict.fromkeys(("HOME", "TMPDIR", "TMP", "TEMP"), temporary)
    return {**environment, "PATH": path, **own, "GIT_CONFIG_NOSYSTEM": "1"}  # the system's settings are not to be read


def kept_of(room: Path, names: Sequence[str]) -> Kept:
    """Return what of a room a command may not change while it can write there.

    Missing files and folders are made empty, so that no command can make them. names: of files directly in the room.
    Blocking, because it walks through all folders. Raises OSError with a sentence.
    """
    files = list[Path]()
    for name in names:
        path = room / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(f"{name} in the workspace is a link or no file, so that it cannot be kept; replace it")
        if not path.exists():
            _make(path)
        files.append(path)
    for name in (*KEPT_FOLDERS, _MEMORY):
        if (room / name).is_symlink():
            raise OSError(f"{name} in the workspace is a link, so that it cannot be kept; replace it")
        (room / name).mkdir(mode=0o700, exist_ok=True)
        files.append(room / name)
    files += (others := _rooms_in(room))
    own, repositories, leading, led = len(files), list[Path](), list[Path](), set[Path]()
    for folder, folders, names, descriptor in _walk(room):
        folders[:] = [name for name in folders if Path(folder, name) not in others]  # which no command sees
        shut = [name for name in folders if not _can_look(name, descriptor)]
        folders[:] = [name for name in folders if name not in shut]
        files += (Path(folder, name) for name in shut)  # as a whole, since a command could open them
        path = Path(folder, ".git")
        if path.is_symlink():  # what a link names may lie outside; it is not followed, and not kept either
            folders[:] = [name for name in folders if name != ".git"]
        elif ".git" in names:  # of a worktree or a submodule: it says where the repository is
            files.append(path)
            led.update(_led_to(path, room))
        elif ".git" in folders:
            folders.remove(".git")
            repositories.append(path)
            leading += _leading(path, descriptor)
    for path in sorted(led):
        with suppress(OSError), _opened(room, path.parent) as above_it:
            leading += _leading(path, above_it, ("HEAD", "objects", "refs"))
            repositories.append(path)
    deep = (*repositories, *files[own:])
    above = {parent for one in deep for parent in one.parents if parent.is_relative_to(room) and parent != room}
    return Kept(
        files=tuple(files), repositories=tuple(repositories), leading=tuple(leading), above=tuple(sorted(above))
    )


def _walk(room: Path) -> Iterator[tuple[str, list[str], list[str], int]]:
    """Walk through the folders of a room as `os.fwalk` does.

    Raises OSError with a sentence where they lie too deep, or where one was shut meanwhile.
    """

    def missed(error: OSError) -> None:
        if isinstance(error, PermissionError):
            raise error

    try:
        yield from os.fwalk(room, onerror=missed)
    except RecursionError:
        raise OSError("folders in the workspace lie too deep in each other; delete those that nobody needs") from None


def _led_to(file: Path, room: Path) -> Iterator[Path]:
    """Yield the repository to which a file named `.git` leads, where it lies in the room under another name."""
    with suppress(OSError, ValueError):
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as content:
            words = os.fsdecode(content.read(4096).partition(b"gitdir:")[2].strip())
        found = Path(os.path.realpath(file.parent / words))
        found = found.parents[1] if found.parent.name == "worktrees" else found
        if found != room and ".git" not in found.relative_to(room).parts:
            yield found


@contextmanager
def _opened(room: Path, folder: Path) -> Iterator[int]:
    """Open a folder of a room without following a link that a command could have put there."""
    opened = os.open(room, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folder.relative_to(room).parts:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = below
        yield opened
    finally:
        os.close(opened)


def _can_look(name: str, above: int) -> bool:
    """Return whether a folder, or what a link is in its place, can be looked into."""
    return os.access(name, os.R_OK | os.X_OK, dir_fd=above, follow_symlinks=False)


def repositories(room: Path) -> dict[Path, tuple[object, ...]]:
    """Return everything named `.git` in a room, whatever it is, with what changes where others than commands lead it.

    A folder that cannot be looked into counts as if it held one. Blocking, because it walks through all folders.
    """
    others, found, left = _rooms_in(room), dict[Path, tuple[object, ...]](), [room]
    while left:  # however deep folders lie
        folder = left.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    path = Path(entry.path)
                    if entry.name == ".git":
                        found[path] = _leads(path)
                    elif entry.is_dir(follow_symlinks=False) and path not in others:
                        left.append(path)
        except PermissionError:
            found[folder / ".git"] = ()
        except OSError:
            continue
    return found


def _leads(repository: Path) -> tuple[object, ...]:
    """Return which file the configuration is, and which folders with configurations there are.

    git replaces its configuration where somebody changes it. What kept it from commands that run is gone then.
    """
    config: tuple[int, ...] = ()
    with suppress(OSError):
        status = os.stat(repository / "config", follow_symlinks=False)
        config = status.st_ino, status.st_ctime_ns
    return (*config, *(os.path.lexists(repository / name) for name in ("modules", "worktrees")))


def _rooms_in(room: Path) -> list[Path]:
    """Return the folders of a workspace that hold the rooms of others; a room itself has none."""
    if room.parent.name in ROOMS:
        return []
    return [path for name in ROOMS if (path := room / name).is_dir() and not path.is_symlink()]


def _leading(repository: Path, above: int, signs: Collection[str] = ()) -> list[Path]:
    """Return what controls git in a repository, except links, after making what is missing.

    above: the open descriptor of the folder that holds the repository. signs: names without which it is no repository.
    Raises OSError.
    """
    opened = os.open(repository.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        if not {*signs}.issubset(os.listdir(opened)):
            raise NotADirectoryError(repository)
        for name in _LEADS_GIT_FOLDERS:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=opened)
        for name, content in _MADE.items():
            with suppress(FileExistsError):
                _make(Path(name), content, within=opened)
        there = set(os.listdir(opened))
    finally:
        os.close(opened)
    every = [repository / name for name in (*_LEADS_GIT, *_LEADS_GIT_FOLDERS) if name in there]
    return [path for path in every if not path.is_symlink()]


def _make(path: Path, content: bytes = b"", within: int | None = None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600, dir_fd=within), "wb") as file:
        file.write(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How the service confines commands."""

    # The sandbox that was proved; None: commands run on this machine itself.
    sandbox: Sandbox | None
    # Why this one, for people.
    why: str
    # Files and folders that no command may see, wherever they lie.
    hidden: tuple[Path, ...] = ()
    # Names of files of a room that no command may change.
    kept: tuple[str, ...] = ()
    # A folder, made when it is needed, in which each command gets a folder of its own.
    temporary: Path = Path(tempfile.gettempdir())

    @property
    def name(self) -> str:
        """The name of the sandbox as in the configuration."""
        return self.sandbox.name if self.sandbox else "none"

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels at which commands are held; those of the others run on this machine itself."""
        return self.sandbox.levels if self.sandbox else ()

    @property
    def shown(self) -> str:
        """The name of the sandbox and the reason for it, for people."""
        return f"{self.name}: {self.why}{f'. {ONLY_LOOKS}' if self.levels == ('look',) else ''}"

    def launch(
        self, level: Level, room: Path, folder: Path, environment: Mapping[str, str], argv: tuple[str, ...]
    ) -> Launch:
        """Return the process that runs `argv` at a level, in a folder of a room.

        Blocking. Raises OSError with a sentence.
        """
        if self.sandbox is None or level == "host":
            return Launch(argv=argv, environment=environment)
        if level not in self.levels:
            raise OSError(f"{self.name} holds no command that needs {level}")
        kept = Kept() if level == "look" else kept_of(room, self.kept)
        self.temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(dir=self.temporary))
        view = View(
            level=level,
            room=room,
            folder=folder,
            environment=environment,
            temporary=own,
            kept=kept,
            hidden=(*self.hidden, *_rooms_in(room)),
        )
        return replace(self.sandbox.launch(view, argv), temporary=own, room=None if level == "look" else room)
