"""How a hook is called that is not a function of the service: a command, an address, or a function of a file.

Commands and addresses get an event as JSON, without secrets, and answer JSON; one that answers nothing lets it be. What
a hook of Claude Code would answer is understood (`_as_ours`).
"""

import asyncio
import concurrent.futures
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from agent import programs
from agent.hooks import HookEvent

# The exit code of a command that forbids what it was asked about; its reason is on standard error.
FORBIDS = 2
# The characters of a reason that are kept, and the bytes that a hook may answer.
_LONGEST, _MOST = 2000, 1_000_000
# Seconds in which the thread of a file answers, unless a hook keeps it from working.
_ALIVE = 1.0
# So many threads may be left behind; the hooks of whoever has left more are not called any more.
_MOST_LEFT = 16


def as_json(event: HookEvent, clean: Callable[[str], str]) -> str:
    """Return an event as commands and addresses get it. clean: returns a text without secrets."""
    return clean(json.dumps({"hook_event_name": event.point, **asdict(event)}, ensure_ascii=False, default=str))


async def run_command(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], clean: Callable[[str], str], event: HookEvent
) -> object:
    """Run a command and return its answer.

    Raises OSError where it cannot be started, TooMuch, or ValueError where it fails or answers nonsense.
    """
    code, out, err = await programs.run(command, as_json(event, clean).encode(), environ, folder, _MOST)
    said = clean(err.decode(errors="replace").strip()[:_LONGEST])
    if code == FORBIDS:
        return {"block": True, "reason": said}
    if code:
        raise ValueError(f"it ended with the code {code}: {said or 'nothing on standard error'}")
    return _answer(out)


async def post(url: str, clean: Callable[[str], str], event: HookEvent) -> object:
    """Post an event to an address and return its answer. Raises ValueError or an error of the connection."""
    import httpx2

    body, found, head = as_json(event, clean).encode(), bytearray(), {"content-type": "application/json"}
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=None) as client,  # the hook has a time limit
        client.stream("POST", url, content=body, headers=head) as response,
    ):
        if not response.is_success:
            raise ValueError(f"it answered with the status {response.status_code}")
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > _MOST:
                raise ValueError(f"it says more than {_MOST:,} bytes")
    return _answer(bytes(found))


def _answer(data: bytes) -> object:
    try:
        said = json.loads(data) if data.strip() else None
    except (ValueError, RecursionError):
        raise ValueError(f"it answered {data.decode(errors='replace').strip()!r:.80}, which is no JSON") from None
    return _as_ours(said) if isinstance(said, dict) else said


def _as_ours(said: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with what Claude Code's hooks say in the words of ours; what neither knows stays as it is.

    Raises ValueError for a decision that is none, or that is for a person to take.
    """
    ours = {name: value for name, value in said.items() if name not in ("suppressOutput", "systemMessage")}
    decisions = [ours.pop("decision", None)]
    if ours.pop("continue", True) is False:
        decisions.append("block")
    stop = ours.pop("stopReason", None)
    more = ours.pop("hookSpecificOutput", None)
    if isinstance(more, dict):
        decisions.append(more.get("permissionDecision"))
        stop = more.get("permissionDecisionReason") or stop
        if (changed := more.get("updatedInput")) is not None:
            ours["tool_input"] = changed
    if unknown := [one for one in decisions if one not in (None, "approve", "allow", "block", "deny")]:
        raise ValueError(f"it answered the decision {unknown[0]!r}; approve, allow, block and deny are taken")
    if {"block", "deny"} & {*decisions}:
        return {"block": True, "reason": ours.get("reason") or stop}
    if decisions != [None]:  # the reason of what is allowed is for nobody
        ours.pop("reason", None)
    return ours


class Beside:
    """A thread with a loop of its own for the functions of a file, so that one that blocks stops nothing else.

    A thread that a hook keeps from working is left behind, and the next call begins another one.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left = 0

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

    async def call(self, function: Callable[[Any], Awaitable[object]], event: HookEvent) -> object:
        """Call a coroutine function there and return what it returns. Raises what it raises."""
        loop, future = self._begin(partial(function, event))
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
            except (SystemExit, KeyboardInterrupt) as error:  # it would end the loop
                raise RuntimeError(f"it raised {error!r}") from None

        if self._left > _MOST_LEFT:
            raise RuntimeError("too many of its calls never ended; it is not called until the next start")
        loop = self._loop = self._loop or _started()
        return loop, asyncio.run_coroutine_threadsafe(guarded(), loop)

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            self._loop = None
            self._left += 1
            loop.call_soon_threadsafe(loop.stop)


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def serve() -> None:
        loop.run_forever()
        if waiting := asyncio.all_tasks(loop):  # calls after the one that blocked
            for task in waiting:
                task.cancel()
            loop.run_until_complete(asyncio.wait(waiting))
        loop.close()

    threading.Thread(target=serve, name="hooks", daemon=True).start()
    return loop
