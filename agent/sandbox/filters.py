"""Filters of system calls for seccomp: which calls fail in every command.

A filter is a program in the kernel's classic BPF (seccomp(2)), which tests the architecture, the number of the call and
sometimes one argument. Numbers are from <asm/unistd.h>. Other architectures have no filter, and so no sandbox.
"""

import errno
import platform
import struct
from dataclasses import dataclass

_ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS = {
    "x86_64": {
        "socket": 41, "clone": 56, "unshare": 272, "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321,
        "perf_event_open": 298, "userfaultfd": 323, "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92,
        "fchown": 93, "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
        "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
        "fremovexattr": 199, "creat": 85, "mknod": 133, "mknodat": 259, "prlimit64": 302, "mq_open": 240,
        "mq_unlink": 241, "ioctl": 16, "inotify_init": 253, "inotify_init1": 294, "memfd_create": 319, "shmget": 29,
    },
    "aarch64": {
        "socket": 198, "clone": 220, "unshare": 97, "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280,
        "perf_event_open": 241, "userfaultfd": 282, "fchmod": 52, "fchmodat": 53, "fchown": 55, "fchownat": 54,
        "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
        "fremovexattr": 16, "mknodat": 33, "prlimit64": 261, "mq_open": 180, "mq_unlink": 181, "ioctl": 29,
        "inotify_init1": 26, "memfd_create": 279, "shmget": 194,
    },
}  # fmt: skip
# The same everywhere.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435, "fchmodat2": 452,
    "setxattrat": 463, "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
_X32 = 0x40000000
_NEW_USER = 0x10000000  # of clone(2)
_AF_UNIX, _AF_VSOCK = 1, 40
_SET_IDS = 0o6000  # of chmod(2)
_SET_FLAGS = (0x40086602, 0x40087602, 0x401C5820)  # of ioctl(2): flags, versions and projects of files

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data


@dataclass(frozen=True, slots=True)
class Rule:
    """A system call that fails."""

    call: str
    # The errno with which it fails.
    error: int = errno.EPERM
    # The index of the argument that decides, by `test` with `value`; None: the call always fails.
    argument: int | None = None
    test: int = _EQUAL
    value: int = 0


# Session keys, ways around a filter, and user namespaces, in which a command would get privileges again. clone3 hides
# its flags from a filter, and libraries use clone instead if clone3 is missing.
_ALWAYS = (
    *(Rule(call) for call in ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd")),
    *(Rule(call, errno.ENOSYS) for call in ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")),
    *(Rule(call, errno.EPERM, 0, _ANY_BIT, _NEW_USER) for call in ("clone", "unshare")),
    # Memory that is not counted for any process, and files that let others run as the user of the service.
    *(Rule(call, errno.ENOSYS) for call in ("memfd_create", "shmget")),
    *(Rule(call, errno.EPERM, 1, _ANY_BIT, _SET_IDS) for call in ("chmod", "fchmod")),
    *(Rule(call, errno.EPERM, 2, _ANY_BIT, _SET_IDS) for call in ("fchmodat", "fchmodat2")),
)
# A file in the room may be a socket, which works on a read-only mount as well.
_WITHOUT_NETWORK = (*_ALWAYS, Rule("socket", errno.EACCES))
_WITH_NETWORK = (*_ALWAYS, *(Rule("socket", errno.EACCES, 0, _EQUAL, family) for family in (_AF_UNIX, _AF_VSOCK)))

# Calls that change rights, owners, times and attributes of a file by its path, which Landlock does not restrict.
_BY_PATH = tuple(
    Rule(call)
    for call in (
        *("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat", "setxattr"),
        *("lsetxattr", "removexattr", "lremovexattr", "setxattrat", "removexattrat", "file_setattr"),
    )
)
# The same by an open descriptor, which may be of a system file that was opened for reading.
_BY_DESCRIPTOR = tuple(Rule(call) for call in ("fchmod", "fchown", "fsetxattr", "fremovexattr"))


# Other calls that reach beyond the folders that Landlock grants: limits of other processes, message queues, and file
# notifications; and calls that sandlock does not handle, by which a protected file could be replaced.
_BEYOND = (
    Rule("prlimit64", errno.EPERM, 0, _AT_LEAST, 1),
    *(Rule(call, errno.ENOSYS) for call in ("mq_open", "mq_unlink", "inotify_init", "inotify_init1")),
    *(Rule(call) for call in ("creat", "mknod", "mknodat")),
    *(Rule("ioctl", errno.EPERM, 1, _EQUAL, command) for command in _SET_FLAGS),
)


def sockets(network: bool) -> bytes:
    """Return the filter for commands in namespaces: no sockets without network, with it none within this machine."""
    return _program(_WITH_NETWORK if network else _WITHOUT_NETWORK)


def attributes(network: bool, times: bool) -> bytes:
    """Return the filter for commands that only Landlock confines: as `sockets`, and no attribute of a file changes.

    times: allow setting the times of open files to now, as `touch` does with a new file.
    """
    to_now = (Rule("utimensat", errno.EPERM, 2, _AT_LEAST, 1), Rule("utimensat", errno.EPERM, 1, _AT_LEAST, 1))
    times_rules = to_now if times else (Rule("utimensat"),)
    reach = _WITH_NETWORK if network else _WITHOUT_NETWORK
    return _program((*reach, *_BY_PATH, *_BY_DESCRIPTOR, *times_rules, *_BEYOND))


def _program(rules: tuple[Rule, ...]) -> bytes:
    """Compile rules to BPF. Raises OSError if the numbers of this machine's calls are not known."""
    machine = platform.machine()
    if machine not in _ARCHS:
        raise OSError(f"there is no filter of system calls for {machine}")
    numbers = _NUMBERS[machine] | _COMMON
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHS[machine]),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for rule in rules:
        if rule.call not in numbers:
            continue
        fails = (_RETURN, 0, 0, _FAIL | rule.error)
        if rule.argument is None:
            code += [(_EQUAL, 0, 1, numbers[rule.call]), fails]
            continue
        low = _ARGUMENTS + 8 * rule.argument
        tests = [(_LOAD, 0, 0, low), (rule.test, 0, 1, rule.value), fails]
        if rule.test == _AT_LEAST and rule.call == "utimensat":  # of a pointer the upper half counts as well
            tests += [(_LOAD, 0, 0, low + 4), (rule.test, 0, 1, rule.value), fails]
        tests.append((_LOAD, 0, 0, _NUMBER))
        code += [(_EQUAL, 0, len(tests), numbers[rule.call]), *tests]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in code)
