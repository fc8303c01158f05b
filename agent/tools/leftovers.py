"""Processes by pid and start time: which one a pid meant, and ending the one that a crash of ours left running.

A pid alone names whoever holds it today. With the kernel's start time it names one process; with the boot too, where
the system tells it, also across a restart of the machine. Called by `exec` and by recovery.
"""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_START_TIME = 22 - 3  # field 22 of /proc/<pid>/stat; field 3 is the first after the name


def start_time(pid: int) -> str | None:
    """When the process `pid` started, as text to compare; None when there is no such process or nobody can tell."""
    if (_PROC / "self/stat").exists():
        try:
            status = (_PROC / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return None
        return f"{status.rpartition(')')[2].split()[_START_TIME]}@{_boot()}"  # the name itself may hold ')' and spaces
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


def end_leftover(pid: int, pid_started: str) -> bool:
    """Kill the process group led by `pid`, only if that is still the process that started at `pid_started`.

    Returns whether it was. The leader is stopped first, so that it cannot end between the comparison and the kill and
    leave its pid to somebody else. Blocking, a few milliseconds.
    """
    if pid <= 1 or start_time(pid) != pid_started:
        return False
    try:
        if os.getpgid(pid) != pid or pid == os.getpgrp():
            return False
        _hold(pid, pid_started)
        if start_time(pid) != pid_started:
            return False
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _hold(pid: int, pid_started: str) -> None:
    """Stop the process where the system has descriptors of processes, which can mean nobody else."""
    if not hasattr(os, "pidfd_open"):
        return
    with suppress(OSError):  # gone, or not allowed in this container: the comparison that follows decides
        descriptor = os.pidfd_open(pid)
        try:
            if start_time(pid) == pid_started:
                signal.pidfd_send_signal(descriptor, signal.SIGSTOP)
        finally:
            os.close(descriptor)


def _boot() -> str:
    """Which boot of the machine this is; empty where it is not told."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""
