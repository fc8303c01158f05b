"""A shell command in a process group of its own, behind a gate: it runs nothing until it is told to.

Promises: if this program dies while the gate is shut, the command never runs; once `end` has returned, no process of
the group runs; what the command writes reaches `output` as it comes, whoever keeps the pipe open. Called by `exec`.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

_GATE = 'read -r go && exec "$0" -c "$1" </dev/null'  # end of file, as when we die, makes `read` fail
_CHUNK = 64 * 1024
_LAST_CHUNKS = 16  # chunks read after the end: a full pipe and more, but not for ever from a process that got away
_POLL_SECONDS = 0.02  # only where there are no descriptors of processes
_DEATH_SECONDS = 0.05  # a killed process takes a millisecond, unless the kernel holds it


class GatedProcess:
    """One command. Use `gated`, which ends it however the block is left."""

    def __init__(
        self, shell: str, command: str, folder: Path, environment: Mapping[str, str], output: Callable[[bytes], None]
    ) -> None:
        self._output = output
        self._output_ended = asyncio.Event()
        gate, self._gate = os.pipe()
        self._reader, writer = os.pipe()
        try:
            self._popen = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, shell, command],
                stdin=gate,
                stdout=writer,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._gate)
            os.close(self._reader)
            raise
        finally:
            os.close(gate)
            os.close(writer)
        self.pid = self._popen.pid
        self._group_ended = False
        os.set_blocking(self._reader, False)
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def open_gate(self) -> None:
        """Let the command run."""
        with suppress(BrokenPipeError):
            os.write(self._gate, b"\n")

    async def wait(self) -> None:
        """Until the command's own process has ended. It stays unreaped, so that its pid means nobody else."""
        if self._popen.returncode is not None:
            return
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            while self._popen.poll() is None:  # noqa: ASYNC110 - nothing here tells an event
                await asyncio.sleep(_POLL_SECONDS)
            return
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    async def end(self, grace_seconds: float = 0) -> int | None:
        """Ask the group to end, unless grace is 0, and after the grace kill what is left of it. Once is enough.

        Cancelled meanwhile, it kills at once. Returns the exit status as `subprocess` gives it; None when the kernel
        does not let go of the process.
        """
        if self._group_ended:  # its pid may be somebody else's by now
            return self._popen.poll()
        try:
            if grace_seconds:
                self._signal(signal.SIGTERM)
                await _at_most(grace_seconds, self.wait())
        finally:
            self._signal(signal.SIGKILL)
            self._group_ended = True
        await _at_most(_DEATH_SECONDS, self.wait())
        return self._popen.poll()

    async def last_words(self, seconds: float) -> None:
        """Wait that long for the end of the output."""
        await _at_most(seconds, self._output_ended.wait())

    def close(self) -> None:
        """Take what the pipe still holds and let go of all descriptors. Only once."""
        for _ in range(_LAST_CHUNKS):
            if not self._read():
                break
        self._stop_reading()
        os.close(self._reader)
        os.close(self._gate)
        with suppress(subprocess.TimeoutExpired):  # waits only if `end` was cancelled twice; the group is killed then
            self._popen.wait(_DEATH_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

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


@asynccontextmanager
async def gated(
    shell: str,
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    output: Callable[[bytes], None],
    *,
    abort_seconds: float,
) -> AsyncIterator[GatedProcess]:
    """Start `command` behind its gate. However the block is left, the group has ended after it.

    abort_seconds: how long an exception, a cancellation too, lets the group end by itself. Raises OSError when no
    process can be started.
    """
    process = GatedProcess(shell, command, folder, environment, output)
    try:
        yield process
    except BaseException:
        await process.end(abort_seconds)
        raise
    else:
        await process.end()
    finally:
        process.close()


async def _at_most(seconds: float, waiting: Coroutine[None, None, object]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting
