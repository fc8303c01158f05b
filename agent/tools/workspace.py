"""The workspace: the one folder whose files the agent may open, and safe ways to open them.

Every path is walked from the root by directory descriptors, one component at a time, and **no symbolic link is ever
followed**, wherever it points. So the file that was checked is the file that is opened, even if somebody renames things
in between. Only regular files and directories are opened. A write happens as a whole or not at all, also when its
caller is cancelled; of a file that is kept from a command that runs, see `_replace`.
"""

import asyncio
import errno
import os
import stat
import threading
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Literal

from agent.errors import ToolError
from agent.file_names import KEPT
from agent.sandbox.writing import STEP, is_written

WriteMode = Literal["create", "overwrite", "append", "change"]
# Returns what is written, given the old content of a file, None where there is none, and the new one. If it raises
# ToolError the file stays as it is.
Change = Callable[[bytes | None, bytes], bytes]

# Larger files are neither read nor written.
MAX_FILE_BYTES = 32 * 1024 * 1024

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _FLAGS
_TEMPORARY = ".hark-write.tmp"  # one per folder, under _writing; the next write removes what a crash left
_MAX_DEPTH = 64  # of a walk, which holds a descriptor for each folder of the path
_writing = threading.Lock()


class WorkspaceError(ToolError):
    """The path cannot be used; the text tells the model why, without paths of the host."""


class IsFolder(WorkspaceError):
    """A file was asked for, and the path is a folder."""


