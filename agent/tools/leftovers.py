"""Ends whole process trees, also one that a crash left running, which is found by pid and start time.

A pid alone may belong to another process by now. With the kernel's start time it names one process, and with the id of
the boot, where the system has one, also across a restart of the machine.
"""

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_STATE = 3 - 3  # field 3 of /proc/<pid>/stat is the first after the name
_PARENT = 4 - 3
_START_TIME = 22 - 3
_RESIDENT = 24 - 3
_ROUNDS = 50
_PAUSE = 0.001
_LAST_SECONDS = 2.0
"""How long a killed process may take to end, on a machine that has much else to do."""


def start_time(pid: int) -> str | None:
    """Return when a process started, as text to compare; None when it has ended or the time is unknown."""
    if (_PROC / "self/stat").exists():
        fields = _status(pid)
        return f"{fields[_START_TIME]}@{_boot()}" if fields else None
    ask, environment = ["ps", "-o", "lstart=", "-p", str(pid)], {"LC_ALL": "C", "PATH": "/bin:/usr/bin"}
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(ask, text=True, timeout=5, env=environment).strip() or None
    return None


def signal_below(leader: int, number: signal.Signals) -> bool:
    """Send a signal to every process below `leader`, and return whether there is any; a stopped leader is continued.

    Their sessions and groups do not matter. It looks again until there is no new one, to catch processes that live only
    long enough to leave a child. On other systems than Linux the leader's group gets the signal.
    """
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "linux":
            os.kill(leader, signal.SIGCONT)
        else:
            os.killpg(leader, number)
    if sys.platform != "linux":
        return True
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        new = {pid for parent in (leader, *seen) for pid in _children(parent)} - seen
        for pid in sorted(new, reverse=True):
            _send(pid, number)
        seen |= new
        if not new:
            break
    return bool(seen)


def _children(pid: int) -> list[int]:
    """Return the children of a process that have not ended, where the kernel can without a look at all processes."""
    if not _lists_children():
        every = (int(name) for name in os.listdir(_PROC) if name.isdecimal())
        return [one for one in every if (fields := _status(one)) and int(fields[_PARENT]) == pid]
    found = list[int]()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                found += map(int, file.read().split())
    return [one for one in found if _status(one)]


@functools.cache
def _lists_children() -> bool:
    """Return whether the kernel lists the children of a process."""
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def memory_below(leader: int) -> int:
    """Return how many bytes of memory the processes below `leader` hold; 0 on other systems than Linux."""
    if sys.platform != "linux":
        return 0
    pages, above = 0, [leader]
    while above := [pid for parent in above for pid in _children(parent)]:
        pages += sum(int(fields[_RESIDENT]) for pid in above if (fields := _status(pid)))
    return pages * os.sysconf("SC_PAGE_SIZE")


def end_tree(leader: int, gone: Callable[[], bool]) -> None:
    """Kill everything below a gate until `gone` says that the gate has ended by itself; in the end kill the gate too.

    leader: the pid of the gate, of which the caller is certain. Blocking: a millisecond or two for ordinary processes,
    a tenth of a second at most.
    """
    for _ in range(_ROUNDS):
        if gone():
            return
        signal_below(leader, signal.SIGKILL)
        time.sleep(_PAUSE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def end_leftover(pid: int, pid_started: str) -> bool:
    """End the tree of a gate that a crash left, if `pid` is still the process that started at `pid_started`.

    Returns whether that process has ended, now or before. Blocks for a few milliseconds, on a busy machine for longer.
    """

    def gone() -> bool:
        return start_time(pid) != pid_started

    with suppress(ProcessLookupError):
        if not gone() and os.getpgid(pid) == pid != os.getpgrp():
            end_tree(pid, gone)
            deadline = time.monotonic() + _LAST_SECONDS
            while not gone() and time.monotonic() < deadline:
                time.sleep(_PAUSE)
    return gone()


def _status(pid: int) -> list[str]:
    """Return the fields of a process in /proc, from its state on; empty when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # hundreds of them are read at once
            status = file.read(4096).decode("ascii", "replace")
    except OSError:
        return []
    fields = status.rpartition(")")[2].split()  # the name itself may hold ')' and spaces
    return [] if fields[_STATE] in ("Z", "X") else fields


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # ended by itself, or another user's
        os.kill(pid, number)


def _boot() -> str:
    """Return the id of this boot of the machine; empty where it is unknown."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""
