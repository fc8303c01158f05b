"""Speaks with a server over its standard input and output, a line for each message.

The server runs below a gate like a command (`agent/tools/process.py`): it is persisted before it may do anything, it
ends with everything that it started, and also when this process dies.
"""

import asyncio
import os
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from agent.sandbox.base import Launch
from agent.tools.leftovers import start_time
from agent.tools.process import OUTPUT_GRACE_SECONDS, GatedProcess, at_most

_MOST_MESSAGES = 1000  # that wait to be sent
LONGEST_LINE = 32 * 1024**2  # of one message
# Seconds: for a server to end by itself once its input is closed, then between TERM and KILL, and between looks whether
# its full input has room.
_LEAVE_SECONDS, _END_SECONDS, _FULL_SECONDS = 0.5, 0.5, 0.01
_LAST_ERRORS = 2000  # bytes of its standard error that are kept

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception],
    MemoryObjectSendStream[SessionMessage],
]


class Errors:
    """The end of what a server wrote to its standard error."""

    def __init__(self) -> None:
        self._last = b""
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    @property
    def line(self) -> str:
        """The last line, or nothing."""
        return (self._last.decode(errors="replace").strip().splitlines() or [""])[-1]

    def close(self) -> None:
        """Read what there is, and no more."""
        self._read()
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._reader, 65536):
                self._last = (self._last + data)[-_LAST_ERRORS:]
            asyncio.get_running_loop().remove_reader(self._reader)


class _Lines:
    """Cuts output into lines."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def of(self, data: bytes) -> Sequence[bytes]:
        """Return the lines that end with this output. Raises ValueError when one is too long."""
        self._begun += data
        if b"\n" not in data:
            lines = list[bytes]()
        else:
            *lines, rest = bytes(self._begun).split(b"\n")
            self._begun = bytearray(rest)
        if len(self._begun) > LONGEST_LINE:
            raise ValueError("a line is too long")
        return [*filter(bytes.strip, lines)]


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


@asynccontextmanager
async def over_pipes(
    launch: Launch,
    folder: Path,
    started: Callable[[int, str], Awaitable[None]],
    errors: Errors,
    gone: asyncio.Event,
) -> AsyncIterator[Streams]:
    """Start a server, and end it with the context.

    started: awaited with its pid and start time before it may do anything. errors: takes its standard error. gone: set
    when it has ended.
    """
    received, read = anyio.create_memory_object_stream[SessionMessage | Exception]()
    write, sending = anyio.create_memory_object_stream[SessionMessage](_MOST_MESSAGES)
    chunks = asyncio.Queue[bytes | None]()  # one, and the end
    with closing(received), closing(read), closing(write), closing(sending):

        def take(data: bytes) -> None:
            chunks.put_nowait(data)
            process.pause_output()

        try:
            process = GatedProcess(launch, folder, take, has_input=True, errors=errors.writer)
        finally:
            os.close(errors.writer)
        async with process:
            pid_started = await asyncio.to_thread(start_time, process.pid)
            await started(process.pid, pid_started or "")
            process.open_gate()
            sender = asyncio.create_task(_send(sending, process), name="mcp-send")
            watcher = asyncio.create_task(_watch(process, chunks), name="mcp-watch")
            receiver = asyncio.create_task(_receive(process, chunks, received, gone), name="mcp-receive")
            try:
                yield read, write
                process.close_input()
                await at_most(_LEAVE_SECONDS, process.wait())
                await process.end(_END_SECONDS)
            finally:
                for task in (sender, watcher, receiver):
                    task.cancel()
                await asyncio.gather(sender, watcher, receiver, return_exceptions=True)


async def _send(sending: MemoryObjectReceiveStream[SessionMessage], process: GatedProcess) -> None:
    """Write messages, in pieces that a pipe takes whole; a server that reads no more is found out by time limits."""
    with suppress(BrokenPipeError):
        async for message in sending:
            data = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            for start in range(0, len(data), select.PIPE_BUF):
                while not _written(process, data[start : start + select.PIPE_BUF]):  # noqa: ASYNC110
                    await asyncio.sleep(_FULL_SECONDS)


def _written(process: GatedProcess, data: bytes) -> bool:
    try:
        process.write(data)
    except BlockingIOError:
        return False
    return True


async def _watch(process: GatedProcess, chunks: "asyncio.Queue[bytes | None]") -> None:
    """Tell of the end: of the process, or of its output, without which it cannot answer any more."""
    ends = [asyncio.create_task(one) for one in (process.wait(), process.last_words(None))]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in ends:
            one.cancel()
    await process.last_words(OUTPUT_GRACE_SECONDS)
    chunks.put_nowait(None)


async def _receive(
    process: GatedProcess,
    chunks: "asyncio.Queue[bytes | None]",
    received: MemoryObjectSendStream[SessionMessage | Exception],
    gone: asyncio.Event,
) -> None:
    """Pass messages on as fast as they are taken: a server that says more has to wait, and no answer of it is lost."""
    lines = _Lines()
    try:
        while (data := await chunks.get()) is not None:
            for line in lines.of(data):
                await received.send(_message(line))
            process.resume_output()
    except (ValueError, anyio.BrokenResourceError):  # a line that never ends, or nobody listens any more
        pass
    finally:
        received.close()
        gone.set()
