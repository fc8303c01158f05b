"""How a hook is called that is not a function of the service: a command, an address, or a function of a file.

Commands and addresses get an event as JSON, without secrets, and answer JSON; one that answers nothing lets it be.
"""

import asyncio
import concurrent.futures
import json
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from agent.hooks import HookEvent

# The exit code of a command that forbids what it was asked about; its reason is on standard error.
FORBIDS = 2
# The characters of a reason that are kept.
_LONGEST = 2000
# Seconds in which the thread of the files answers, unless a hook keeps it from working.
_ALIVE = 1.0


def as_json(event: HookEvent, clean: Callable[[str], str]) -> str:
    """Return an event as commands and addresses get it. clean: returns a text without secrets."""
    return clean(json.dumps({"hook_event_name": event.point, **asdict(event)}, ensure_ascii=False, default=str))


async def run_command(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], clean: Callable[[str], str], event: HookEvent
) -> object:
    """Run a command and return its answer. It is killed, with all of its group, when the time is up.

    Raises OSError where it cannot be started, or ValueError where it fails or answers nonsense.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=dict(environ), start_new_session=True
    )
    try:
        out, err = await process.communicate(as_json(event, clean).encode())
    finally:
        with suppress(ProcessLookupError):  # also what it has left behind
            os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            await process.wait()
    said = clean(err.decode(errors="replace").strip()[:_LONGEST])
    if process.returncode == FORBIDS:
        return {"block": True, "reason": said}
    if process.returncode:
        raise ValueError(f"it ended with the code {process.returncode}: {said or 'nothing on standard error'}")
    return _answer(out)


async def post(url: str, clean: Callable[[str], str], event: HookEvent) -> object:
    """Post an event to an address and return its answer. Raises ValueError or an error of the connection."""
    import httpx2

    async with httpx2.AsyncClient(trust_env=False, timeout=None) as client:  # the hook has a time limit
        body = as_json(event, clean).encode()
        response = await client.post(url, content=body, headers={"content-type": "application/json"})
    if not response.is_success:
        raise ValueError(f"it answered with the status {response.status_code}")
    return _answer(response.content)


def _answer(data: bytes) -> object:
    try:
        return json.loads(data) if data.strip() else None
    except ValueError:
        raise ValueError(f"it answered {data.decode(errors='replace').strip()!r:.80}, which is no JSON") from None


class Beside:
    """A thread with a loop of its own for the functions of files, so that one that blocks does not stop the service.

    A thread that a hook keeps from working is left behind, and the next call begins another one.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def load(self, work: Callable[[], None], seconds: float) -> None:
        """Call a function there and wait so long for its end. Raises what it raises, or TimeoutError."""

        async def called() -> object:
            work()
            return None

        loop, future = self._begin(called)
        try:
            future.result(seconds)
        except TimeoutError:
            self._leave(loop)
            raise TimeoutError(f"it took longer than {seconds:g} s") from None

    async def run(self, work: Callable[[], Awaitable[object]]) -> object:
        """Run a coroutine function there and return what it returns. Raises what it raises."""
        loop, future = self._begin(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.cancel()
            answers = threading.Event()
            loop.call_soon_threadsafe(answers.set)
            asyncio.get_running_loop().call_later(_ALIVE, lambda: None if answers.is_set() else self._leave(loop))
            raise

    def _begin(
        self, work: Callable[[], Awaitable[object]]
    ) -> tuple[asyncio.AbstractEventLoop, "concurrent.futures.Future[object]"]:
        async def guarded() -> object:
            try:
                return await work()
            except SystemExit as error:  # it would end the loop
                raise RuntimeError(f"it called sys.exit({error.code})") from None

        loop = self._loop = self._loop or _started()
        return loop, asyncio.run_coroutine_threadsafe(guarded(), loop)

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            self._loop = None
            loop.call_soon_threadsafe(loop.stop)

    def close(self) -> None:
        """End the thread as soon as it is free."""
        if self._loop is not None:
            self._leave(self._loop)


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def serve() -> None:
        loop.run_forever()
        loop.close()

    threading.Thread(target=serve, name="hooks", daemon=True).start()
    return loop


def of_function(beside: Beside, function: Callable[[Any], Awaitable[object]]) -> Callable[[Any], Awaitable[object]]:
    """Return what calls a function of a file in its thread."""
    return lambda event: beside.run(partial(function, event))
