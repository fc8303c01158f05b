"""What a command in a sandbox sees, and what is started so that it sees no more."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.sandbox.launch import Bounds, Launch
from agent.shell import Level

# Of each command: processes at once, bytes of memory of all of them, of one file, and of its temporary folder, which
# may lie in memory as well.
BOUNDS = Bounds(processes=256, memory=2 * 1024**3, file=256 * 1024**2, disk=1024**3)
TEMPORARY_BYTES = 128 * 1024**2

# Programs, their libraries and what they need to know of the system: to be read by every command. Of /etc only these,
# since others hold passwords and keys.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SETTINGS = (
    "alternatives ca-certificates crypto-policies debian_version ethers fonts group hosts inputrc ld.so.cache "
    "ld.so.conf ld.so.conf.d locale.alias locale.conf localtime magic mime.types nsswitch.conf os-release passwd "
    "pki/tls/certs pki/ca-trust protocols resolv.conf rpc services shells ssl/certs ssl/openssl.cnf terminfo timezone"
)
# Folders of the room that the service keeps for itself, beside its instruction files.
KEPT_FOLDERS = ("tool-results", "media")
# Where rooms of others lie, if they do: a link in the place of one would lead whoever works there out of it.
ROOMS = ("people", "groups")
# What leads git, in a repository: these stay as they are, so that git outside runs nothing that a command put there.
_LEADS_GIT = ("config", "config.worktree", "modules", "worktrees", "commondir")
_LEADS_GIT_FOLDERS = ("hooks", "info")
# Files of these that are made where they are missing: the one says in which folder the others are, here.
_MADE = {"commondir": b".\n", "config.worktree": b""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What of a room a command may read and not change. files: also folders. repositories: folders named `.git`,
    of which `leading` are the parts that lead git. above: the folders between the room and those, the outer ones first.
    """

    files: tuple[Path, ...] = ()
    repositories: tuple[Path, ...] = ()
    leading: tuple[Path, ...] = ()
    above: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one command sees. room: the one folder of ours, to be written when the level is more than look.

    folder: where it starts, in the room. kept: see there; nothing when it only looks. hidden: files and folders that
    are not there for it, wherever they lie. temporary: an empty folder of its own, which is removed with it; a way that
    has an own place for it does not use it.
    """

    level: Level
    room: Path
    folder: Path
    environment: Mapping[str, str]
    temporary: Path
    kept: Kept = Kept()
    hidden: tuple[Path, ...] = ()


class Sandbox(Protocol):
    """A way to hold commands in. name: as the configuration has it."""

    @property
    def name(self) -> str: ...

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        """What is to be started so that `argv` runs with this view. Raises OSError with a sentence."""
        ...


def readable() -> tuple[str, ...]:
    """The folders and files of the system that every command may read, those that are there."""
    python = sys.base_prefix
    own = () if python.startswith("/usr") else (python,)
    every = (*SYSTEM, *(f"/etc/{name}" for name in SETTINGS.split()), *own)
    return tuple(path for path in every if os.path.exists(path))


def inside(environment: Mapping[str, str], temporary: str) -> dict[str, str]:
    """The variables of a command in a sandbox: what is its own lies in its temporary folder, programs are looked for
    where there may be any, and Python is always found."""
    places = [*environment.get("PATH", "").split(os.pathsep), f"{sys.base_prefix}/bin"]
    seen = readable()
    path = os.pathsep.join(place for place in places if any(Path(place).is_relative_to(folder) for folder in seen))
    own = dict.fromkeys(("HOME", "TMPDIR", "TMP", "TEMP"), temporary)
    return {**environment, "PATH": path, **own, "GIT_CONFIG_NOSYSTEM": "1"}  # the system's settings are not to be read


def kept_of(room: Path, names: Sequence[str]) -> Kept:
    """What of a room stays as it is while a command may write there; what is not there is made, empty, so that nobody
    else can. names: of files directly in it. Blocking: it looks through all folders. Raises OSError with a sentence."""
    files = list[Path]()
    for name in names:
        path = room / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(f"{name} in the workspace is a link or no file, so that it cannot be kept; replace it")
        if not path.exists():
            _make(path)
        files.append(path)
    for name in KEPT_FOLDERS:
        if (room / name).is_symlink():
            raise OSError(f"{name} in the workspace is a link, so that it cannot be kept; replace it")
        (room / name).mkdir(mode=0o700, exist_ok=True)
        files.append(room / name)
    files += [path for name in ROOMS if (path := room / name).is_dir() and not path.is_symlink()]
    repositories, leading = list[Path](), list[Path]()
    for folder, folders, names, descriptor in os.fwalk(room):
        path = Path(folder, ".git")
        if path.is_symlink():  # what a link names may lie outside; it is not followed, and not kept either
            folders[:] = [name for name in folders if name != ".git"]
        elif ".git" in names:  # of a worktree or a submodule: it says where the repository is
            files.append(path)
        elif ".git" in folders:
            folders.remove(".git")
            repositories.append(path)
            leading += _leading(path, descriptor)
    above = {parent for one in repositories for parent in one.parents if parent.is_relative_to(room) and parent != room}
    return Kept(
        files=tuple(files), repositories=tuple(repositories), leading=tuple(leading), above=tuple(sorted(above))
    )


def _leading(repository: Path, above: int) -> list[Path]:
    """What leads git in a repository, but for links; what is missing is made there. above: its folder, opened."""
    opened = os.open(repository.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
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
