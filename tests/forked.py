"""`hark` in a process of its own, forked from one that has imported everything: a start takes milliseconds.

What only a real start shows (what is imported when, how the interpreter ends) is for tests that call `python -m bot`.
The processes of tests/crash are forked from the same one.
"""

import asyncio
import contextlib
import faulthandler
import fcntl
import importlib
import multiprocessing
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, NoReturn

import bot.cli
from bot.cli.app import main
from tests.watch import PATIENCE

for _module in (
    *(module.name for module in pkgutil.walk_packages(bot.cli.__path__, "bot.cli.")),
    *("bot.wiring", "agent.models.offline", "aiosqlite"),
    # what the libraries import when they are used
    *("anyio._backends._asyncio", "h11", "httpcore2", "truststore", "uvicorn.lifespan.off", "uvicorn.loops.auto"),
):
    importlib.import_module(_module)

REPLACED = 75
"""Exit code of a forked process that would replace itself by a new one; tests start that by themselves."""
ROOT = Path(__file__).parents[1]
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}
NOTHING: Mapping[str, float] = {}
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.preloaded"])


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    error: str


def fork(
    arguments: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    streams: Sequence[int],
    *,
    terminal: bool = False,
    blocks: int | None = None,
    seconds: Mapping[str, float] = NOTHING,
    nohup: bool = False,
) -> BaseProcess:
    """Call `hark` with these arguments.

    streams: descriptors of standard input, output and error; terminal: they are one, which becomes its own. blocks: no
    file of the process can grow beyond so many of 512 bytes, as with `ulimit -S -f`. seconds: constants
    of modules that hold less there, so that nothing waits for long. nohup: SIGHUP is ignored from the start.
    """
    given = arguments, str(folder), dict(environ), _Streams(streams), terminal, blocks, dict(seconds), nohup
    process = CONTEXT.Process(target=_call, args=given)
    process.start()
    return process


class _Streams:
    """Descriptors that are handed over when they are pickled, which is when the process starts."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, tuple(DupFd(number) for number in self.numbers)


def _received(*given: Any) -> list[int]:
    return [one.detach() for one in given]


def _call(
    arguments: Sequence[str],
    folder: str,
    environ: dict[str, str],
    streams: list[int],
    terminal: bool,
    blocks: int | None,
    seconds: dict[str, float],
    nohup: bool,
) -> None:
    # What a shell sets, whatever the process that runs the tests has inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
    if terminal:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, given in enumerate(streams):
        os.dup2(given, number)
        os.close(given)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    faulthandler.enable()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    if blocks is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (blocks * 512, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    for name, less in seconds.items():
        module, _, constant = name.rpartition(".")
        assert 0 < less < getattr(sys.modules[module], constant)
        setattr(sys.modules[module], constant, less)
    sys.argv = ["hark", *arguments]
    os.execve = _replaced  # type: ignore[assignment]
    main()


def _replaced(*_: object) -> NoReturn:
    raise SystemExit(REPLACED)


def hark(folder: Path, *arguments: str, environ: Mapping[str, str] = ENVIRON) -> Done:
    """Call it with nothing on standard input, and wait for its end."""
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = fork(arguments, folder, environ, [nothing.fileno(), out.fileno(), error.fileno()])
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise AssertionError(f"it did not end within {PATIENCE:g} s")
        code = process.exitcode
        process.close()
        out.seek(0)
        error.seek(0)
        return Done(code, out.read().decode(), error.read().decode())


class Begun:
    """A command that runs, with pipes to its standard streams; see `begin`."""

    def __init__(self, process: BaseProcess, stdin: asyncio.StreamWriter, outputs: list[asyncio.StreamReader]) -> None:
        self._process = process
        assert process.pid is not None
        self.pid: int = process.pid
        self.stdin = stdin
        self.stdout, self.stderr = outputs
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(process.sentinel, self._ended)

    def _ended(self) -> None:
        self._loop.remove_reader(self._process.sentinel)
        self._process.join()
        self._over.set()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._over.is_set()

    def send_signal(self, number: signal.Signals) -> None:
        """As another program does."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it, if it has not ended yet."""
        if self.running:
            self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        await self._over.wait()
        assert self._process.exitcode is not None
        return self._process.exitcode

    async def finish(self, typed: str = "") -> Done:
        """Type something, close standard input, and read everything until it ends."""
        ending = asyncio.create_task(self._communicate(typed.encode()))
        if not (await asyncio.wait([ending], timeout=PATIENCE))[0]:
            self.send_signal(signal.SIGABRT)  # it says where it stands, by faulthandler
            raise AssertionError(f"it did not end within {PATIENCE:g} s: {await ending}")
        return await ending

    async def _communicate(self, typed: bytes) -> Done:
        reading = asyncio.gather(self.stdout.read(), self.stderr.read())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(typed)
            await self.stdin.drain()
        self.stdin.close()
        out, error = await reading
        return Done(await self.wait(), out.decode(), error.decode())


async def _reader(pipe: IO[bytes]) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


async def begin(
    folder: Path,
    *arguments: str,
    piped: bool = False,
    blocks: int | None = None,
    seconds: Mapping[str, float] = NOTHING,
    environ: Mapping[str, str] = ENVIRON,
    nohup: bool = False,
) -> Begun:
    """Start it. piped: somebody may write to its standard input, or only have forgotten to close it."""
    loop = asyncio.get_running_loop()
    (given, typed), *outputs = (os.pipe() for _ in range(3))
    streams = [given, *(write for _, write in outputs)]
    process = fork(arguments, folder, environ, streams, blocks=blocks, seconds=seconds, nohup=nohup)
    for descriptor in streams:
        os.close(descriptor)
    readers = [await _reader(os.fdopen(read, "rb", 0)) for read, _ in outputs]
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())  # the loop has none that only writes
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(typed, "wb", 0))
    begun = Begun(process, asyncio.StreamWriter(transport, protocol, None, loop), readers)
    if not piped:
        begun.stdin.close()
    return begun
