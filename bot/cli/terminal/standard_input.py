"""Standard input without a screen: pipes, files and terminals alike; lines, never more than a few ahead, or all."""

import asyncio
import os
import select
import threading
from collections.abc import AsyncIterator

_CHUNK = 65_536
_AHEAD = 8
LARGEST = 1_000_000
"""Bytes that are read at once: more than a message may have is not of use."""


async def lines(descriptor: int = 0) -> AsyncIterator[str]:
    """Lines without their ends, until end-of-file.

    A thread reads, because not everything that can be standard input can be watched by the event loop. It is not
    waited for: nothing can wake a read that waits for a person.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[str | None] = asyncio.Queue(_AHEAD)

    def hand_over(line: str | None) -> bool:
        try:
            asyncio.run_coroutine_threadsafe(found.put(line), loop).result()
        except RuntimeError:  # the loop has ended
            return False
        return True

    def read() -> None:
        rest = b""
        while chunk := _read(descriptor):
            *whole, rest = (rest + chunk).split(b"\n")
            if not all(hand_over(line.decode(errors="replace").removesuffix("\r")) for line in whole):
                return
        if not rest or hand_over(rest.decode(errors="replace")):
            hand_over(None)

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while (line := await found.get()) is not None:
        yield line


def whole(descriptor: int = 0, patience: float | None = None) -> bytes | None:
    """Everything up to end-of-file, or a little more than LARGEST; None when nothing comes for so many seconds.

    Blocks. Once something has come the end is waited for, however long it takes.
    """
    if not select.select([descriptor], [], [], patience)[0]:
        return None
    found = b""
    while len(found) <= LARGEST and (chunk := _read(descriptor)):
        found += chunk
    return found


def _read(descriptor: int) -> bytes:
    # not sys.stdin: a thread that holds its lock would end the process with an error of the interpreter
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # the terminal is gone
        return b""
