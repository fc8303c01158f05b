"""Confines itself by Landlock and a filter of system calls, and becomes a command.

This program is run as a file below a gate, in the command's folder. Descriptor 3 holds the filter, descriptor 4 a plan,
see `backends.Sandlock`. It imports little, because every command waits for it.
"""

import ctypes
import marshal
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_NEW_PRIVILEGES, _SECCOMP, _DROP_FROM_BOUND = 38, 22, 24  # of <linux/prctl.h>
_FILTER = 2  # of <linux/seccomp.h>
_VERSION = 0x20080522  # of <linux/capability.h>
_LAST_CAPABILITY = 63
# System calls of Landlock, the same on every machine, and the version that holds signals (Linux 6.12).
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NEEDED = 6
# Of <linux/landlock.h>: everything that can be restricted, and what is granted of it.
_FILES, _NETWORK, _SCOPES = (1 << 16) - 1, 3, 3
_RUN, _WRITE, _READ, _LIST = 1, 2, 4, 8
_MAKE_DEVICES = 1 << 6 | 1 << 9 | 1 << 11  # and sockets

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


class _Beneath(ctypes.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _check(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), "the command cannot be confined")
    return answer


def _grants(plan: dict[str, list[str]]) -> "Iterator[tuple[int, int]]":
    """Yield an open descriptor for each grant, and what is granted at it and below; each is closed afterwards."""
    hidden = [os.stat(path, follow_symlinks=False) for path in plan["hidden"]]
    above = {parent for path in plan["hidden"] for parent in _parents(os.path.realpath(os.path.dirname(path)))}
    for path in plan["readable"]:
        yield from _readable(os.path.realpath(path), hidden, above)
    for path in plan["writable"]:
        opened = os.open(path, os.O_PATH)
        folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        yield opened, _FILES & ~_MAKE_DEVICES if folder else _READ | _WRITE
        os.close(opened)


def _parents(path: str) -> "Iterator[str]":
    yield path
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _readable(path: str, hidden: list[os.stat_result], above: set[str]) -> "Iterator[tuple[int, int]]":
    """Yield what is granted to read a path, of a link nothing but itself.

    Of a folder with something hidden below, all names can be listed.
    """
    opened = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        status = os.fstat(opened)
        if any(os.path.samestat(status, one) for one in hidden):
            return
        if not stat.S_ISDIR(status.st_mode):
            yield opened, _RUN | _READ
        elif path not in above:
            yield opened, _RUN | _READ | _LIST
        else:
            yield opened, _LIST
            for name in os.listdir(path):
                yield from _readable(os.path.join(path, name), hidden, above)
    except FileNotFoundError:
        return  # it has gone meanwhile
    finally:
        os.close(opened)


def _landlock(plan: dict[str, list[str]]) -> None:
    """Let this process reach nothing but what is granted. Raises OSError."""
    version = _libc.syscall(_CREATE, None, 0, 1)
    if version < _NEEDED:
        raise OSError(f"Landlock of version {_NEEDED} is needed (Linux 6.12); there is {max(version, 0) or 'none'}")
    wanted = (ctypes.c_uint64 * 3)(_FILES, _NETWORK, _SCOPES)
    rules = _check(_libc.syscall(_CREATE, ctypes.byref(wanted), ctypes.sizeof(wanted), 0))
    for opened, access in _grants(plan):
        beneath = _Beneath(access, opened)
        _check(_libc.syscall(_ADD, rules, 1, ctypes.byref(beneath), 0))
    _check(_libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _confine(plan: dict[str, list[str]], code: bytes) -> None:
    """Drop the rights of root for good, and set Landlock and the filter. Raises OSError."""
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_DROP_FROM_BOUND, capability, 0, 0, 0)  # fails if there is nothing to drop
    header, none = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    program = _Program(len(code) // 8, code)
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _landlock(plan)
    _check(_libc.capset(header, none))
    _check(_libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


def main() -> None:
    """Become the command."""
    with os.fdopen(3, "rb") as passed:
        code = passed.read()
    with os.fdopen(4, "rb") as passed:
        plan = marshal.load(passed)
    try:
        _confine(plan, code)
        os.execve(plan["argv"][0], plan["argv"], plan["environment"])
    except OSError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
