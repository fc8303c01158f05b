"""The parent of a command: a small program, started as a file by `process`, that keeps everything of it findable.

Its standard input is a socket, over which it is told what to run, as JSON on a line, and then, on a line of its own,
that it may. When the command has ended it writes the exit status into it, and why it has ended the command itself, when
one of its bounds was passed. On Linux whoever loses its parent (setsid, nohup, a double fork) becomes a child of this
process, which ends only when it has no child left: as long as it lives, all that the command has begun is below it.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Any

_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
_LOOK_SECONDS = 0.25  # between looks at what the command has become
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PASSED = 3


def main(given: int) -> None:
    """Run it. given: the descriptor of what the command reads; the signals of its group end only the command."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with os.fdopen(os.dup(0), "rb") as told:
        plan = told.readline()
        if not told.readline():
            return  # the service has died, or wants nothing any more
    launch = json.loads(plan)
    bounds = launch["bounds"]
    if bounds:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bounds["file"], bounds["file"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    free = _free()
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    own = _start(launch, given)
    os.close(given)  # who writes there learns when nobody reads any more
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # the output ends with those who can write something
    os.dup2(nowhere, 2)
    why = ""
    with suppress(ChildProcessError):
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == own:
                with suppress(OSError):  # nobody listens
                    os.write(0, b"%d %s\n" % (os.waitstatus_to_exitcode(status), why.encode()))
            elif not ended:
                why = why or (_passed_bound(bounds, free) if bounds else "")
                for child in _children(os.getpid()) if why else ():  # theirs become ours as they die
                    os.kill(child, signal.SIGKILL)
                _pause(bool(bounds))


def _start(launch: dict[str, Any], given: int) -> int:
    """Start the command; returns its pid."""
    actions: list[Any] = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_CLOSE, given)]
    passed = bytes.fromhex(launch["passed"])
    if passed:
        reader, writer = os.pipe()
        os.write(writer, passed)  # less than a pipe holds
        os.close(writer)
        actions.append((os.POSIX_SPAWN_DUP2, reader, _PASSED))
    argv = launch["argv"]
    return os.posix_spawn(
        argv[0],
        argv,
        launch["environment"],
        file_actions=actions,
        setsigmask=(),
        setsigdef=(*_SIGNALS, signal.SIGCHLD),
    )


def _pause(looks: bool) -> None:
    """Until a child ends; looks: or until it is time to look."""
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait((signal.SIGCHLD,), _LOOK_SECONDS if looks else 3600)
    else:
        signal.sigwait((signal.SIGCHLD,))


def _children(pid: int) -> list[int]:
    """The pids of its children, as the kernel lists them; none where it does not."""
    found = list[int]()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def _passed_bound(bounds: dict[str, int], free: int) -> str:
    """Which of its bounds the command has passed, in words; none: an empty text. free: see `_free`, at its start."""
    left, count, memory = _children(os.getpid()), 0, 0
    while left:
        pid = left.pop()
        count += 1
        left += _children(pid)
        with suppress(OSError), open(f"/proc/{pid}/statm") as file:
            memory += int(file.read().split()[1]) * _PAGE
    if count > bounds["processes"]:
        return f"it had more than {bounds['processes']} processes"
    if memory > bounds["memory"]:
        return f"it used more than {bounds['memory'] // 1024**2} MB of memory"
    if free - _free() > bounds["disk"]:
        return f"the disk lost more than {bounds['disk'] // 1024**2} MB meanwhile"
    return ""


def _free() -> int:
    """Bytes that are free on the disk of the folder in which the command starts."""
    disk = os.statvfs(".")
    return disk.f_bavail * disk.f_frsize


if __name__ == "__main__":
    main(int(sys.argv[1]))
