"""Tries to escape from the sandbox that it runs in, and prints on a line each what it could do, and at last "over".

`proof` runs the text of this file inside a sandbox, with arguments that say where things are. It does no harm if it
escapes. It imports little, because every start waits for it.
"""

from __future__ import annotations

import _socket
import _thread
import fcntl
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

asked = dict(word.split("=", 1) for word in sys.argv[1:])
_SET_LEASE = 1024  # of <linux/fcntl.h>, which Python names on Linux alone
level, outside, other = asked["level"], asked["outside"], int(asked["other"])
temporary = os.environ["TMPDIR"]
wrong: list[str] = []


def must_fail(words: str, attempt: Callable[..., object], *given: object) -> None:
    try:
        attempt(*given)
    except OSError:
        return
    wrong.append(words)


def must_work(words: str, attempt: Callable[..., object], *given: object) -> None:
    try:
        attempt(*given)
    except OSError as error:
        wrong.append(f"{words} ({error})")


def read(path: str) -> None:
    with open(path, "rb") as file:
        if b"secret" not in file.read():
            raise OSError


def write(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"x")


def connect(kind: int, family: int, where: object) -> None:
    tried = _socket.socket(family, kind)
    tried.settimeout(2)
    tried.connect(where)  # type: ignore[arg-type]
    tried.send(b"x")


def by_pair(where: str) -> None:
    """Send a datagram from a socket that was never made by its family's call."""
    one, _ = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_DGRAM)
    one.sendto(b"x", where)


def by_link(folder: str, target: str) -> None:
    link = os.path.join(folder, "link")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(target, link)
    write(link)


def by_swap(target: str) -> None:
    """Write to a path that another thread keeps changing between a file of its own and a target."""
    own, way, over = (os.path.join(temporary, name) for name in ("own", "way", "over"))
    write(own)
    if not os.path.lexists(way):
        os.symlink(own, way)
    swapping, tried = _thread.allocate_lock(), 0

    def swap() -> None:
        try:
            for leads in (target, own) * int(asked["swaps"]):
                os.symlink(leads, over)
                os.rename(over, way)
                seen = tried
                while tried < seen + 2:  # until a write has begun and ended meanwhile
                    time.sleep(0)
        finally:
            swapping.release()

    swapping.acquire()
    held = os.stat(own).st_size
    _thread.start_new_thread(swap, ())
    while swapping.locked():
        try:
            write(way)
            held += 1
        except OSError:
            if not os.path.lexists(way):
                raise
        tried += 1
    if os.stat(own).st_size == held:  # every byte that was written is in its own file
        raise OSError


def lease(path: str) -> None:
    opened = os.open(path, os.O_RDONLY)
    fcntl.fcntl(opened, _SET_LEASE, 0)
    os.close(opened)  # the lease ends


def borrow() -> None:
    """Make a file that others run as the user who made it."""
    os.close(os.open(os.path.join(temporary, "borrowed"), os.O_CREAT | os.O_WRONLY, 0o6755))


def see(pid: int) -> None:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if b"read wait" not in file.read():
            raise OSError


def open_one(top: str) -> None:
    """Open the first file below a folder that can be opened for writing, except of other processes; write nothing."""
    for folder, folders, names in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit() or int(name) == os.getpid()]
        for name in names:
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
            except OSError:
                continue
            return
    raise OSError


secret = os.path.join(outside, "secret")
must_fail("read a secret outside", read, secret)
for path in ("hidden/secret", os.path.join(asked["state"], "secret")):
    must_fail("read what is hidden", read, path)
must_fail("wrote outside", write, os.path.join(outside, "made"))
must_fail("wrote into a file outside", write, secret)
must_fail("wrote outside through a link", by_link, temporary, secret)
must_fail("made a file outside through a link", by_link, temporary, os.path.join(outside, "linked"))
must_fail("wrote outside by a path that was swapped", by_swap, secret)
must_fail("changed rights outside", os.chmod, secret, 0o644)
must_fail("changed times outside", os.utime, secret, (1, 1))
must_fail("saw another program", see, other)
must_fail("reached the first process", os.stat, "/proc/1/exe")
must_fail("opened a file of /sys for writing", open_one, "/sys")
must_fail("opened a file of /proc for writing", open_one, "/proc")
if not any(os.walk("/proc")):  # it may not list it
    for part in ("/proc/sys", "/proc/self"):
        must_fail("opened a file of /proc for writing", open_one, part)
must_fail("held up others by a lease", lease, "AGENTS.md")
if sys.platform == "linux":  # elsewhere no sandbox says anything about it
    must_fail("made a file that runs as its user", borrow)
if level != "network":
    must_fail("reached TCP", connect, _socket.SOCK_STREAM, _socket.AF_INET, ("127.0.0.1", int(asked["tcp"])))
    must_fail("reached UDP", connect, _socket.SOCK_DGRAM, _socket.AF_INET, ("127.0.0.1", int(asked["udp"])))
for path in (asked["near"], asked["far"]):
    must_fail("reached a Unix socket", connect, _socket.SOCK_STREAM, _socket.AF_UNIX, path)
must_fail("reached a Unix socket by a datagram", by_pair, asked["letters"])
must_fail("reached another program", os.kill, other, 15)  # whether it has ended is looked at from outside as well
if level == "look":
    must_fail("wrote into its room", write, "made")
    must_fail("wrote into a file of its room", write, "AGENTS.md")
    must_fail("changed rights in its room", os.chmod, "AGENTS.md", 0o644)
    must_work("could not read its room", read, "AGENTS.md")
else:
    must_work("could not write into its room", write, "made")
    must_fail("made a file outside through a link of its room", by_link, ".", os.path.join(outside, "linked"))
    for path in ("AGENTS.md", ".git/config", ".git/hooks/kept"):
        kept = f"what its room keeps ({path})"
        must_fail(f"wrote into {kept}", write, path)
        must_fail(f"wrote into {kept} through a link", by_link, ".", path)
        must_fail(f"wrote into {kept} by a path that was swapped", by_swap, os.path.abspath(path))
        must_fail(f"renamed {kept}", os.rename, path, "moved")
        must_fail(f"replaced {kept}", os.rename, "made", path)
        must_fail(f"changed rights of {kept}", os.chmod, path, 0o644)
    for folder in (".git/hooks", ".git/hooks/folder", "memory"):
        must_fail(f"made a file in {folder}", write, f"{folder}/file")
        must_fail(f"made a link in {folder}", os.symlink, "/made", f"{folder}/link")
        must_fail(f"made a file in {folder} through a link", by_link, ".", os.path.abspath(f"{folder}/linked"))
        must_fail(f"made a folder in {folder}", os.mkdir, f"{folder}/folder")
        must_fail(f"moved {folder}", os.rename, folder, "moved")
must_work("had no temporary folder", write, os.path.join(temporary, "made"))
must_work("had no /dev/null", write, "/dev/null")
must_work("had no /dev/urandom", open, "/dev/urandom")
print(*wrong, "over", sep="\n")  # noqa: T201
