"""The parent of a command: a small program, started as a file by `process`, that keeps everything of it findable.

It runs nothing until its input says so; then the command, and when that has ended it writes the exit status into the
same socket. On Linux whoever loses its parent (setsid, nohup, a double fork) becomes a child of this process, which
ends only when it has no child left: as long as it lives, all that the command has begun is below it.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress

_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}


def main(shell: str, command: str, given: str) -> None:
    """Run it. Standard input is the socket, `given` the descriptor of what the command reads; the signals of its group
    end only the command."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if not os.read(0, 1):
        return  # the service has died, or wants nothing any more
    reads = [(os.POSIX_SPAWN_DUP2, int(given), 0), (os.POSIX_SPAWN_CLOSE, int(given))]
    own = os.posix_spawn(
        shell, [shell, "-c", command], os.environ, file_actions=reads, setsigdef=(*_SIGNALS, signal.SIGCHLD)
    )
    os.close(int(given))  # who writes there learns when nobody reads any more
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # the output ends with those who can write something
    os.dup2(nowhere, 2)
    with suppress(ChildProcessError):
        while True:
            ended, status = os.wait()
            if ended == own:
                with suppress(OSError):  # nobody listens
                    os.write(0, b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
