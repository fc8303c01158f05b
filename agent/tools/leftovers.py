"""Ending whole process trees, and the one that a crash of ours left running: found by pid and start time.

A pid alone names whoever holds it today. With the kernel's start time it names one process; with the boot too, where
the system tells it, also across a restart of the machine. Called by `process`, `exec` and recovery.
"""

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
_START_TIME = 22 - 3
_ENDED = ("Z", "X")
KILL_SECONDS = 0.08
"""How long those may take to die who make new ones meanwhile; ordinary processes take a millisecond or two."""
_PAUSE = 0.001


def start_time(pid: int) -> str | None:
    """When the process `pid` started, as text to compare; None when it has ended or nobody can tell."""
    if (_PROC / "self/stat").exists():
        try:
            status = (_PROC / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return None
        fields = status.rpartition(")")[2].split()  # the name itself may hold ')' and spaces
        return None if fields[_STATE] in _ENDED else f"{fields[_START_TIME]}@{_boot()}"
    try:
        shown = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
            env={"LC_ALL": "C", "PATH": "/bin:/usr/bin"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return shown.stdout.strip() or None


def signal_below(leader: int, number: signal.Signals) -> None:
    """Send a signal to every process below `leader`, whatever session or group it is in; a held leader goes on."""
    import psutil  # only when a command runs

    with suppress(psutil.Error, OSError):
        below = psutil.Process(leader)
        os.kill(leader, signal.SIGCONT)
        for process in below.children(recursive=True):
            with suppress(psutil.Error):  # ended by itself, or another user's
                process.send_signal(number)


def end_tree(leader: int, gone: Callable[[], bool]) -> None:
    """Kill everything below `leader`, a gate, which then ends by itself: `gone` says so. Else its group is killed.

    The caller vouches for the pid. Blocking, for KILL_SECONDS at most.
    """
    until = time.monotonic() + KILL_SECONDS
    while not gone():
        signal_below(leader, signal.SIGKILL)
        if sys.platform != "linux" or time.monotonic() >= until:  # elsewhere a gate may end before all of its group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
            return
        time.sleep(_PAUSE)


def end_leftover(pid: int, pid_started: str) -> bool:
    """End the tree of a gate that a crash left, only if `pid` is still the process that started at `pid_started`.

    Returns whether that process has ended, now or before. Blocking, a few milliseconds.
    """

    def gone() -> bool:
        return start_time(pid) != pid_started

    with suppress(ProcessLookupError):
        if not gone() and os.getpgid(pid) == pid != os.getpgrp():
            end_tree(pid, gone)
    return gone()


def _boot() -> str:
    """Which boot of the machine this is; empty where it is not told."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""
