"""The gate: a small program, run as a file, that is the parent of one command and of all processes it starts.

Its standard input is a socket. A first line says what to run, see `Launch.plan`; a second one opens the gate. When the
command has ended, the gate writes its exit status to the socket, and why it ended the command if a bound was exceeded.
A command that is leashed is ended as well when the other end of the socket is closed, as it is when the service dies.
On Linux a process that loses its parent (setsid, nohup, a double fork) becomes a child of the gate, and the gate ends
only when it has no child left. So as long as it lives, everything that the command started is below it.

Every command waits for the start of its gate, so this program imports only modules that load fast: `_signal` without
the enumerations of `signal`, and neither `json`, `contextlib` nor `typing`. That halves the start.
"""

import ctypes
import marshal
import os
import resource
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal

_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
_LOOK_SECONDS = 0.25  # between checks of the bounds
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PASSED = 3
_MOST_ADDRESSES = 64 * 1024**3  # where no cgroup counts them, page tables take 1/512 of that


def main(given: int, folder: int) -> None:
    """Run the command. Signals to the group end the command, but not the gate.

    given: the descriptor of its input. folder: that of the folder in which it starts.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with os.fdopen(os.dup(0), "rb") as told:
        plan = told.readline()
        if not told.readline():
            return  # the service has died, or does not want the command any more
    launch = marshal.loads(bytes.fromhex(plan.decode()))
    os.fchdir(folder)
    os.close(folder)
    bounds = launch["bounds"]
    if bounds:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bounds["file"], bounds["file"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    group, free = launch["group"], _free()
    if bounds and not group and hasattr(resource, "RLIMIT_AS"):
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    _move(group["enter"] if group else [])
    own = _start(launch, given)
    _move(group["leave"] if group else [])  # so that the gate is not killed with the command
    os.close(given)  # so that a writer learns when nobody reads any more
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # so that the output ends with the processes of the command
    os.dup2(nowhere, 2)
    why = ""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == own:
            _report(os.waitstatus_to_exitcode(status), why or _killed(group, bounds))
        elif not ended:
            why = why or _killed(group, bounds) or (_passed_bound(bounds, free) if bounds else "")
            if not why and launch["leashed"] and _is_alone():
                why = "nobody waits for it"
            for child in _children(os.getpid()) if why else ():  # their children become ours as they die
                os.kill(child, signal.SIGKILL)
            if why and sys.platform != "linux":
                os.killpg(0, signal.SIGKILL)
            _pause(bool(bounds) or launch["leashed"])


def _report(code: int, why: str) -> None:
    try:
        os.write(0, b"%d %s\n" % (code, why.encode()))
    except OSError:  # nobody listens
        return


def _start(launch: "dict[str, Any]", given: int) -> int:
    """Start the command; returns its pid."""
    actions: list[Any] = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_CLOSE, given)]
    for number, content in enumerate(launch["passed"], _PASSED):
        passed = os.memfd_create("passed")  # never less than `number`, so that none is overwritten
        os.write(passed, content)
        os.lseek(passed, 0, os.SEEK_SET)
        actions.append((os.POSIX_SPAWN_DUP2, passed, number))
    argv = launch["argv"]
    return os.posix_spawn(
        argv[0],
        argv,
        launch["environment"],
        file_actions=actions,
        setsigmask=(),
        setsigdef=(*_SIGNALS, signal.SIGCHLD),
    )


def _move(files: list[str]) -> None:
    """Move this process into the control groups of these files."""
    for name in files:
        with open(name, "w") as file:
            file.write("0")


def _killed(group: "dict[str, list[str]] | None", bounds: dict[str, int]) -> str:
    """Say that the kernel has killed something in the group for lack of memory; empty: it has not."""
    for name in group["events"] if group else ():
        try:
            with open(name) as file:
                lines = file.read().splitlines()
        except OSError:
            continue  # of another version
        if any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines):
            return f"it used more than {bounds['memory'] // 1024**2} MB of memory"
    return ""


def _pause(looks: bool) -> None:
    """Wait until a child ends. looks: or until it is time to check the bounds."""
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait((signal.SIGCHLD,), _LOOK_SECONDS if looks else 3600)
    else:
        signal.sigwait((signal.SIGCHLD,))


def _children(pid: int) -> list[int]:
    """Return the pids of a process's children; none on systems that do not list them."""
    found = list[int]()
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += _numbers(f"/proc/{pid}/task/{thread}/children")
    return found


def _numbers(path: str) -> list[int]:
    """Return the numbers in a file; none if it cannot be read."""
    try:
        with open(path) as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


def _passed_bound(bounds: dict[str, int], free: int) -> str:
    """Say which bound the command has exceeded; empty: none. free: what `_free` returned at its start."""
    left, count, memory = _children(os.getpid()), 0, 0
    while left:
        pid = left.pop()
        count += 1
        left += _children(pid)
        memory += sum(_numbers(f"/proc/{pid}/statm")[1:2]) * _PAGE + _page_tables(pid)
    if count > bounds["processes"]:
        return f"it had more than {bounds['processes']} processes"
    if memory > bounds["memory"]:
        return f"it used more than {bounds['memory'] // 1024**2} MB of memory"
    if free - _free() > bounds["disk"]:
        return f"the disk lost more than {bounds['disk'] // 1024**2} MB meanwhile"
    return ""


def _page_tables(pid: int) -> int:
    """Return the bytes that a process's page tables take; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("VmPTE:"))
    except (OSError, ValueError):
        return 0


def _is_alone() -> bool:
    """Whether the other end of the socket is closed."""
    return bool(select.select([0], [], [], 0)[0])


def _free() -> int:
    """Return the free bytes on the disk of the folder in which the command starts."""
    disk = os.statvfs(".")
    return disk.f_bavail * disk.f_frsize


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
