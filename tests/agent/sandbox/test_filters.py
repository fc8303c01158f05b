"""Filters of system calls: what they make of each call, on each kind of machine, and that the kernel does so."""

import errno
import platform
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.sandbox import filters
from agent.sandbox.filters import attributes, sockets
from agent.sandbox.proof import Setting
from tests.agent.sandbox.conftest import Run

ARCHS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = 0
_LINE = struct.Struct("=HBBI")
# Of Linux, in its UAPI headers.
READ = {"x86_64": 0, "aarch64": 63}
AF_UNIX, AF_INET, AF_VSOCK = 1, 2, 40
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000


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
    "attributes": lambda: attributes(False, False),
    "attributes, times": lambda: attributes(False, True),
    "attributes, network, times": lambda: attributes(True, True),
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


def test_each_call_gets_what_it_should(machine: str) -> None:
    numbers = filters._NUMBERS[machine] | filters._COMMON

    def of(code: bytes, call: str, *arguments: int) -> int:
        return run(code, ARCHS[machine], numbers[call], *arguments)

    for make in MADE.values():
        code = make()
        for call in ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd"):
            assert of(code, call) == errno.EPERM, call
        for call in ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"):
            assert of(code, call) == errno.ENOSYS, call
        for call in ("clone", "unshare"):
            assert of(code, call, NEW_USER) == of(code, call, NEW_USER | NEW_NETWORK | 17) == errno.EPERM, call
            assert of(code, call, 17) == of(code, call, 0) == ALLOWED, call
        assert of(code, "socket", AF_UNIX) == of(code, "socket", AF_VSOCK) == errno.EACCES
    assert of(sockets(False), "socket", AF_INET) == errno.EACCES
    assert of(sockets(True), "socket", AF_INET) == of(attributes(True, True), "socket", AF_INET) == ALLOWED
    by_path = set(numbers) & {
        *("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat", "fchmod"),
        *("setxattr", "lsetxattr", "setxattrat", "removexattr", "lremovexattr", "removexattrat", "file_setattr"),
        *("fchown", "fsetxattr", "fremovexattr"),
    }
    assert len(by_path) > 10
    for call in by_path:
        assert of(attributes(False, False), call) == of(attributes(True, True), call) == errno.EPERM, call
        assert of(sockets(False), call) == ALLOWED, call


def test_times_are_set_to_now_and_of_open_files_alone(machine: str) -> None:
    number, own = (filters._NUMBERS[machine]["utimensat"], ARCHS[machine])
    never, new = attributes(False, False), attributes(False, True)
    for path, times, wanted in (
        (0, 0, ALLOWED),
        (0x7FFF_0000_1000, 0, errno.EPERM),
        (0, 0x7FFF_0000_1000, errno.EPERM),
        (0x1_0000_0000, 0, errno.EPERM),  # nothing in the lower half
        (0, 0x1_0000_0000, errno.EPERM),
    ):
        assert run(new, own, number, 3, path, times) == wanted, (path, times)
        assert run(never, own, number, 3, path, times) == errno.EPERM


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
    ours = filters._NUMBERS[machine] | filters._COMMON
    known = {name: number for name, number in ours.items() if name in defined}
    assert len(known) > len(filters._NUMBERS[machine]) - 3
    assert known == {name: int(defined[name]) for name in known}


REFUSED = r"""
import ctypes, os, socket, errno
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
said("user", lambda: libc.unshare(0x10000000))
said("keys", lambda: libc.syscall(NUMBER, 0, 0, 0, 0, 0))
said("ring", lambda: libc.syscall(425, 1, 0))
said("fork", lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0) and None)
"""


@pytest.mark.parametrize("level", ["look", "work"])
async def test_inside_the_kernel_refuses_them(run: Run, name: Setting, room: Path, level: str) -> None:
    number = filters._NUMBERS[platform.machine()]["keyctl"]
    (room / "calls.py").write_text(REFUSED.replace("NUMBER", str(number)))
    said = (await run("python3 calls.py", needs=level)).splitlines()
    own, ring = ("EPERM", "EPERM") if name == "sandlock" else ("works", "ENOSYS")  # its library forbids some as well
    assert said == [
        "[exit code 0]", f"chmod {own}", f"fchmod {own}", f"utime {own}", "inet EACCES", "unix EACCES", "pair works",
        "user EPERM", "keys EPERM", f"ring {ring}", "fork works",
    ]  # fmt: skip
