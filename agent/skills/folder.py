"""The files of a skill: read as a whole within bounds, told apart by a digest, and looked through before an install.

There are no links in a skill, so that what was looked at is all that it has.
"""

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.skills.manifest import FILE, MAX_BYTES, Manifest, SkillError, parse
from agent.tools.workspace import printable

# Bounds of one skill: files, folders above a file, bytes of all files.
FILES, DEPTH, BYTES = 200, 8, 5 * 1024 * 1024
_NAMED = 12  # that many are named in a finding; the others are counted
# Left out of what is installed: what version control and file managers put beside a skill.
LEFT_OUT = (".git", "__MACOSX", ".DS_Store")
# What is worth a look before it is trusted, whether a program does it or the model is to.
_DOUBTFUL = re.compile(
    r"(?:curl|wget)\b[^\n|]{0,2000}\|\s*(?:sudo\s+)?\w*sh\b|\bsudo\s|\brm\s+-(?=\w*r)\w++\s|\beval\b|\bbase64\s+-{1,2}d|\.ssh/|\.aws/"
    r"|/etc/(?:passwd|shadow)|\b(?:ignore|disregard)\s+(?:\w+\s+){0,2}(?:previous|prior|earlier|above)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b(?:https?|wss?|ftp)://([^\s/\"'`<>()\\]+)", re.IGNORECASE)
_PROGRAMS = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".ps1", ".bat", ".exe", ".so", ".jar", ".wasm")
_MAGIC = (b"#!", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill."""

    content: bytes
    executable: bool


# By their paths, with `/` between folders.
Files = Mapping[str, SkillFile]
# What shows whether a file was changed: its path, its inode, mode, size, and when the kernel saw its last change.
Signs = tuple[tuple[str, int, int, int, int], ...]


def signs(folder: Path) -> Signs:
    """Return what shows whether anything in a folder was changed, without reading it. Blocking. Raises SkillError."""
    found = _walk(folder)
    return tuple((path, one.st_ino, one.st_mode, one.st_size, one.st_ctime_ns) for path, one, _ in found)


def read(folder: Path, left_out: Collection[str] = ()) -> Files:
    """Return the files of a folder. left_out: names of files and folders. Blocking. Raises SkillError."""
    found: dict[str, SkillFile] = {}
    for path, status, inside in _walk(folder, left_out):
        try:
            fd = os.open(path.rpartition("/")[2], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
            with os.fdopen(fd, "rb") as file:
                found[path] = SkillFile(file.read(BYTES + 1), bool(status.st_mode & 0o111))
        except OSError as error:
            raise SkillError(f"{path} cannot be read: {error.strerror}") from error
    bounded(found)
    return found


def bounded(files: Files) -> None:
    """Raise SkillError if these files are no skill of the allowed size."""
    if len(files) > FILES or sum(len(one.content) for one in files.values()) > BYTES:
        raise SkillError(f"it has more than {FILES} files or {BYTES // 1024**2} MB")
    if FILE not in files:
        raise SkillError(f"there is no {FILE} in it")
    if len(files[FILE].content) > MAX_BYTES:
        raise SkillError(f"{FILE} has more than {MAX_BYTES // 1024} KB")


def manifest_of(files: Files) -> Manifest:
    """Return the head of a skill. Raises SkillError."""
    return parse(files[FILE].content.decode(errors="replace"))


def digest(files: Files) -> str:
    """Return the hash of all paths, contents and permissions."""
    whole = hashlib.sha256()
    for path, file in sorted(files.items()):
        one = hashlib.sha256(file.content).hexdigest()
        whole.update(f"{len(path.encode())}:{path} {file.executable} {one}\n".encode())
    return whole.hexdigest()


def findings(files: Files, manifest: Manifest) -> Iterator[str]:
    """Yield what somebody should know who decides about a skill, each on one line."""
    yield f"{len(files)} files, {sum(len(one.content) for one in files.values()):,} bytes: {_some(files)}"
    programs = [path for path, one in sorted(files.items()) if _is_program(path, one)]
    yield f"programs: {_some(programs)}" if programs else "no programs"
    texts = {path: one.content.decode(errors="replace") for path, one in files.items()}
    hosts = {host.lower() for text in texts.values() for host in _ADDRESS.findall(text)}
    yield f"addresses: {_some(sorted(hosts))}" if hosts else "no addresses"
    hidden = [path for path, text in texts.items() if b"\0" not in files[path].content and any(map(_hides, text[1:]))]
    yield f"hidden characters: {_some(hidden)}" if hidden else "no hidden characters"
    doubtful = [
        f"{path}: {' '.join(one[0].split())}" for path, text in texts.items() for one in _DOUBTFUL.finditer(text)
    ]
    if doubtful:
        yield f"worth a look: {_some(doubtful)}"
    yield "tools: all that there are" if manifest.tools is None else f"tools: {' '.join(manifest.tools) or 'none'}"


def _is_program(path: str, file: SkillFile) -> bool:
    return file.executable or path.lower().endswith(_PROGRAMS) or file.content.startswith(_MAGIC)


def _hides(sign: str) -> bool:
    return sign not in "\t\n\r\f\u200c\u200d" and unicodedata.category(sign) in ("Cc", "Cf", "Co")


def _some(names: "Mapping[str, object] | list[str]") -> str:
    return ", ".join([*names][:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _walk(folder: Path, left_out: Collection[str] = ()) -> Iterator[tuple[str, os.stat_result, int]]:
    """Yield each file: its path, its status, and the open folder that it lies in. Raises SkillError."""
    count = size = 0
    try:
        for above, folders, names, inside in os.fwalk(folder, onerror=_raise, follow_symlinks=False):
            folders[:] = sorted(name for name in folders if name not in left_out)
            below = os.path.relpath(above, folder)
            for name in sorted((*folders, *(name for name in names if name not in left_out))):
                path = name if below == "." else f"{below}/{name}"
                status = os.stat(name, dir_fd=inside, follow_symlinks=False)
                count, size = count + 1, size + (status.st_size if stat.S_ISREG(status.st_mode) else 0)
                if count > 2 * FILES or size > BYTES or path.count("/") > DEPTH:
                    raise SkillError(
                        f"it has more than {FILES} files, {BYTES // 1024**2} MB or {DEPTH} folders in a row"
                    )
                if path != printable(path):
                    raise SkillError(f"{printable(path)} has signs in its name that cannot be shown")
                if stat.S_ISREG(status.st_mode):
                    yield path, status, inside
                elif not stat.S_ISDIR(status.st_mode):
                    raise SkillError(f"{path} is a link or no regular file")
    except OSError as error:
        raise SkillError(f"it cannot be read: {error.strerror}") from error


def _raise(error: OSError) -> None:
    raise error
