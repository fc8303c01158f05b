"""Filters of system calls: what they make of each call, on each kind of machine, and that the kernel does so."""

import errno
import os
import platform
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.sandbox import syscalls
from agent.sandbox.filters import attributes, sockets
from agent.sandbox.proof import Setting
from tests.agent.sandbox.conftest import Run

ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = 0
_LINE = struct.Struct("=HBBI")
# Of Linux, in its UAPI headers.
READ = {"x86_64": 0, "aarch64": 63}
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_TIPC, AF_ALG, AF_VSOCK = 1, 2, 10, 16, 17, 30, 38, 40
NEW_MOUNTS, NEW_USER, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
STREAM, DGRAM, RAW, SEQPACKET, NONBLOCK, CLOEXEC = 1, 2, 3, 5, 0x800, 0x80000
F_DUPFD, F_SETFD, F_SETFL, F_GETLK, F_SETLKW, F_SETOWN, F_SETSIG = 0, 2, 4, 5, 7, 8, 10
F_OFD_SETLKW, F_SETLEASE, F_NOTIFY, F_DUPFD_CLOEXEC, F_SETPIPE_SZ = 38, 1024, 1026, 1030, 1031
TCGETS, TIOCSTI, TIOCLINUX, FIONREAD, FIOCLEX = 0x5401, 0x5412, 0x541C, 0x541B, 0x5451
BTRFS_SUBVOL_CREATE, FS_IOC_ENABLE_VERITY = 0x5000940E, 0x40806685
NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT, NETLINK_GENERIC = 0, 4, 15, 16


def run(code: bytes, arch: int, number: int, *arguments: int) -> int:
    """What a filter makes of a call: the error that it gets, 0 for none. It runs classic BPF as seccomp does."""
    call = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = list(_LINE.iter_unpack(code))
    at, held = 0, 0
    while True:
        operation, yes, no, value = lines[at]
        at += 1
        match operation:
            case 0x20:
                (held,) = struct.unpack_from("=I", call, value)
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x45:
                at += yes if held & value else no
            case 0x06:
                assert value >> 16 in (0x7FFF, 0x0005)
                return value & 0xFFFF
            case _:
                raise AssertionError(operation)


@pytest.fixture(params=ARCHS)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("platform.machine", lambda: request.param)
    return str(request.param)


Make = Callable[[], bytes]
MADE: dict[str, Make] = {
    "sockets": lambda: sockets(False),
    "sockets, network": lambda: sockets(True),
    "looks": lambda: sockets(False, looks=True),
    "attributes": attributes,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_each_is_a_program_that_the_kernel_takes(machine: str, make: Make) -> None:
    code = make()
    assert len(code) % _LINE.size == 0
    lines = list(_LINE.iter_unpack(code))
    assert len(lines) <= 4096
    assert len(code) <= 4096, "a pipe takes it at once, whoever reads"
    assert lines[-1][0] == 0x06
    for at, (operation, yes, no, value) in enumerate(lines):
        assert operation in (0x20, 0x15, 0x35, 0x45, 0x06)
        if operation in (0x15, 0x35, 0x45):
            assert at + 1 + max(yes, no) < len(lines)
        if operation == 0x20:
            assert value % 4 == 0
            assert value < 64


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_calls_of_another_kind_of_machine_fail(machine: str, make: Make) -> None:
    code, own = make(), ARCHS[machine]
    for arch in (0x40000003, 0, *ARCHS.values()):
        assert run(code, arch, READ[machine]) == (ALLOWED if arch == own else errno.ENOSYS)
    if machine == "x86_64":
        for number in (0x40000000, 0x40000000 + 41, 0xFFFFFFFF):
            assert run(code, own, number) == errno.ENOSYS, "numbers of another convention"


def of(machine: str, code: bytes, call: str, *arguments: int) -> int:
    """What a filter makes of a call by its name."""
    numbers = syscalls.allowed(machine) | syscalls.refused(machine)
    return run(code, ARCHS[machine], numbers[call], *arguments)


def test_each_call_gets_what_it_should(machine: str) -> None:
    for make in MADE.values():
        code = make()
        for call in ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "mount", "setns"):
            assert of(machine, code, call) == errno.EPERM, call
        for call in ("clone", "unshare"):
            for flags in (NEW_USER, NEW_USER | NEW_NETWORK | 17, NEW_NETWORK, NEW_MOUNTS):
                assert of(machine, code, call, flags) == errno.EPERM, call
            assert of(machine, code, call, 17) == of(machine, code, call, 0) == ALLOWED, call
        for family in (AF_UNIX, AF_VSOCK, AF_ALG, AF_PACKET):
            assert of(machine, code, "socket", family) == errno.EACCES
    assert of(machine, sockets(False), "socket", AF_INET) == errno.EACCES
    for family in (AF_INET, AF_INET6, AF_NETLINK):
        assert of(machine, sockets(True), "socket", family) == ALLOWED
        assert of(machine, attributes(), "socket", family) == errno.EACCES
    for family, protocol in ((AF_INET, 6), (AF_INET6, 17), (AF_NETLINK, NETLINK_ROUTE)):
        assert of(machine, sockets(True), "socket", family, STREAM, protocol) == ALLOWED
    for protocol in (NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT, NETLINK_GENERIC):
        assert of(machine, sockets(True), "socket", AF_NETLINK, RAW, protocol) == errno.EACCES
    by_path = set(syscalls.allowed(machine)) & {
        *("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat", "fchmod"),
        *("utimensat", "setxattr", "lsetxattr", "removexattr", "lremovexattr", "fchown", "fsetxattr", "fremovexattr"),
    }
    assert len(by_path) > 10
    for call in by_path:
        assert of(machine, attributes(), call) == errno.EPERM, call
        assert of(machine, sockets(False), call) == ALLOWED, call


