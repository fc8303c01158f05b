"""Control groups, in which the kernel holds commands to their memory and number of tasks, whatever they do with it.

A group is made before the command begins, the gate starts the command inside (`gate.py`), and what is left of it is
killed and the group removed at its end. Groups of a service that has died are removed by the next command of another.

Version 2 needs a group that is the service's own (`Delegate=yes` of systemd, or root): the service moves itself into a
group below it, because a group that has groups may have no processes. Version 1 needs root.
"""

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

from agent.sandbox.base import Bounds

_PREFIX = "hark"
# The group of the service itself, in version 2.
_SERVICE = f"{_PREFIX}-service"
# Tasks (threads count) for each process that a command may have.
_TASKS = 4
# The files of version 1 that bound memory, and memory with what was swapped out.
_FIRST = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
_numbers = count()


@dataclass(frozen=True, slots=True)
class Group:
    """The group of one command, by version 1 one in each hierarchy."""

    folders: tuple[Path, ...]
    # Where the gate was before, and returns to once the command has begun: a file `cgroup.procs` for each folder.
    homes: tuple[Path, ...]

    def plan(self) -> dict[str, list[str]]:
        """Return what the gate is told: the files to enter and leave the group, and the one that counts OOM kills."""
        procs = [str(folder / "cgroup.procs") for folder in self.folders]
        events = [str(folder / name) for folder in self.folders for name in ("memory.events", "memory.oom_control")]
        return {"enter": procs, "leave": [*map(str, self.homes)], "events": events}


@dataclass(frozen=True, slots=True)
class Groups:
    """Where groups of commands are made. `homes` belong to `bases` in the same order."""

    version: int
    bases: tuple[Path, ...]
    homes: tuple[Path, ...]
    _ended: list[Path] = field(default_factory=list)

    def make(self, bounds: Bounds) -> Group:
        """Make the group of a command. Raises OSError."""
        self.sweep()
        name = f"{_PREFIX}-{os.getpid()}-{_started(os.getpid())}-{next(_numbers)}"
        folders = tuple(base / name for base in self.bases)
        try:
            for folder in folders:
                folder.mkdir()
            self._hold(folders, bounds)
        except OSError:
            self.remove(folders)
            raise
        return Group(folders, self.homes)

    def remove(self, folders: Iterable[Path]) -> None:
        """Kill what is in a group and remove it, now or, while the kernel is not done, before the next is made."""
        self._ended.extend(folders)
        self._ended[:] = [folder for folder in self._ended if not _removed(folder)]

    def sweep(self) -> None:
        """Remove groups that ended before, and those of services that have died."""
        self.remove(folder for base in self.bases for folder in base.glob(f"{_PREFIX}-[0-9]*-*-*") if _is_left(folder))

    def _hold(self, folders: Sequence[Path], bounds: Bounds) -> None:
        memory, others = ("memory.max", "memory.swap.max") if self.version == 2 else _FIRST
        (folders[0] / memory).write_text(str(bounds.memory))
        (folders[-1] / "pids.max").write_text(str(bounds.processes * _TASKS))
        more = {others: bounds.memory} if self.version == 1 else {others: 0, "cpu.weight": 50, "memory.oom.group": 1}
        for name, value in more.items():
            with suppress(OSError):  # not every kernel has it
                (folders[0] / name).write_text(str(value))


def shown() -> str:
    """Return how memory and processes of commands are bounded, for people."""
    if found := groups():
        return f"The kernel bounds memory and processes of commands (cgroup v{found.version})"
    return (
        "Memory and processes of commands are looked at four times a second, because this process may make no cgroup "
        "(it can as root, or with Delegate=yes in its systemd unit)"
    )


@cache
def groups() -> Groups | None:
    """Return where the groups of this process's commands are made; None: this process may make none."""
    return find(Path("/proc/self/cgroup").read_text() if os.path.exists("/proc/self/cgroup") else "")


def find(own: str, root: Path = Path("/sys/fs/cgroup")) -> Groups | None:
    """Return where groups can be made. own: what /proc/self/cgroup says. root: where the hierarchies are mounted."""
    paths = {kinds: path for _, kinds, path in (line.split(":", 2) for line in own.splitlines())}
    by_kind = {kind: path for kinds, path in paths.items() for kind in kinds.split(",")}
    with suppress(OSError):
        if (root / "cgroup.controllers").exists():
            return _second(_inside(root, paths.get("", "/")))
        if os.geteuid() == 0 and {"memory", "pids"} <= by_kind.keys():
            bases = tuple(_inside(root / kind, by_kind[kind]) for kind in ("memory", "pids"))
            found = Groups(1, bases, tuple(base / "cgroup.procs" for base in bases))
            found.remove(found.make(Bounds(processes=1, memory=1024**2, file=0, disk=0)).folders)
            return found
    return None


def _second(own: Path) -> Groups:
    """Return where groups are made by version 2, after a move of this process. Raises OSError."""
    base = own.parent if own.name == _SERVICE else own
    home = base / _SERVICE
    there = (base / "cgroup.controllers").read_text().split()
    if not {"memory", "pids"} <= {*there}:
        raise OSError("memory and pids are not given to this group")
    home.mkdir(exist_ok=True)
    try:
        (home / "cgroup.procs").write_text(str(os.getpid()))
        given = " ".join(f"+{one}" for one in ("memory", "pids", "cpu") if one in there)
        (base / "cgroup.subtree_control").write_text(given)
    except OSError:  # others are in it, so that it is not the service's own
        with suppress(OSError):
            (base / "cgroup.procs").write_text(str(os.getpid()))
            home.rmdir()
        raise
    return Groups(2, (base,), (home / "cgroup.procs",))


def _inside(root: Path, path: str) -> Path:
    """Return the folder of a group; in a container, where the path is the host's, the one that is mounted."""
    found = root / path.lstrip("/")
    return found if found.is_dir() else root


def _is_left(folder: Path) -> bool:
    _, pid, started, _ = folder.name.split("-")
    return _started(int(pid)) != started


def _started(pid: int) -> str:
    """Return when a process started, as the kernel counts; empty: there is none."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    return ""


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()
