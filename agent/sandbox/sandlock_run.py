"""Runs one command with sandlock. This program is run as a file below a gate, and ends with the command's exit code.

Its argument is a plan as JSON, see `backends.Sandlock`. Descriptor 3 holds a filter of system calls for this process
and all that it starts.
"""

import ctypes
import json
import os
import signal
import sys

_NO_NEW_PRIVILEGES, _SECCOMP, _DROP_FROM_BOUND = 38, 22, 24  # of <linux/prctl.h>
_FILTER = 2  # of <linux/seccomp.h>
_VERSION = 0x20080522  # of <linux/capability.h>
_LAST_CAPABILITY = 63


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _confine(code: bytes) -> None:
    """Drop the rights of root for good, and set the filter. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_DROP_FROM_BOUND, capability, 0, 0, 0)  # fails if there is nothing to drop
    header, none = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    program = _Program(len(code) // 8, code)
    for failed in (
        libc.capset(header, none),
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0),
    ):
        if failed:
            raise OSError(ctypes.get_errno(), "the command cannot be confined")


def main(words: str) -> int:
    """Run the command; returns its exit code. words: the plan."""
    plan = json.loads(words)
    with os.fdopen(3, "rb") as passed:
        code = passed.read()
    sys.path.append(plan["library"])
    from sandlock import Sandbox  # type: ignore[import-untyped, unused-ignore]

    _confine(code)
    held = Sandbox(
        fs_readable=plan["readable"],
        fs_writable=plan["writable"],
        fs_denied=plan["denied"],
        net_allow=["*:*", "udp://*:*"] if plan["network"] else [],
        max_memory=plan["memory"],
        max_processes=plan["processes"],
        clean_env=True,
        env=plan["environment"],
        cwd=plan["folder"],
    )
    # Messages of the library are dropped; the command's errors go where its output goes.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    ended = held.popen(["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *plan["argv"]]).wait()
    if ended.signal < 0 and ended.exit_code >= 0:
        return int(ended.exit_code)
    return 128 + (ended.signal if ended.signal > 0 else signal.SIGKILL)  # sandlock does not always tell which signal


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
