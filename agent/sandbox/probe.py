"""Tries to escape from the sandbox that it runs in, and prints as JSON what it could do, in words.

`proof` runs the text of this file inside a sandbox, with one argument, JSON that says where things are. It does no harm
if it escapes.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

asked = json.loads(sys.argv[1])
outside = asked["outside"]
wrong: list[str] = []


def must_fail(words: str, attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except OSError:
        return
    wrong.append(words)


def must_work(words: str, attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except OSError as error:
        wrong.append(f"{words} ({error})")


def read(path: str) -> None:
    with open(path, "rb") as file:
        if b"secret" not in file.read():
            raise OSError


def write(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"x")


def connect(kind: int, family: int, where: Any) -> None:
    with socket.socket(family, kind) as tried:
        tried.settimeout(2)
        tried.connect(where)
        tried.send(b"x")


def by_link() -> None:
    link = os.path.join(os.environ["TMPDIR"], "link")
    os.symlink(os.path.join(outside, "secret"), link)
    write(link)


def see(pid: int) -> None:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if b"read wait" not in file.read():
            raise OSError


secret = os.path.join(outside, "secret")
must_fail("read a secret outside", lambda: read(secret))
must_fail("read what is hidden", lambda: read("hidden/secret"))
must_fail("wrote outside", lambda: write(os.path.join(outside, "made")))
must_fail("wrote into a file outside", lambda: write(secret))
must_fail("wrote outside through a link", by_link)
must_fail("changed rights outside", lambda: os.chmod(secret, 0o644))
must_fail("changed times outside", lambda: os.utime(secret, (1, 1)))
must_fail("saw another program", lambda: see(asked["other"]))
must_fail("reached TCP", lambda: connect(socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", asked["tcp"])))
must_fail("reached UDP", lambda: connect(socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", asked["udp"])))
for path in asked["sockets"]:
    must_fail("reached a Unix socket", partial(connect, socket.SOCK_STREAM, socket.AF_UNIX, path))
with suppress(OSError):
    os.kill(asked["other"], signal.SIGTERM)  # whether it has ended is looked at from outside
if asked["level"] == "look":
    must_fail("wrote into its room", lambda: write("made"))
    must_fail("wrote into a file of its room", lambda: write("AGENTS.md"))
    must_fail("changed rights in its room", lambda: os.chmod("AGENTS.md", 0o644))
    must_work("could not read its room", lambda: read("AGENTS.md"))
else:
    must_work("could not write into its room", lambda: write("made"))
    must_fail("wrote into what its room keeps", lambda: write("AGENTS.md"))
    must_fail("renamed what its room keeps", lambda: os.rename("AGENTS.md", "moved"))
    must_fail("replaced what its room keeps", lambda: os.rename("made", "AGENTS.md"))
    must_fail("changed rights of what its room keeps", lambda: os.chmod("AGENTS.md", 0o644))
must_work("had no temporary folder", lambda: write(os.path.join(os.environ["TMPDIR"], "made")))
must_work("had no /dev/null", lambda: write("/dev/null"))
must_work("had no /dev/urandom", lambda: os.close(os.open("/dev/urandom", os.O_RDONLY)))
print(json.dumps(wrong))  # noqa: T201
