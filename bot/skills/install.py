"""Installs a skill from a folder or an archive: copied aside, looked through, shown, and only then put in its place.

What was looked at is what is installed. Nothing of it is run, no path of an archive leaves the folder, and links are
refused. What a crash has left aside goes with an install a day later or more.
"""

import asyncio
import gzip
import io
import os
import secrets
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.removal import remove
from agent.skills.folder import (
    BYTES,
    DEPTH,
    FILES,
    LEFT_OUT,
    Files,
    SkillFile,
    bounded,
    digest,
    findings,
    manifest_of,
    read,
)
from agent.skills.manifest import FILE, SkillError
from agent.tools.workspace import Workspace, WorkspaceError

# Called with the name of a skill and the folder that it was copied to; returns why it may not be installed, or nothing.
Guard = Callable[[str, str], Awaitable[str]]
# Asks whether a skill is installed, by its name, description and what was found in it.
Confirm = Callable[[str, str, Sequence[str]], bool]
# Copies aside have names of their own, since others may be installing the same; seconds after which nobody does.
_ASIDE, _OLD = ".installing-", 86_400
_BROKEN = (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, RuntimeError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Installed:
    """A skill that was put in its place."""

    name: str
    digest: str


async def allow(name: str, folder: str) -> str:
    """Allow every skill."""
    return ""


async def install(source: Path, root: Path, confirm: Confirm, guard: Guard = allow) -> Installed | None:
    """Install a skill from a folder, a .zip or a .tar.gz. Returns None if it is not confirmed. Raises SkillError.

    root: the folder of skills. guard: may refuse it; an error of the guard refuses it as well.
    """
    files = await asyncio.to_thread(_files, source)
    manifest = manifest_of(files)
    place = root / manifest.name
    _vacant(place)
    aside = root / f"{_ASIDE}{manifest.name}-{secrets.token_hex(4)}"
    try:
        await asyncio.to_thread(_write, aside, files)
        try:
            refusal = await guard(manifest.name, str(aside))
        except Exception as error:
            refusal = f"what guards installs has failed ({type(error).__name__}: {error})"
        if refusal:
            raise SkillError(refusal)
        if not confirm(manifest.name, manifest.line, [*findings(files, manifest)]):
            return None
        if digest(read(aside)) != digest(files):
            raise SkillError("it was changed while it was looked at")
        _vacant(place)  # others may have installed it meanwhile
        aside.rename(place)
        return Installed(manifest.name, digest(files))
    except (OSError, WorkspaceError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).removesuffix(".")
        raise SkillError(f"it cannot be copied to {root}: {why}") from error
    finally:
        remove(aside)


def _vacant(place: Path) -> None:
    if place.exists() or place.is_symlink():
        raise SkillError(f"there is a skill `{place.name}` already; remove {place} first")


def _files(source: Path) -> Files:
    """Return the files of a skill. Blocking. Raises SkillError."""
    if source.is_dir():
        return read(source.resolve(), LEFT_OUT)
    unpack = next((way for ending, way in _WAYS.items() if source.name.lower().endswith(ending)), None)
    if unpack is None or not source.is_file():
        raise SkillError(f"{source} is no folder, no .zip and no .tar.gz")
    found: dict[str, SkillFile] = {}
    try:
        if source.stat().st_size > 2 * BYTES:
            raise SkillError(f"it has more than {2 * BYTES // 1024**2} MB")
        for name, file in unpack(source):
            path = _safe(name)
            if any(part in LEFT_OUT for part in path.split("/")):
                continue
            if path.casefold() in {one.casefold() for one in found}:
                raise SkillError(f"{path!r} is in it twice")
            found[path] = file
            if len(found) > FILES or sum(len(one.content) for one in found.values()) > BYTES:
                raise SkillError(f"it has more than {FILES} files or {BYTES // 1024**2} MB")
    except _BROKEN as error:
        raise SkillError(f"{source.name} cannot be unpacked: {error}") from error
    above = {path.partition("/")[0] for path in found}
    if FILE not in found and len(above) == 1:  # all of it lies in one folder
        found = {path.partition("/")[2]: file for path, file in found.items()}
    bounded(found)
    return found


def _safe(name: str) -> str:
    """Return the path of a file of an archive. Raises SkillError if it leads out of the folder or is no plain name."""
    path = PurePosixPath(name)
    parts = path.parts
    plain = name.isprintable() and "\\" not in name and ":" not in name and len(name) <= 400
    if not plain or not parts or path.is_absolute() or ".." in parts or len(parts) > DEPTH + 1:
        raise SkillError(f"the archive has a path that leads elsewhere: {name[:100]!r}")
    return "/".join(parts)


def _of_zip(source: Path) -> Iterator[tuple[str, SkillFile]]:
    with zipfile.ZipFile(source) as archive:
        for one in archive.infolist():
            mode = one.external_attr >> 16
            if one.is_dir():
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise SkillError(f"{one.filename!r} is a link or no regular file")
            with archive.open(one) as file:
                yield one.filename, SkillFile(file.read(BYTES + 1), bool(mode & 0o111))


def _of_tar(source: Path) -> Iterator[tuple[str, SkillFile]]:
    most = 2 * BYTES
    with gzip.open(source) as packed:
        whole = packed.read(most + 1)
    if len(whole) > most:
        raise SkillError(f"it has more than {most // 1024**2} MB")
    with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as archive:
        for one in archive:
            if one.isdir():
                continue
            file = archive.extractfile(one) if one.isreg() and not one.issparse() else None
            if file is None:
                raise SkillError(f"{one.name!r} is a link or no regular file")
            yield one.name, SkillFile(file.read(BYTES + 1), bool(one.mode & 0o111))


_WAYS = {".zip": _of_zip, ".skill": _of_zip, ".tar.gz": _of_tar, ".tgz": _of_tar}


def _write(folder: Path, files: Files) -> None:
    """Write the files into a new folder, following no links. Blocking. Raises OSError or WorkspaceError."""
    for left in folder.parent.glob(f"{_ASIDE}*"):
        if left.lstat().st_mtime < time.time() - _OLD:
            remove(left)
    home = folder.parent.parent
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    workspace = Workspace(home)
    for path, file in files.items():
        place = f"{folder.parent.name}/{folder.name}/{path}"
        workspace.write_now(place, file.content, "create")
        if file.executable:
            with workspace.open(place) as opened:
                os.fchmod(opened.fileno(), 0o700)