# Of each kind of thing that a system call can be about, and what was made since: by their names on x86_64.
UNKNOWN = {
    "x86_64": {
        "clone3": 435, "io_uring_setup": 425, "io_setup": 206, "memfd_create": 319, "memfd_secret": 447,
        "shmget": 29, "msgget": 68, "setxattrat": 463, "file_setattr": 469, "open_tree": 428, "move_mount": 429,
        "fsopen": 430, "mount_setattr": 442, "openat2": 437, "open_by_handle_at": 304, "name_to_handle_at": 303,
        "kexec_load": 246, "fanotify_init": 300, "vmsplice": 278, "modify_ldt": 154, "init_module": 175, "next": 500,
    },
    "aarch64": {
        "clone3": 435, "io_setup": 0, "memfd_create": 279, "shmget": 194, "setxattrat": 463, "open_tree": 428,
        "openat2": 437, "open_by_handle_at": 265, "kexec_load": 104, "fanotify_init": 262, "next": 500,
    },
}  # fmt: skip


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_is_not_allowed_is_not_known(machine: str, make: Make) -> None:
    code = make()
    for call, number in UNKNOWN[machine].items():
        assert run(code, ARCHS[machine], number) == errno.ENOSYS, call
    known = {*syscalls.allowed(machine).values(), *syscalls.refused(machine).values()}
    for number in range(1024):
        assert (run(code, ARCHS[machine], number) == errno.ENOSYS) >= (number not in known), number


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_arguments_decide_about_some(machine: str, make: Make) -> None:
    """The kernel takes the lower half of these arguments, so what stands above it changes nothing."""
    code = make()
    for above in (0, 1 << 32, 0xFFFFFFFF << 32):
        for command in (F_SETLEASE, F_NOTIFY, F_SETOWN, F_SETSIG):
            assert of(machine, code, "fcntl", 3, command | above) == errno.EINVAL, command
        for command in (F_DUPFD, F_SETFD, F_SETFL, F_GETLK, F_SETLKW, F_OFD_SETLKW, F_DUPFD_CLOEXEC, F_SETPIPE_SZ):
            assert of(machine, code, "fcntl", 3, command | above) == ALLOWED, command
        for command in (TIOCSTI, TIOCLINUX):
            assert of(machine, code, "ioctl", 0, command | above) == errno.EPERM, command
        assert of(machine, code, "ioctl", 0, TCGETS | above) == ALLOWED
        for kind in (STREAM, STREAM | CLOEXEC, STREAM | CLOEXEC | NONBLOCK):
            assert of(machine, code, "socketpair", AF_UNIX | above, kind | above) == ALLOWED, kind
        for kind in (DGRAM, DGRAM | CLOEXEC, SEQPACKET, RAW):
            assert of(machine, code, "socketpair", AF_UNIX | above, kind | above) == errno.EACCES, kind
        assert of(machine, code, "socketpair", AF_TIPC, STREAM) == errno.EACCES
        assert of(machine, code, "personality", 0x0400000 | above) == errno.EPERM
        assert of(machine, code, "personality", 0xFFFFFFFF) == ALLOWED
        for flags in (os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_RDWR):
            assert of(machine, code, "openat", 3, 0, flags | above, 0o4755 | above) == errno.EPERM
            assert of(machine, code, "openat", 3, 0, flags, 0o2755) == errno.EPERM
            assert of(machine, code, "openat", 3, 0, flags, 0o755) == ALLOWED
        assert of(machine, code, "openat", 3, 0, os.O_RDONLY, 0o6755) == ALLOWED, "a mode that counts for nothing"
        assert of(machine, code, "mknodat", 3, 0, 0o106755) == errno.EPERM
    if machine == "x86_64":
        for call in ("creat", "mknod"):
            assert of(machine, code, call, 0, 0o6755) == errno.EPERM
        assert of(machine, code, "open", 0, os.O_CREAT, 0o6755) == errno.EPERM
        assert of(machine, code, "open", 0, os.O_CREAT, 0o755) == ALLOWED


