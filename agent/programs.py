"""Runs a program that reads, answers and ends: bounded in time and in what it says, and nothing of it is left."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent.shares import helper_place

# Seconds in which a program that was killed is gone, unless something has left its group.
_GONE = 1.0


class TooMuch(Exception):
    """A program prints more than it may."""


async def run(
    command: Sequence[str],
    body: bytes,
    env: Mapping[str, str],
    folder: Path | str,
    most: int,
    seconds: float | None = None,
) -> tuple[int, bytes, bytes]:
    """Return the exit code, standard output and the beginning of standard error of a program that reads `body`.

    It waits for a place (`agent/shares`). It is killed with all of its group when it has ended, prints more than `most`
    bytes, is too late or the call is cancelled. Raises OSError where it cannot be started, TimeoutError or TooMuch.
    """
    async with helper_place():
        return await _run(command, body, env, folder, most, seconds)


async def _run(
    command: Sequence[str], body: bytes, env: Mapping[str, str], folder: Path | str, most: int, seconds: float | None
) -> tuple[int, bytes, bytes]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=dict(env), start_new_session=True
    )

    def end() -> None:
        with suppress(ProcessLookupError):  # also what it has started
            os.killpg(process.pid, signal.SIGKILL)

    try:
        async with asyncio.timeout(seconds):
            talks = _all(process.stdout, most, end), _all(process.stderr, most), _give(process.stdin, body)
            out, err, _ = await asyncio.gather(*talks)
            if len(out) > most:
                raise TooMuch(f"it prints more than {most:,} bytes")
            return await process.wait(), out, err
    finally:
        end()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GONE):
                await process.communicate()  # what nobody has read would keep it from ending


async def _give(stream: asyncio.StreamWriter | None, body: bytes) -> None:
    assert stream is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it does not care
        stream.write(body)
        await stream.drain()
    stream.close()


async def _all(stream: asyncio.StreamReader | None, most: int, full: Callable[[], None] = lambda: None) -> bytes:
    """Return what a stream has, and of more than `most` bytes one more than that; then call `full`."""
    assert stream is not None
    found = bytearray()
    while piece := await stream.read(64 * 1024):
        found += piece[: most + 1 - len(found)]
        if len(found) > most:
            full()
    return bytes(found)
