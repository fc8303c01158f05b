"""How commands reach the service: the one that runs, or else one of their own in this process while they last.

A service of their own has no platforms and no port; what it leaves unfinished is taken up by the next one.
"""

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bot.cli.home import answers, beginning, find, is_begun
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.completion import run_to_completion
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.persistence.errors import StateLocked, StoreError

if TYPE_CHECKING:  # it imports the whole service
    from bot.service import Parts

T = TypeVar("T")

FAILED = 1
USAGE = 2
INTERRUPTED = 130
_TRIES = 10
# A service that is starting or stopping holds the state directory and does not answer: tries, and seconds between.
_PAUSE = 0.5


def carry_out(config_path: Path | None, work: Callable[[Config], Awaitable[int]]) -> int:
    """Do the work of a command and return its exit code; what is in its way is said in one line.

    Raises ConfigError, which the command line shows.
    """
    config = find(config_path)
    try:
        code = asyncio.run(_until_told(work, config))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads has seen enough; what is left in the buffer goes nowhere
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 0
    except Rejected as error:
        complain(str(error))
        return USAGE if error.status in (413, 422) else FAILED
    except Unreachable:
        complain("The service has gone away. What it had accepted is answered when it is back.")
    except (StoreError, sqlite3.Error, OSError) as error:
        complain(f"Hark cannot start: {error}")
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return FAILED
    return FAILED


@contextlib.asynccontextmanager
async def service(config: Config) -> AsyncIterator[Path]:
    """The path of the socket of a service that answers; when none does, one is started in this process."""
    socket = config.state / SOCKET
    if answers(config.state):
        yield socket
        return
    from bot.cli.run import prepare
    from bot.wiring import Dependencies, build

    begun = is_begun(config)
    environ = config.environ(os.environ)
    prepare(config, environ, log_to_file=True)
    # nobody waits at the end: what runs then is taken up again by the next service
    at_once = config.model_copy(update={"agent": config.agent.model_copy(update={"drain_seconds": 0.0})})
    for left in reversed(range(_TRIES)):
        try:
            own = await build(at_once, Dependencies(environ=environ, only_local=True, on_wait=_refuse))
            break
        except StateLocked:
            if left == 0:
                raise
        await asyncio.sleep(_PAUSE)
        if answers(config.state):
            yield socket
            return
    try:
        await own.start()
        if not begun:
            complain(beginning(config))
        yield socket
    finally:
        await run_to_completion(own.close())  # half a close would leave threads that keep the process


@contextlib.asynccontextmanager
async def asked(config: Config, part_of: "Callable[[Parts], T]") -> AsyncIterator[Client | T]:
    """Whom a command asks: a client of the service that runs, or a part of one of its own that is not started.

    The part works on the store, which nobody else has open then. part_of: which part.
    """
    if answers(config.state):
        async with contextlib.aclosing(Client(config.state / SOCKET)) as client:
            yield client
        return
    from bot.cli.run import prepare
    from bot.wiring import Dependencies, build

    environ = config.environ(os.environ)
    prepare(config, environ, log_to_file=True)
    parts = (await build(config, Dependencies(environ=environ, gateway=False))).parts
    try:
        await parts.store.open()
        await parts.people.load()
        yield part_of(parts)
    finally:
        await parts.store.close()


async def chat(config: Config) -> int:
    """Talk in this terminal until the person leaves, or the input has ended and is answered. Returns the exit code."""
    from bot.cli.terminal.session import talk

    async with service(config) as socket:
        await talk(socket)
    return 0


def _refuse(error: Exception) -> None:
    """End the start with the error: a command does not wait for room on the disk."""
    raise error


async def _until_told(work: Callable[[Config], Awaitable[int]], config: Config) -> int:
    """Await the work; SIGTERM and a closed terminal cancel it, so that it leaves screen and state in order."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_without_cancelled_reads)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    return await work(config)


def _without_cancelled_reads(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """anyio, below the HTTP client, sets the result of a read also when that was cancelled at the same moment."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)


def complain(text: str) -> None:
    """Print the text to standard error."""
    print(text, file=sys.stderr)  # noqa: T201