def test_other_processes_are_left_alone_beneath_landlock(machine: str) -> None:
    code = attributes()
    for call in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        assert of(machine, code, call, 0) == ALLOWED, call
        assert of(machine, code, call, 1) == of(machine, code, call, 4711) == errno.EPERM, call
        assert of(machine, sockets(False), call, 4711) == ALLOWED, call
    assert of(machine, code, "setpriority") == errno.EPERM
    for call in ("semget", "semctl", "semop", "semtimedop", "inotify_init1"):
        assert of(machine, code, call) == errno.ENOSYS, call
    for call in ("mq_open", "inotify_init1"):  # of which one guest could take all that there are
        assert of(machine, sockets(False, looks=True), call) == errno.ENOSYS, call
        assert of(machine, sockets(False), call) == ALLOWED, call
    for command in (0x40086602, 0x40087602, 0x401C5820, BTRFS_SUBVOL_CREATE, FS_IOC_ENABLE_VERITY):
        assert of(machine, code, "ioctl", 3, command) == errno.ENOTTY
    for command in (TCGETS, FIONREAD, FIOCLEX):
        assert of(machine, code, "ioctl", 3, command) == ALLOWED


def test_it_is_small_and_each_call_passes_through_little_of_it(machine: str) -> None:
    for make in MADE.values():
        assert len(make()) < 3200


def test_where_the_numbers_are_not_known_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    for make in MADE.values():
        with pytest.raises(OSError, match="no filter of system calls for riscv64"):
            make()


HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    found = [Path(name) for name in HEADERS[machine] if Path(name).exists()]
    if not found:
        pytest.skip("the headers of the kernel are not installed")
    defined = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", found[0].read_text()))
    defined |= {"newfstatat": defined["fstatat"]} if "fstatat" in defined else {}
    ours = syscalls.allowed(machine) | syscalls.refused(machine)
    known = {name: number for name, number in ours.items() if name in defined}
    assert len(known) > len(ours) - 3
    assert known == {name: int(defined[name]) for name in known}


REFUSED = r"""
import ctypes, fcntl, os, socket, errno
libc = ctypes.CDLL(None, use_errno=True)
def said(words, act):
    try:
        found = act()
    except OSError as error:
        print(words, errno.errorcode[error.errno])
    else:
        print(words, errno.errorcode[ctypes.get_errno()] if found == -1 else "works")
own = os.path.join(os.environ["TMPDIR"], "own")
open(own, "w").close()
said("chmod", lambda: os.chmod(own, 0o600))
said("fchmod", lambda: os.fchmod(os.open(own, os.O_RDONLY), 0o600))
said("utime", lambda: os.utime(own, (1, 1)))
said("inet", lambda: socket.socket() and None)
said("unix", lambda: socket.socket(socket.AF_UNIX) and None)
said("pair", lambda: socket.socketpair() and None)
said("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) and None)
said("lease", lambda: fcntl.fcntl(os.open(own, os.O_RDONLY), 1024, 0) and None)
said("lock", lambda: fcntl.lockf(os.open(own, os.O_RDWR), fcntl.LOCK_EX) and None)
said("borrowed", lambda: os.open(own + "2", os.O_CREAT, 0o6755) and None)
said("user", lambda: libc.unshare(0x10000000))
said("keys", lambda: libc.syscall(NUMBER, 0, 0, 0, 0, 0))
said("ring", lambda: libc.syscall(425, 1, 0))
said("fork", lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0) and None)
"""


@pytest.mark.parametrize("level", ["look", "work"])
async def test_inside_the_kernel_refuses_them(run: Run, name: Setting, room: Path, level: str) -> None:
    number = syscalls.refused(platform.machine())["keyctl"]
    (room / "calls.py").write_text(REFUSED.replace("NUMBER", str(number)))
    said = (await run("python3 calls.py", needs=level)).splitlines()
    own = "EPERM" if name == "sandlock" else "works"
    assert said == [
        "[exit code 0]", f"chmod {own}", f"fchmod {own}", f"utime {own}", "inet EACCES", "unix EACCES", "pair works",
        "datagrams EACCES", "lease EINVAL", "lock works", "borrowed EPERM", "user EPERM", "keys EPERM", "ring ENOSYS",
        "fork works",
    ]  # fmt: skip