class NotThere(WorkspaceError):
    """There is nothing at the path."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did."""

    path: str
    created: bool
    # Of the whole file, in bytes.
    size: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that `walk` has reached."""

    # The path below the root.
    parts: tuple[str, ...]
    # The open descriptor.
    fd: int
    # Sorted names, without links and devices.
    folders: list[str]
    files: list[str]

    def open(self, name: str) -> BufferedReader:
        """Open a file of the folder for reading bytes. Raises WorkspaceError."""
        return os.fdopen(_open_file(self.fd, name, "/".join((*self.parts, name))), "rb")


class Workspace:
    """Files below `root`. All methods raise WorkspaceError, and all but `write` block, so they belong in a thread.

    A hard link counts as a regular file, as it does for every program.
    """

    def __init__(self, base: Path, room: tuple[str, ...] = ()) -> None:
        """base: a folder that the operator chose, which may be reached by a link. room: the path from there to the
        root, on which no link is followed."""
        self._base = base.resolve()
        self._room = room
        self.root = self._base.joinpath(*room)
        self._names = {self.root, Path(os.path.abspath(base)).joinpath(*room)}

    def relative(self, path: str) -> tuple[str, ...]:
        """Return the components of `path` below the root; () is the root. Absolute paths inside it are accepted.

        `..` is resolved lexically, which is exact because no link is followed.
        """
        shown = _shown(path)
        if "\x00" in path:
            raise WorkspaceError(f"{shown}: a path holds no NUL character.")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise WorkspaceError(f"{shown}: a path is valid Unicode text.") from None
        if path == "~" or path.startswith("~/"):
            raise WorkspaceError(f"{shown}: outside the workspace. Use a path relative to the workspace.")
        normal = Path(os.path.normpath(path))
        if not normal.is_absolute() and normal.parts[:1] != ("..",):
            return normal.parts
        for root in self._names:
            if normal.is_relative_to(root):
                return normal.relative_to(root).parts
        raise WorkspaceError(f"{shown}: outside the workspace. Only files inside it can be used.")

    def whole(self, parts: Sequence[str]) -> str:
        """Return a path below the workspace itself, for components of a path below the root."""
        return "/".join((*self._room, *parts))

    @contextmanager
    def open(self, path: str) -> Iterator[BufferedReader]:
        """Open a regular file for reading bytes. Raises IsFolder when the path is a folder."""
        parts = self.relative(path)
        if not parts:
            raise _no_file(stat.S_IFDIR, _shown(path))
        with self.descend(parts[:-1]) as folder:
            fd = _open_file(folder, parts[-1], "/".join(parts))
        with os.fdopen(fd, "rb") as file, _plain_errors("/".join(parts)):
            yield file

    def listing(self, path: str) -> list[str]:
        """Return a sorted line for each entry of a folder; names of folders end with a slash."""
        with self.descend(self.relative(path)) as folder, os.scandir(folder) as entries:
            return sorted(map(_listed, entries))

    def walk(self) -> Generator[Folder, None, None]:
        """Yield each folder in the order of paths, the root first. Names removed from `folders` are not entered."""
        with self.descend(()) as fd:
            yield from _walk(fd, ())

    def folder(self, path: str) -> Path:
        """Return the absolute path of an existing folder, for a process to start in."""
        parts = self.relative(path)
        with self.descend(parts):
            return self.root.joinpath(*parts)

    def opened(self, path: str) -> int:
        """Return a descriptor of an existing folder, which no name decides about any more; the caller closes it."""
        with self.descend(self.relative(path)) as folder:
            return os.dup(folder)

    @contextmanager
    def descend(self, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
        """Open the folder at `parts` without following any link. create: make missing folders (0700)."""
        with _plain_errors("the workspace folder"):
            fd = os.open(self._base, _FOLDER)
        try:
            for count, part in enumerate((*self._room, *parts), 1 - len(self._room)):
                shown = "/".join(parts[:count]) if count > 0 else "the folder of this conversation"
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=fd)
                below = _open(fd, part, shown, _FOLDER)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    def extend(self, path: str, data: bytes) -> None:
        """Append to a file, which is made when missing (0600). After a crash a part of the data may be missing."""
        *above, name = self.relative(path)
        with _plain_errors(path), self.descend(tuple(above), create=True) as folder:
            fd = _open_file(folder, name, path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(fd, "ab") as file:
                file.write(data)

    async def write(self, path: str, content: bytes, mode: WriteMode, change: Change | None = None) -> Written:
        """Write a whole file, in a thread.

        mode: "create" needs a file that does not exist, "change" one that does; "append" makes a missing file. change:
        makes what is written from the old content, None where there is none, and the new one. Missing folders are made
        (0700); a new file has 0600, an existing one keeps its mode. When this is cancelled, the file is either written
        already or never will be.
        """
        withdrawn = threading.Event()
        try:
            return await asyncio.to_thread(self.write_now, path, content, mode, change, withdrawn)
        except asyncio.CancelledError:
            with STEP:
                withdrawn.set()
            raise

    def write_now(
        self,
        path: str,
        content: bytes,
        mode: WriteMode,
        change: Change | None = None,
        withdrawn: threading.Event | None = None,
    ) -> Written:
        """Do what `write` does, blocking. withdrawn: set when the caller does not want the write any more."""
        parts = self.relative(path)
        shown = "/".join(parts)
        if not parts or path.endswith("/"):
            raise _no_file(stat.S_IFDIR, _shown(path))
        if any(map(is_git, parts)):
            raise WorkspaceError(f"{shown}: nothing is written in .git, since git runs programs that its files name.")
        with _writing, _plain_errors(shown), self.descend(parts[:-1], create=mode != "change") as folder:
            old = _mode_of(folder, parts[-1], shown)
            if old is None and mode == "change":
                raise NotThere(f"{shown}: no such file in the workspace. Make it with write.")
            if old is not None and mode == "create":
                raise WorkspaceError(f"{shown}: exists already. Use mode overwrite or append to change it.")
            before = None
            if old is not None and (mode == "append" or change is not None):
                with os.fdopen(_open_file(folder, parts[-1], shown), "rb") as file:
                    before = file.read(MAX_FILE_BYTES)
            if mode == "append":
                content = (before or b"") + content
            if change is not None:
                content = change(before, content)
            if len(content) > MAX_FILE_BYTES:
                raise WorkspaceError(f"{shown}: would be {len(content):,} bytes; {MAX_FILE_BYTES:,} are allowed.")
            _replace(folder, parts[-1], content, 0o600 if old is None else old, withdrawn)
        return Written(shown, created=old is None, size=len(content))


def is_git(name: str) -> bool:
    """Whether some file system takes it for `.git`, despite case, final dots and spaces, or invisible characters."""
    visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return visible.casefold().rstrip(". ") in (".git", "git~1")


def printable(name: str) -> str:
    """Return a name as valid text without line breaks."""
    return "".join(c if c.isprintable() else "�" for c in os.fsencode(name).decode(errors="replace"))


def _walk(fd: int, parts: tuple[str, ...]) -> Generator[Folder, None, None]:
    found = Folder(parts, fd, [], [])
    with suppress(OSError), os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found.folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                found.files.append(entry.name)
    found.folders.sort()
    found.files.sort()
    yield found
    for name in found.folders if len(parts) < _MAX_DEPTH else ():
        with suppress(OSError):
            below = os.open(name, _FOLDER, dir_fd=fd)
            try:
                yield from _walk(below, (*parts, name))
            finally:
                os.close(below)


def _shown(path: str) -> str:
    """Return a path for an error: on one line, shortened."""
    return repr(path if len(path) <= 200 else path[:200] + "…")


@contextmanager
def _plain_errors(shown: str) -> Iterator[None]:
    """Turn an OSError into a WorkspaceError, without paths of the host."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "input/output error"
        raise WorkspaceError(f"{shown}: {reason}.") from error


def _refusal(folder: int, name: str, shown: str, error: OSError) -> WorkspaceError:
    """Return the error that says why `name` could not be opened."""
    with suppress(OSError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if error.errno == errno.ENOTDIR and not stat.S_ISLNK(mode):
            return WorkspaceError(f"{shown}: is not a folder.")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return _no_file(mode, shown)
    if error.errno == errno.ENOENT:
        return NotThere(f"{shown}: no such file or folder in the workspace.")
    return WorkspaceError(f"{shown}: {os.strerror(error.errno or errno.EIO)}.")


def _no_file(mode: int, shown: str) -> WorkspaceError:
    """Return the error for something that is no regular file."""
    if stat.S_ISDIR(mode):
        return IsFolder(f"{shown}: is a folder; name a file.")
    if stat.S_ISLNK(mode):
        return WorkspaceError(f"{shown}: is a symbolic link; links are not followed here.")
    return WorkspaceError(f"{shown}: is not a regular file (a device, pipe or socket).")


def _open(folder: int, name: str, shown: str, flags: int) -> int:
    try:
        return os.open(name, flags, 0o600, dir_fd=folder)
    except OSError as error:
        raise _refusal(folder, name, shown, error) from error


def _open_file(folder: int, name: str, shown: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file; returns its descriptor. O_NONBLOCK: opening a pipe does not wait for its writer."""
    fd = _open(folder, name, shown, flags | os.O_NONBLOCK | _FLAGS)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES:
        return fd
    os.close(fd)
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(status.st_mode, shown)
    raise WorkspaceError(f"{shown}: has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} can be opened.")


def _mode_of(folder: int, name: str, shown: str) -> int | None:
    """Return the permission bits of a regular file; None when it does not exist. Raises WorkspaceError for others."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise _no_file(mode, shown)
    return mode & 0o777


def _replace(folder: int, name: str, content: bytes, mode: int, withdrawn: threading.Event | None) -> None:
    """Replace a file as a whole: temporary file, fsync, rename. A link that was put there meanwhile is replaced.

    While a command may write in the folder, a file that is kept from it is changed in place, see `writing`: then a
    crash in the middle leaves a part of the new content.
    """
    with suppress(FileNotFoundError):
        os.unlink(_TEMPORARY, dir_fd=folder)
    fd = os.open(_TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        with STEP:
            if withdrawn and withdrawn.is_set():
                raise WorkspaceError(f"{name}: whoever asked for it has gone.")
            if name in KEPT and is_written(folder) and _mode_of(folder, name, name) is not None:
                _refill(folder, name, content)
                os.unlink(_TEMPORARY, dir_fd=folder)
            else:
                os.rename(_TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(_TEMPORARY, dir_fd=folder)
        raise
    with suppress(OSError):  # some file systems cannot; the file is in place
        os.fsync(folder)


def _refill(folder: int, name: str, content: bytes) -> None:
    """Write a file in place."""
    with os.fdopen(_open_file(folder, name, name, os.O_RDWR), "r+b") as file:
        file.write(content)
        file.truncate()
        os.fsync(file.fileno())


def _listed(entry: os.DirEntry[str]) -> str:
    name = printable(entry.name)
    with suppress(OSError):
        if entry.is_symlink():
            return f"{name} (symbolic link, not followed)"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        if entry.is_file(follow_symlinks=False):
            return f"{name} ({entry.stat(follow_symlinks=False).st_size:,} bytes)"
    return f"{name} (not a regular file)"
