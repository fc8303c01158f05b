"""Runs many lines in one sandbox, each in a bash of its own: a program that is run inside, its words are settings.

It takes the lines from a file of its room, which it has read before the first of them runs, and says one line of JSON
about each: its number and what it wrote. Where the room may be written, it is made anew between them, from memory.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

SECONDS, MOST = float(sys.argv[1]), 64 * 1024
KEPT = set(sys.argv[3:])  # paths that are not made anew: nobody can have changed them


def tree(top: str) -> dict[str, tuple[str, int, bytes]]:
    """What is below a folder, but for what cannot be read: kind, mode and content."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = os.path.relpath(os.path.join(folder, name), top)
            with suppress(OSError):
                mode = os.lstat(path).st_mode
                if os.path.islink(path):
                    found[path] = ("link", mode, os.readlink(path).encode())
                elif os.path.isdir(path):
                    found[path] = ("folder", mode, b"")
                elif os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[path] = ("file", mode, file.read())
    return found


def is_kept(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in KEPT)


def renew(room: str, before: dict[str, tuple[str, int, bytes]]) -> None:
    """Make the room as it was, as far as that is possible."""
    now = tree(room)
    for path in sorted(set(now) | set(before), reverse=True):
        if now.get(path) != before.get(path) and path in now and not is_kept(path):
            with suppress(OSError):
                shutil.rmtree(path) if now[path][0] == "folder" else os.unlink(path)
    for path, (kind, mode, content) in sorted(before.items()):
        if now.get(path) == (kind, mode, content) or is_kept(path):
            continue
        with suppress(OSError):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            if kind == "link":
                os.symlink(content, path)
            elif kind == "folder":
                os.mkdir(path)
            else:
                with open(path, "wb") as file:
                    file.write(content)
            os.chmod(path, mode & 0o7777)


def run(line: str) -> bytes:
    """What it writes within its time, as much as is kept of it."""
    output, end = b"", time.monotonic() + SECONDS
    with subprocess.Popen(
        ["/bin/bash", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as one:
        assert one.stdout is not None
        while len(output) < MOST and (left := end - time.monotonic()) > 0:
            if select.select([one.stdout], [], [], left)[0]:
                data = os.read(one.stdout.fileno(), MOST)
                if not data:
                    break
                output += data
        with suppress(OSError):
            os.killpg(one.pid, signal.SIGKILL)
    return output


room = os.getcwd()
with open(sys.argv[2]) as given:
    lines: list[tuple[int, str]] = json.load(given)
writes = not os.statvfs(".").f_flag & os.ST_RDONLY and os.access(".", os.W_OK)
with suppress(OSError):
    os.unlink(sys.argv[2])
before = tree(room)
for number, line in lines:
    os.chdir(room)
    print(json.dumps([number, ""]), flush=True)  # noqa: T201
    said = run(line)
    os.chdir(room)
    print(json.dumps([number, base64.b64encode(said).decode()]), flush=True)  # noqa: T201
    if writes:
        renew(room, before)
