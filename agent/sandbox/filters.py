"""Filters of system calls for seccomp: the calls that a command may make, and with which arguments.

A filter is a program in the kernel's classic BPF (seccomp(2)), which tests the architecture, the number of the call and
sometimes one argument. What is not in `syscalls` fails as unknown, so that libraries use something older instead.
Other architectures have no filter, and so no sandbox.
"""

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from agent.sandbox import syscalls

_ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEW_NAMESPACES = 0x7E020000  # of clone(2)
_NEW_TIME = 0x80  # the one further flag of unshare(2)
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_STREAMS = tuple(1 | flags for flags in (0, 0x800, 0x80000, 0x80800))  # SOCK_STREAM; not blocking, closed by exec
_SET_IDS = 0o6000  # of chmod(2)
_CREATES = 0o20000100  # of open(2): the flags with which the mode counts
# Of ioctl(2): what is asked of a terminal, bytes that wait, flags of a descriptor, and what a file has. By others file
# systems make folders, snapshots and files that cannot be changed, whatever Landlock grants.
_ASKING = (0x5401, 0x802C542A, 0x540F, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x80086601, 0xC020660B, 2)
_TYPES = (0x5412, 0x541C)  # of ioctl(2): put input into a terminal (TIOCSTI), and what TIOCLINUX pastes
# Of fcntl(2): duplicates, flags, locks, sizes of pipes, seals. Leases make whoever opens the file wait for the command.
_FCNTL = (*range(8), 36, 37, 38, 1027, 1028, 1030, 1031, 1032, 1033, 1034)
_PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)  # Linux, 32 bits, an old version; what there is now

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_Line = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A system call that fails."""

    call: str
    # The errno with which it fails.
    error: int = errno.EPERM
    # The index of the argument that decides; None: the call always fails. The kernel reads the lower half of each of
    # these arguments, and so does the filter.
    argument: int | None = None
    # The call fails if the argument passes `test` with `value`.
    test: int = _EQUAL
    value: int = 0
    # If there are any: the call fails unless the argument is one of these.
    unless: tuple[int, ...] = ()
    # The index of another argument that must have one of some bits, and the bits; None: the call fails in any case.
    only_with: tuple[int, int] | None = None


# Ways around a filter, namespaces (in which a command would get privileges again), leases, and memory that is not
# counted for any process. clone3 hides its flags from a filter, and libraries use clone instead if clone3 is missing.
_ALWAYS = (
    Rule("clone", errno.EPERM, 0, _ANY_BIT, _NEW_NAMESPACES),
    Rule("unshare", errno.EPERM, 0, _ANY_BIT, _NEW_NAMESPACES | _NEW_TIME),
    Rule("fcntl", errno.EINVAL, 1, unless=_FCNTL),
    Rule("personality", errno.EPERM, 0, unless=_PERSONALITIES),
    *(Rule("ioctl", errno.EPERM, 1, _EQUAL, command) for command in _TYPES),
    # Datagrams can be sent to any socket that has a name, a stream of a pair to nobody else.
    Rule("socketpair", errno.EACCES, 0, unless=(_AF_UNIX,)),
    Rule("socketpair", errno.EACCES, 1, unless=_STREAMS),
    # Files that let others run as the user of the service.
    *(Rule(call, errno.EPERM, 1, _ANY_BIT, _SET_IDS) for call in ("chmod", "fchmod", "creat", "mknod")),
    *(Rule(call, errno.EPERM, 2, _ANY_BIT, _SET_IDS) for call in ("fchmodat", "fchmodat2", "mknodat")),
    Rule("open", errno.EPERM, 2, _ANY_BIT, _SET_IDS, only_with=(1, _CREATES)),
    Rule("openat", errno.EPERM, 3, _ANY_BIT, _SET_IDS, only_with=(2, _CREATES)),
)
# Of these all programs of a user share one bound, in namespaces as well; only programs that go on need them.
_SHARED = tuple(Rule(call, errno.ENOSYS) for call in ("mq_open", "mq_unlink", "inotify_init", "inotify_init1"))
# A file in the room may be a socket, which works on a read-only mount as well.
_WITHOUT_NETWORK = (*_ALWAYS, Rule("socket", errno.EACCES))
_FAMILIES = (_AF_INET, _AF_INET6, _AF_NETLINK)
_WITH_NETWORK = (
    *_ALWAYS,
    Rule("socket", errno.EACCES, 0, unless=_FAMILIES),
    Rule(
        "socket", errno.EACCES, 2, _AT_LEAST, 1, only_with=(0, _AF_NETLINK)
    ),  # but NETLINK_ROUTE; no other has the bit
)

# Beneath Landlock: calls that change rights, owners, times and attributes of a file, of which it restricts none, by
# path or by a descriptor that may be open for reading.
_ATTRIBUTES = (
    *("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "fchmod", "fchown"),
)
# And calls that reach beyond the folders that it grants: limits, places and priorities of other processes, and what
# processes of the machine share.
_BEYOND = (
    *(Rule(call, errno.EPERM, 0, _AT_LEAST, 1) for call in ("prlimit64", "sched_setaffinity", "sched_setscheduler")),
    *(Rule(call, errno.EPERM, 0, _AT_LEAST, 1) for call in ("sched_setparam", "sched_setattr")),
    *(Rule(call) for call in ("setpriority", "ioprio_set")),
    *(Rule(call, errno.ENOSYS) for call in ("semget", "semctl", "semop", "semtimedop")),
    Rule("ioctl", errno.ENOTTY, 1, unless=_ASKING),
)
_LOOKS = (*_WITHOUT_NETWORK, *_SHARED)
_BENEATH_LANDLOCK = (*_LOOKS, *map(Rule, _ATTRIBUTES), *_BEYOND)


def sockets(network: bool, *, looks: bool = False) -> bytes:
    """Return the filter for commands in namespaces: no sockets without network, with it none within this machine.

    looks: for commands that only look, which guests may start.
    """
    return _program(_WITH_NETWORK if network else _LOOKS if looks else _WITHOUT_NETWORK, platform.machine())


def attributes() -> bytes:
    """Return the filter for commands that only Landlock confines: no sockets, and no attribute of a file changes."""
    return _program(_BENEATH_LANDLOCK, platform.machine())


@cache
def _program(rules: tuple[Rule, ...], machine: str) -> bytes:
    """Compile rules to BPF. Raises OSError if the numbers of this machine's calls are not known."""
    allowed = syscalls.allowed(machine)
    code: list[_Line] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHS[machine]),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for rule in rules:
        if rule.call in allowed:
            tests = _tests(rule)
            code += [(_EQUAL, 0, len(tests), allowed[rule.call]), *tests]
    for number in syscalls.refused(machine).values():
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    for first, last in _ranges(allowed.values()):
        code += [(_AT_LEAST, 3, 0, last + 1), (_AT_LEAST, 0, 1, first)]
        code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    code.append((_RETURN, 0, 0, _FAIL | errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def _tests(rule: Rule) -> list[_Line]:
    """Return the lines that a call of this name passes through; it goes on behind them if the rule is not about it."""
    fails = [(_RETURN, 0, 0, _FAIL | rule.error)]
    if rule.argument is None:
        return fails
    if rule.only_with:
        argument, bits = rule.only_with
        fails = [_load(argument), (_ANY_BIT, 0, 1, bits), *fails]
    tests = [(_EQUAL, len(rule.unless) - at, 0, value) for at, value in enumerate(rule.unless)]
    tests = tests or [(rule.test, 0, len(fails), rule.value)]
    return [_load(rule.argument), *tests, *fails, (_LOAD, 0, 0, _NUMBER)]


def _load(argument: int) -> _Line:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers as ranges, from the first to the last of each."""
    found = list[tuple[int, int]]()
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
