"""What of a room commands may not change: its instruction files and notes, and what leads git in its repositories."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

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


NOTHING_KEPT = Kept()


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
    files += (others := rooms_in(room))
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
    others, found, left = rooms_in(room), dict[Path, tuple[object, ...]](), [room]
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


def rooms_in(room: Path) -> list[Path]:
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
