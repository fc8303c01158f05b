"""What a command tries, to change or to reach what it must not: a program that is run inside, in a room.

Its words: the folder outside, ports of ours, a pid. It says what it got, a line each.
"""

import ctypes
import os
import resource
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

OUT, TCP, UDP, PID = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
KEPT = ("AGENTS.md", "MEMORY.md", ".git/config", ".git/hooks/pre-commit", "tool-results/one.txt", "media/two.txt")
libc = ctypes.CDLL(None, use_errno=True)


def attempt(words: str, act: Callable[[], object]) -> None:
    with suppress(OSError, ValueError):
        found = act()
        if isinstance(found, bytes | str) and "swordfish" in str(found):
            print("READ", words)  # noqa: T201


def append(path: str) -> None:
    with open(path, "a") as file:
        file.write("evil")


def by_descriptor(path: str) -> None:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    file = os.open(os.path.basename(path), os.O_WRONLY, dir_fd=folder)
    os.write(file, b"evil")


def by_own_descriptor(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fchmod(file, 0o777)
    os.write(os.open(f"/proc/self/fd/{file}", os.O_WRONLY), b"evil")


def by_link(path: str) -> None:
    os.symlink(path, "way")
    try:
        append("way")
    finally:
        os.unlink("way")


def by_swap(path: str) -> None:
    Path("bait").write_text("evil")
    libc.renameat2(-100, b"bait", -100, path.encode(), 2)
    os.rename("bait", path)


def by_folder(path: str) -> None:
    above = os.path.dirname(os.path.abspath(path))
    os.rename(above, f"{above}-moved")
    os.makedirs(above)
    append(path)


def reach(family: int, kind: int, where: object) -> None:
    with socket.socket(family, kind) as one:
        one.settimeout(1)
        one.connect(where)  # type: ignore[arg-type]
        one.send(b"swordfish")


for target in (*KEPT, f"{OUT}/precious", f"{OUT}/folder/precious"):
    attempt(f"append {target}", lambda target=target: append(target))
    attempt(f"descriptor {target}", lambda target=target: by_descriptor(target))
    attempt(f"own descriptor {target}", lambda target=target: by_own_descriptor(target))
    attempt(f"link {target}", lambda target=target: by_link(os.path.abspath(target)))
    attempt(f"hard link {target}", lambda target=target: (os.link(target, "hard"), append("hard")))
    attempt(f"swap {target}", lambda target=target: by_swap(target))
    attempt(f"creat {target}", lambda target=target: os.write(libc.creat(target.encode(), 0o600), b"evil"))
    attempt(f"truncate {target}", lambda target=target: os.truncate(target, 0))
    attempt(f"chmod {target}", lambda target=target: os.chmod(target, 0o777))
    attempt(f"utime {target}", lambda target=target: os.utime(target, (1, 1)))
    attempt(f"chown {target}", lambda target=target: os.chown(target, 1, 1))
    attempt(f"attribute {target}", lambda target=target: os.setxattr(target, "user.x", b"1"))
    attempt(f"rename {target}", lambda target=target: os.rename(target, "moved"))
    attempt(f"unlink {target}", lambda target=target: os.unlink(target))
    attempt(f"through proc {target}", lambda target=target: append(f"/proc/self/root{os.path.abspath(target)}"))
    attempt(f"through cwd {target}", lambda target=target: append(f"/proc/self/cwd/{target}"))
    attempt(f"folder {target}", lambda target=target: by_folder(target))
for path in (f"{OUT}/precious", "../outside/precious", "leads-out/precious", "/proc/self/root" + OUT + "/precious"):
    attempt(f"read {path}", lambda path=path: Path(path).read_text())
attempt("make outside", lambda: append(f"{OUT}/made"))
attempt("make outside by a link of the room", lambda: append("leads-out/made"))
attempt("make outside by a link to what is not there", lambda: (os.symlink(f"{OUT}/new", "new"), append("new")))
for first in (1, 2):
    attempt(f"change the program of process {first}", lambda first=first: os.chmod(f"/proc/{first}/exe", 0o777))
    attempt(
        f"see the files of process {first}", lambda first=first: Path(f"/proc/{first}/root{OUT}/precious").read_text()
    )
for path in ("/proc/self/oom_score_adj", "/proc/sys/vm/swappiness", "/proc/sysrq-trigger"):
    attempt(f"open {path}", lambda path=path: print("GOT", path) if os.open(path, os.O_WRONLY) else None)  # noqa: T201
attempt("make a folder outside", lambda: os.mkdir(f"{OUT}/made-folder"))
attempt("bind a socket outside", lambda: socket.socket(socket.AF_UNIX).bind(f"{OUT}/bound"))
attempt("TCP", lambda: reach(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", TCP)))
attempt("UDP", lambda: reach(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", UDP)))
attempt("UDP by sendto", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", UDP)))
for path in (f"{OUT}/socket", os.path.abspath("socket"), f"\0{OUT}"):
    attempt(f"socket {path}", lambda path=path: reach(socket.AF_UNIX, socket.SOCK_STREAM, path))
    attempt(f"datagrams {path}", lambda path=path: reach(socket.AF_UNIX, socket.SOCK_DGRAM, path))
for part in ("mem", "environ", "cmdline"):
    attempt(f"{part} of another", lambda part=part: Path(f"/proc/{PID}/{part}").read_bytes())
attempt("limit another", lambda: resource.prlimit(PID, resource.RLIMIT_CPU, (1, 1)))
attempt("be somebody else's", lambda: (append("taken"), os.chmod("taken", 0o6755)))
attempt("be somebody else's at once", lambda: os.open("taken-too", os.O_CREAT | os.O_WRONLY, 0o6755))
attempt("end another", lambda: os.kill(PID, 15))
attempt("trace another", lambda: libc.ptrace(16, PID, 0, 0))
attempt("user namespace", lambda: print("GOT a namespace") if libc.unshare(0x10000000) == 0 else None)  # noqa: T201
attempt("mount namespace", lambda: print("GOT a mount") if libc.unshare(0x00020000) == 0 else None)  # noqa: T201
