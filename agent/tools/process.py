"""A shell command below a gate (see `gate`): it runs nothing until it is told to, and nothing of it outlives the block.

Promises: if this program dies while the gate is shut, the command never runs; once `end` has returned, nothing that
the command began runs, on Linux also not what has left its group, session and parent; what the command writes reaches
`output` as it comes, whoever keeps the pipe open. Called by `exec` and `background`.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

from agent.sandbox.launch import Launch
from agent.sandbox.launch import gate as gate_of
from agent.tools.leftovers import end_tree, signal_below

_CHUNK = 64 * 1024
_LAST_CHUNKS = 16  # chunks read after the end: a full pipe and more, but not for ever from a process that got away
ABORT_SECONDS = 0.1  # between TERM and KILL when the run is aborted, of the 200 ms that /stop may take
OUTPUT_GRACE_SECONDS = 0.2  # for what a pipeline still writes when its shell has ended
_DEATH_SECONDS = 0.05  # a killed process takes a millisecond, unless the kernel holds it


class GatedProcess:
    """One command; enter it at once. However the block is left, all of it has ended after it."""

    def __init__(
        self,
        launch: Launch,
        folder: Path,
        output: Callable[[bytes], None],
        abort_seconds: float = ABORT_SECONDS,
        *,
        has_input: bool = False,
    ) -> None:
        """Start the gate of a command, in its folder. abort_seconds: how long an exception, a cancellation too, lets it
        end. has_input: it can be told something; else it reads nothing.

        Raises OSError when no process can be started.
        """
        self._abort_seconds = abort_seconds
        self._temporary = launch.temporary
        self._output = output
        self._output_ended = asyncio.Event()
        self._status: int | None = None  # of the command
        self.why = ""  # it was ended, when it passed one of its bounds
        self._command_ended = asyncio.Event()
        self._gate_ended = asyncio.Event()
        self._ended = False
        self._gate, gate = socket.socketpair()
        self._reader, writer = os.pipe()
        self._input: int | None = None
        if has_input:
            given, self._input = os.pipe()
        else:
            given = os.open(os.devnull, os.O_RDONLY)
        try:
            self._popen = subprocess.Popen(
                gate_of(given),
                stdin=gate.fileno(),
                pass_fds=(given,),
                stdout=writer,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={},  # the gate runs outside of any sandbox: nothing that a call says may lead it
                start_new_session=True,
            )
            self._gate.sendall(launch.plan())
        except BaseException:
            self._gate.close()
            os.close(self._reader)
            self.close_input()
            raise
        finally:
            gate.close()
            os.close(writer)
            os.close(given)
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

    def open_gate(self) -> None:
        """Let the command run."""
        with suppress(OSError):  # the gate has been killed
            self._gate.send(b"\n")

    def write(self, data: bytes) -> None:
        """Give the command something to read, at most `select.PIPE_BUF` bytes: all of it or nothing.

        Raises BlockingIOError when it has not read enough of what it was given, BrokenPipeError when it reads no more.
        """
        if self._input is None:
            raise BrokenPipeError
        os.write(self._input, data)

    def close_input(self) -> None:
        """What the command reads ends here."""
        if self._input is not None:
            os.close(self._input)
            self._input = None

    async def wait(self) -> None:
        """Until the command's own process has ended; others of it may go on."""
        await self._command_ended.wait()

    async def end(self, grace_seconds: float = 0) -> int | None:
        """Ask all processes to end, unless grace is 0, and after the grace kill what is left. Once is enough.

        Cancelled meanwhile, it kills at once. Returns the exit status as `subprocess` gives it; None when the kernel
        does not let go of the processes.
        """
        if self._ended:
            return self._status
        try:
            if grace_seconds and not self._hear():
                signal_below(self.pid, signal.SIGTERM)
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

    async def last_words(self, seconds: float) -> None:
        """Wait that long for the end of the output."""
        await at_most(seconds, self._output_ended.wait())

    def _close(self) -> None:
        """Take what the pipe still holds and let go of all descriptors."""
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
        if self._temporary is not None:
            _remove(self._temporary)

    def _hear(self) -> bool:
        """Take what the gate says; whether it has ended, and with it, on Linux, everything below it."""
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
        """Pass one chunk on; says whether there may be more at once."""
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


def _remove(folder: Path) -> None:
    """Take a folder away with all that a command left in it, whatever rights it has."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            with suppress(OSError):
                os.chmod(os.path.join(path, name), 0o700, follow_symlinks=False)
    shutil.rmtree(folder, ignore_errors=True)


def ending(status: int | None, why: str = "") -> str:
    """How a command ended, by its exit status: negative for a signal, None when the kernel does not tell. why: it was
    ended, where that is known."""
    if why:
        return f"ended because {why}"
    if status is None or status >= 0:
        return f"exit code {'unknown' if status is None else status}"
    try:
        return f"ended by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


async def at_most(seconds: float, waiting: Coroutine[None, None, object]) -> None:
    """Wait for something, for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting
