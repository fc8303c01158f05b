"""The workspace: the one folder whose files the agent may open, and a way of opening them that no path escapes.

Every path is walked from the root by directory descriptors, one component at a time, and **no symbolic link is ever
followed**, wherever it points: so what was checked is what is opened, whoever renames things in between. Only regular
files and directories are opened. A write is whole or has not happened, also when its caller is cancelled.
Called by the file tools, by `exec` for its folder, and by `agent/workspace_files`.
"""

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Literal

from agent.errors import ToolError

WriteMode = Literal["create", "overwrite", "append"]

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Larger files are neither read nor written."""

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _FLAGS
_TEMPORARY = ".hark-write.tmp"  # one per folder, under _writing: the next write there sweeps up what a crash left
_writing = threading.Lock()


class WorkspaceError(ToolError):
    """The path cannot be used; the text says why, in words meant for the model, without the host's own paths."""


class IsFolder(WorkspaceError):
    """A file was asked for, and the path is a folder."""


class NotThere(WorkspaceError):
    """There is nothing at the path."""


class _Withdrawn(Exception):
    """The caller was cancelled before the write took effect."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in a folder. size: bytes, of files only."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did. size: bytes of the whole file after it."""

    path: str
    created: bool
    size: int


class _Permit:
    """Lets a thread take its last step, unless the one who waits for it has gone: decided once, never in between."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._withdrawn = False

    def withdraw(self) -> None:
        with self._lock:
            self._withdrawn = True

    @contextmanager
    def last_step(self) -> Iterator[None]:
        with self._lock:
            if self._withdrawn:
                raise _Withdrawn
            yield


class Workspace:
    """Files beneath `root`. Methods block and belong in a thread, save `write`, which goes to one by itself.

    All raise WorkspaceError. A hard link is a regular file to every program and is taken as one.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._names = {self.root, Path(os.path.abspath(root))}

    def relative(self, path: str) -> tuple[str, ...]:
        """The components of `path` below the root; () is the root. Absolute paths inside are accepted.

        `..` is taken lexically, which is exact because no link is followed.
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

    @contextmanager
    def open(self, path: str) -> Iterator[BufferedReader]:
        """A regular file, for reading bytes. IsFolder when it is a folder."""
        parts = self.relative(path)
        if not parts:
            raise _no_file(stat.S_IFDIR, _shown(path))
        with self._folder(parts[:-1]) as folder:
            fd = _open_file(folder, parts[-1], "/".join(parts))
        with os.fdopen(fd, "rb") as file, _plain_errors("/".join(parts)):
            yield file

    def items(self, path: str) -> list[Item]:
        """What is in a folder, sorted by name."""
        with self._folder(self.relative(path)) as folder, os.scandir(folder) as entries:
            return sorted((_item(entry) for entry in entries), key=lambda item: item.name)

    def folder(self, path: str) -> Path:
        """The absolute path of an existing folder, for a process to start in."""
        parts = self.relative(path)
        with self._folder(parts):
            return self.root.joinpath(*parts)

    async def write(self, path: str, content: bytes, mode: WriteMode) -> Written:
        """Write a whole file, in a thread. create: it must not be there; append: it is made when missing.

        Makes missing folders (0700); a new file is 0600, an existing one keeps its mode. Once this has been
        cancelled, the file is either written or never will be.
        """
        permit = _Permit()
        try:
            return await asyncio.to_thread(self.write_now, path, content, mode, permit)
        except asyncio.CancelledError:
            permit.withdraw()
            raise

    def write_now(self, path: str, content: bytes, mode: WriteMode, permit: _Permit | None = None) -> Written:
        """As `write`, blocking. permit: asked for before the last step."""
        parts = self.relative(path)
        shown = "/".join(parts)
        if not parts or path.endswith("/"):
            raise _no_file(stat.S_IFDIR, _shown(path))
        with _writing, _plain_errors(shown), self._folder(parts[:-1], create=True) as folder:
            old = _mode_of(folder, parts[-1], shown)
            if old is not None and mode == "create":
                raise WorkspaceError(f"{shown}: exists already. Use mode overwrite or append to change it.")
            if old is not None and mode == "append":
                with os.fdopen(_open_file(folder, parts[-1], shown), "rb") as file:
                    content = file.read(MAX_FILE_BYTES) + content
            if len(content) > MAX_FILE_BYTES:
                raise WorkspaceError(f"{shown}: would be {len(content):,} bytes; {MAX_FILE_BYTES:,} are allowed.")
            _replace(folder, parts[-1], content, 0o600 if old is None else old, permit or _Permit())
        return Written(shown, created=old is None, size=len(content))

    @contextmanager
    def _folder(self, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
        """A descriptor of the folder at `parts`, reached without following any link."""
        with _plain_errors("the workspace folder"):
            fd = os.open(self.root, _FOLDER)
        try:
            for count, part in enumerate(parts, 1):
                below = _open_folder(fd, part, "/".join(parts[:count]), create)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)


def _shown(path: str) -> str:
    """The path as it may appear in an error: one line, not endless."""
    return repr(path if len(path) <= 200 else path[:200] + "…")


@contextmanager
def _plain_errors(shown: str) -> Iterator[None]:
    """Turn what the system refuses into a WorkspaceError, without the host's paths."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "input/output error"
        raise WorkspaceError(f"{shown}: {reason}.") from error


def _refusal(folder: int, name: str, shown: str, error: OSError) -> WorkspaceError:
    """Why `name` could not be opened, in plain words."""
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
    """Why something that is no regular file cannot be used as one."""
    if stat.S_ISDIR(mode):
        return IsFolder(f"{shown}: is a folder; name a file.")
    if stat.S_ISLNK(mode):
        return WorkspaceError(f"{shown}: is a symbolic link; links are not followed here.")
    return WorkspaceError(f"{shown}: is not a regular file (a device, pipe or socket).")


def _open_folder(parent: int, name: str, shown: str, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        raise _refusal(parent, name, shown, error) from error


def _open_file(folder: int, name: str, shown: str) -> int:
    """A descriptor of a regular file. O_NONBLOCK: a pipe that waits for its writer does not hold us up."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=folder)
    except OSError as error:
        raise _refusal(folder, name, shown, error) from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES:
        return fd
    os.close(fd)
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(status.st_mode, shown)
    raise WorkspaceError(f"{shown}: has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} can be opened.")


def _mode_of(folder: int, name: str, shown: str) -> int | None:
    """Permission bits of the regular file `name`; None when there is nothing. Anything else is refused."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise _no_file(mode, shown)
    return mode & 0o777


def _replace(folder: int, name: str, content: bytes, mode: int, permit: _Permit) -> None:
    """Put a whole file in place of `name`: temporary file, fsync, rename. A link put there meanwhile is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(_TEMPORARY, dir_fd=folder)
    fd = os.open(_TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        with permit.last_step():
            os.rename(_TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(_TEMPORARY, dir_fd=folder)
        raise
    with suppress(OSError):  # some file systems cannot; the file is in place
        os.fsync(folder)


def _item(entry: os.DirEntry[str]) -> Item:
    name = "".join(c if c.isprintable() else "�" for c in os.fsencode(entry.name).decode(errors="replace"))
    with suppress(OSError):
        if entry.is_symlink():
            return Item(name, "link")
        if entry.is_dir(follow_symlinks=False):
            return Item(name, "folder")
        if entry.is_file(follow_symlinks=False):
            return Item(name, "file", entry.stat(follow_symlinks=False).st_size)
    return Item(name, "other")
