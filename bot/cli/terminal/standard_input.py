"""Standard input without a screen: pipes, files and terminals alike; line by line, or all."""

import asyncio
import contextlib
import select
import threading
from collections.abc import AsyncIterator

# Bytes that are read at once: more than a message may have is not of use.
LARGEST = 1_000_000


async def lines(descriptor: int = 0) -> AsyncIterator[str]:
    """Lines without their ends, until end-of-file.

    A thread reads, because not everything that can be standard input can be watched by the event loop. It is not
    waited for: nothing can wake a read that waits for a person.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            with (
                contextlib.suppress(OSError),  # the terminal is gone
                # not sys.stdin: a thread that holds its lock would end the process with an error of the interpreter
                open(descriptor, encoding="utf-8", errors="replace", closefd=False) as source,
            ):
                for line in source:
                    loop.call_soon_threadsafe(found.put_nowait, line.removesuffix("\n"))
            loop.call_soon_threadsafe(found.put_nowait, None)

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while (line := await found.get()) is not None:
        yield line


def whole(descriptor: int = 0, patience: float | None = None) -> bytes | None:
    """Everything up to end-of-file, or a little more than LARGEST; None when nothing comes for so many seconds.

    Blocks. Once something has come the end is waited for, however long it takes.
    """
    if not select.select([descriptor], [], [], patience)[0]:
        return None
    try:
        with open(descriptor, "rb", closefd=False) as source:
            return source.read(LARGEST + 1)
    except OSError:  # the terminal is gone
        return b""
