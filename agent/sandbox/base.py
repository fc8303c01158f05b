"""How a command is confined: what of the machine it may see and change, and what is started to hold it to that."""

import marshal
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.sandbox.kept import NOTHING_KEPT, Kept, kept_of, rooms_in
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

    def plan(self, group: Mapping[str, list[str]] | None = None) -> bytes:
        """Return the line that tells a gate what to start. A second, empty line opens the gate.

        group: the control group in which the command runs, see `cgroup.Group.plan`; None: in that of the service.
        """
        told = {
            "argv": [*map(str, self.argv)],  # strings as such: marshal takes no others
            "environment": {str(name): str(value) for name, value in self.environment.items()},
            "bounds": asdict(self.bounds) if self.bounds else None,
            "passed": [*self.passed],
            "leashed": self.leashed,
            "group": dict(group) if group else None,
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
    kept: Kept = NOTHING_KEPT
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
        kept = NOTHING_KEPT if level == "look" else kept_of(room, self.kept)
        self.temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(dir=self.temporary))
        view = View(
            level=level,
            room=room,
            folder=folder,
            environment=environment,
            temporary=own,
            kept=kept,
            hidden=(*self.hidden, *rooms_in(room)),
        )
        return replace(self.sandbox.launch(view, argv), temporary=own, room=None if level == "look" else room)
