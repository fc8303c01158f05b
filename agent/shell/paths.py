"""Where a command's words lead: which binary is run, and whether a file may be read or written without asking."""

import os
import re
import stat
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from agent.shell.table import Reading
from agent.shell.words import Word

_DEVICE = re.compile(r"/dev/(null|zero|full|stdin|stdout|stderr|urandom|random|tty|fd/[0-2])")
_OWN = re.compile(r"/(dev|proc)/(std\w+|fd|self|thread-self|\d+)/(.*/)?\.\.")  # links that each program has its own of
_PROC = re.compile(r"/proc/(cpuinfo|meminfo|version|loadavg|uptime|stat|filesystems|mounts|partitions|sys/kernel/\w+)")
_SECRET = re.compile(
    r"/(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.password-store"
    r"|\.config/(gh|gcloud|git|op|rclone)|shadow|gshadow|keyrings|\.bash_history|\.zsh_history|\.vault-token)(/|$|-)"
)
_MAX_ENTRIES = 2_000  # of folders that one pattern may stand for
_DEEP = ("*",) * 40


def plain_folder(folder: str, path: str) -> str | None:
    """The folder that a path leads to from another, if it is there, and no link is on the way to it."""
    full = os.path.normpath(os.path.join(folder, path))
    try:
        plain = os.path.realpath(full) == full == os.path.realpath(os.path.join(folder, path))
        return full if plain and os.path.isdir(full) and os.access(full, os.X_OK) else None
    except (OSError, ValueError):
        return None


class Paths:
    """Answers about one workspace and one PATH. Relative paths are of `folder`; an answer in words is why not."""

    def __init__(self, workspace: Path, path: str, private: Sequence[Path]) -> None:
        self._workspace = os.path.realpath(workspace)
        self._private = [os.path.realpath(some) for some in private]
        self._folders = [folder for folder in path.split(os.pathsep) if self._standard(folder)]
        self._path = path.split(os.pathsep)

    def _standard(self, folder: str) -> bool:
        """Whether what stands in a folder of PATH can be believed: not of the workspace, not anybody's to write, and no
        stand-ins that choose by files of the folder they are called in."""
        try:
            real = os.path.realpath(folder)
            writable = os.stat(real).st_mode & stat.S_IWOTH
        except (OSError, ValueError):
            return False
        return os.path.isabs(folder) and not self._below(real) and not writable and os.path.basename(real) != "shims"

    def _below(self, real: str) -> bool:
        return real == self._workspace or real.startswith(self._workspace.rstrip("/") + "/")

    def binary(self, name: str, folder: str) -> str | None:
        """The file that would be run."""
        if "/" in name:
            return os.path.normpath(os.path.join(folder, name)) if ".." not in name else None
        for entry in self._path:
            candidate = os.path.join(folder, entry, name)
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
        return None

    def named(self, name: str) -> str | None:
        """The file that the bare name of a rule means, which none of the workspace is."""
        found = None if "/" in name else self.binary(name, "/")
        return found if found and os.path.isabs(found) and not self._below(os.path.realpath(found)) else None

    def trusted(self, name: str, binary: str) -> bool:
        """Whether a binary is what its name says: found in a folder of the system."""
        return os.path.dirname(binary) in self._folders and not self._below(os.path.realpath(binary))

    def inside(self, path: str, folder: str) -> bool:
        """Whether it is in the workspace, all links followed."""
        return self._below(os.path.realpath(os.path.join(folder, path)))

    def unreadable(self, path: str, folder: str, recursive: bool = False, follows: bool = False) -> str:
        """Why what stands in a file is not for everybody. recursive: all that a folder holds is meant. follows: the
        links in it as well."""
        full = os.path.join(folder, path)
        if _DEVICE.fullmatch(path):
            return ""
        if _OWN.search(full):
            return f"`{path}` leads through what a program has open."
        try:
            real = os.path.realpath(full)
            is_folder = os.path.isdir(real)
        except (OSError, ValueError):
            return "A path is not valid."
        if self._below(real):
            return self._led_out(real, _DEEP) if follows and is_folder else ""
        for name in (os.path.normpath(full), real):
            there = name == real and (is_folder or os.path.isfile(real))
            if re.match(r"/+(dev|inet)(/|$)", name) and not there and not (_DEVICE.fullmatch(name) and real == name):
                return f"`{path}` is a device or a connection."
            if re.match(r"/+proc(/|$)", name) and not _PROC.fullmatch(name):
                return f"`{path}` may show the secrets of running programs."
            if _SECRET.search(name):
                return f"`{path}` may hold secrets."
        if any(real == some or real.startswith(some + "/") for some in self._private):
            return f"`{path}` belongs to the service and may hold secrets."
        if recursive and is_folder:
            return f"`{path}` is a folder outside the workspace, which would be read as a whole."
        return ""

    def hides(self, word: Word, folder: str, reading: Reading) -> str:
        """The same of a word, which may be an option with a path in it."""
        if word.exact:
            paths = [word.text, word.text.removeprefix("@")]
            if word.text.startswith("-"):
                paths = [word.text[2:], word.text.partition("=")[2]]
            return next(
                (why for path in paths if (why := self.unreadable(path, folder, reading.recursive, reading.follows))),
                "",
            )
        if word.kind == "pattern":
            if word.text.startswith("-") or (not word.text and "/" in word.rest):  # a folder named `-x=`, with files
                return f"What is made of `{word.shown}` may be an option."
            start, slash, first = word.text.rpartition("/")
            pattern = [part for part in (first + word.rest).split("/") if part not in ("", ".")] if word.rest else ()
            return self._led_out(os.path.join(folder, start + slash), _DEEP if reading.follows else pattern)
        return "" if word.kind == "pipe" else f"It is not known which file is meant by `{word.shown}`."

    def _led_out(self, start: str, pattern: Sequence[str]) -> str:
        """Why names below a folder, with one more pattern for each level, are not all of files to be read."""
        left, seen = [(os.path.realpath(start), 0)], 0
        while left:
            folder, level = left.pop()
            if not self._below(folder):
                return f"`{folder}` is outside the workspace, and all that is in it is meant."
            if not pattern or not os.path.isdir(folder):
                continue
            with os.scandir(folder) as entries:
                found = list(islice(entries, _MAX_ENTRIES))
            seen += len(found)
            if seen >= _MAX_ENTRIES:
                return f"There is more in `{start}` than can be looked through."
            for entry in found:
                if "[" not in pattern[level] and not fnmatchcase(entry.name, pattern[level]):
                    continue
                if entry.name.startswith("-"):
                    return f"`{entry.name}` in `{start}` may be taken for an option."
                if entry.is_dir() and level + 1 < len(pattern):
                    left.append((os.path.realpath(entry.path), level + 1))
                elif entry.is_symlink() and (why := self.unreadable(entry.path, "/", recursive=True)):
                    return why
        return ""

    def unwritable(self, path: str, folder: str) -> str:
        """Why a redirection must not write there."""
        if path in ("/dev/null", "/dev/stdout", "/dev/stderr"):
            return ""
        full = os.path.normpath(os.path.join(folder, path))
        try:
            plain = os.path.realpath(os.path.join(folder, path)) == full
            mode = os.lstat(full).st_mode if os.path.lexists(full) else stat.S_IFREG
        except (OSError, ValueError):
            return "A path is not valid."
        if not self._below(full):
            return f"Writes outside the workspace: `{path}`."
        if not plain or not stat.S_ISREG(mode):
            return f"`{path}` is reached by a link or is no file."
        if any(re.fullmatch(r"\.git|git~\d", part, re.IGNORECASE) for part in full.split("/")):
            return f"Writes into what belongs to git: `{path}`."
        return ""

    def foreign_repository(self, folder: str) -> str:
        """Why git must not be run there: settings that somebody other than the owner may have written lead it."""
        if not self.inside(folder, "/"):
            return "`git` is run outside the workspace."
        while self._below(folder):
            if os.path.isdir(os.path.join(folder, "objects")) and os.path.isdir(os.path.join(folder, "refs")):
                return "`git` is run in a folder that is a repository itself."
            folder = os.path.dirname(folder)
        return ""
