"""A command below a gate (`agent/sandbox/gate.py`): it runs when the gate is opened, and ends with all it started.

If this program dies while the gate is shut, the command never runs. Once `end` has returned, nothing that the command
started runs; on Linux this includes processes that left its group, session and parent. Output is passed on as it
comes, whoever keeps the pipe open.
"""

import asyncio
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

from agent.removal import remove_apart
from agent.sandbox import writing
from agent.sandbox.base import Launch, start_gate
from agent.tools.leftovers import end_tree, signal_below

_CHUNK = 64 * 1024
_LAST_CHUNKS = 16  # chunks read after the end: more than a full pipe, but bounded if a process escaped
ABORT_SECONDS = 0.1  # between TERM and KILL when the run is aborted, of the 200 ms that /stop may take
OUTPUT_GRACE_SECONDS = 0.2  # for what a pipeline still writes when its shell has ended
_DEATH_SECONDS = 0.05  # a killed process takes a millisecond, unless the kernel holds it


class GatedProcess:
    """One command, as a context manager to be entered at once. After the block all its processes have ended."""

    def __init__(
        self,
        launch: Launch,
        folder: Path | int,
        output: Callable[[bytes], None],
        abort_seconds: float = ABORT_SECONDS,
        *,
        has_input: bool = False,
        given: bytes = b"",
        errors: int = subprocess.STDOUT,
    ) -> None:
        """Start the gate of a command, in its folder (or a descriptor of it, which is not kept).

        abort_seconds: the time between TERM and KILL when an exception or a cancellation ends the block. has_input:
        whether `write` can be used; otherwise the input is `given`. errors: the descriptor that takes what the command
        writes to its standard error; otherwise that is output. Raises OSError when no process can be started.
        """
        self._abort_seconds = abort_seconds
        self._temporary = launch.temporary
        self._output = output
        self._output_ended = asyncio.Event()
        self._status: int | None = None  # the exit status of the command
        self.why = ""  # why the gate ended the command, if it exceeded one of its bounds
        self._command_ended = asyncio.Event()
        self._gate_ended = asyncio.Event()
        self._ended = False
        self._writing = writing.begin(launch.room) if launch.room else None
        self._gate, gate = socket.socketpair()
        self._reader, writer = os.pipe()
        self._input: int | None = None
        if has_input:
            read_from, self._input = os.pipe()
        else:
            read_from = _opened(given)
        try:
            self._popen = start_gate(gate, read_from, writer, folder, errors)
            self._gate.sendall(launch.plan())
        except BaseException:
            self._gate.close()
            os.close(self._reader)
            self.close_input()
            self._has_written()
            raise
        finally:
            gate.close()
            os.close(writer)
            os.close(read_from)
        self.pid = self._popen.pid
        self._gate.setblocking(False)
        os.set_blocking(self._reader, False)
        if self._input is not None:
            os.set_blocking(self._input, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._gate, self._hear)
        loop.add_reader(self._reader, self._read)

    async def __aenter__(self) -> "GatedProcess":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            await self.end(self._abort_seconds if kind else 0)
        finally:
            self._close()
            self._has_written()
            if self._temporary is not None:
                await remove_apart(self._temporary)

    def open_gate(self) -> None:
        """Let the command run."""
        with suppress(OSError):  # the gate has been killed
            self._gate.send(b"\n")

    def write(self, data: bytes) -> None:
        """Write at most `select.PIPE_BUF` bytes to the command's input, all of them or none.

        Raises BlockingIOError when the pipe is full, BrokenPipeError when the command reads no more.
        """
        if self._input is None:
            raise BrokenPipeError
        os.write(self._input, data)

    def close_input(self) -> None:
        """Close the command's input."""
        if self._input is not None:
            os.close(self._input)
            self._input = None

    async def wait(self) -> None:
        """Wait until the command's own process has ended; processes that it started may run on."""
        await self._command_ended.wait()

    async def end(self, grace_seconds: float = 0) -> int | None:
        """Send TERM to all processes, unless the grace is 0, and after the grace KILL to those that are left.

        If this is cancelled, it kills at once. A second call does nothing. Returns the exit status as `subprocess`
        gives it; None when the kernel does not release the processes.
        """
        if self._ended:
            return self._status
        try:
            if grace_seconds and not self._hear():
                if signal_below(self.pid, signal.SIGTERM):  # a command that has not begun gets no time to begin
                    await at_most(grace_seconds, self.wait())
            elif self._status is not None:  # when nothing else is left, the gate ends now
                await at_most(_DEATH_SECONDS / 5, self._gate_ended.wait())
        finally:
            with suppress(OSError):
                self._gate.shutdown(socket.SHUT_WR)  # one that is still shut ends by this
            end_tree(self.pid, self._hear)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # it is not reaped yet: the pid means nobody else
            self._ended = True
        await at_most(_DEATH_SECONDS, self._gate_ended.wait())
        code = self._popen.poll()
        return code if self._status is None else self._status

    def pause_output(self) -> None:
        """Let the command wait with its output, once the pipe is full."""
        asyncio.get_running_loop().remove_reader(self._reader)

    def resume_output(self) -> None:
        """Pass output on again."""
        if not self._output_ended.is_set():
            asyncio.get_running_loop().add_reader(self._reader, self._read)

    async def last_words(self, seconds: float | None) -> None:
        """Wait for the end of the output, at most so many seconds; None: however long that takes."""
        await at_most(seconds, self._output_ended.wait())

    def _close(self) -> None:
        """Read what the pipe still holds and close all descriptors."""
        for _ in range(_LAST_CHUNKS):
            if not self._read():
                break
        self._stop_reading()
        os.close(self._reader)
        self.close_input()
        asyncio.get_running_loop().remove_reader(self._gate)
        self._gate.close()
        try:
            self._popen.wait(_DEATH_SECONDS)  # killed already: it takes a millisecond
        except subprocess.TimeoutExpired:  # but not on a busy machine, and somebody has to take its status
            threading.Thread(target=self._popen.wait, daemon=True).start()

    def _has_written(self) -> None:
        if self._writing is not None:
            writing.over(self._writing)
            self._writing = None

    def _hear(self) -> bool:
        """Read what the gate reports; returns whether the gate, and on Linux everything below it, has ended."""
        try:
            while said := self._gate.recv(_CHUNK):
                status, _, why = said.decode().strip().partition(" ")
                self._status, self.why = int(status), why
                self._command_ended.set()
        except BlockingIOError:
            return False
        except ConnectionError:
            pass  # its end, with something of ours unread
        asyncio.get_running_loop().remove_reader(self._gate)
        self._command_ended.set()
        self._gate_ended.set()
        return True

    def _read(self) -> bool:
        """Pass on one chunk of output; returns whether there may be more at once."""
        try:
            data = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._stop_reading()
            return False
        self._output(data)
        return True

    def _stop_reading(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        self._output_ended.set()


def _opened(content: bytes) -> int:
    """Return a descriptor that reads these bytes, from a file without a name."""
    if not content:
        return os.open(os.devnull, os.O_RDONLY)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return os.dup(file.fileno())


def ending(status: int | None, why: str = "") -> str:
    """Say how a command ended. status: negative for a signal, None if unknown. why: it was ended, if it was."""
    if why:
        return f"ended because {why}"
    if status is None or status >= 0:
        return f"exit code {'unknown' if status is None else status}"
    try:
        return f"ended by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


async def at_most(seconds: float | None, waiting: Coroutine[None, None, object]) -> None:
    """Wait for something, at most so many seconds, if there is a bound."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting
