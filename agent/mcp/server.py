"""One configured server: connected at the first call, by one task that keeps it, and made anew with growing pauses.

A server that is gone, hangs or refuses to start costs each call one clear error within the time limit.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from agent.errors import ToolError
from agent.mcp.failures import reason
from agent.mcp.settings import Settings
from agent.mcp.tools import Shown
from agent.message import Provenance, ToolOutput
from agent.tools.base import Refused

if TYPE_CHECKING:  # it imports the package
    from agent.mcp.talk import Talk

log = structlog.get_logger()

# Seconds until the first and the longest pause between tries, and for a sign of life.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_ALIVE_SECONDS = 5.0
# For which a call waits for a connection; it may take longer to be made.
_PATIENCE_SECONDS = 10.0
# Between looks at a server that says again and again that what it shows has changed.
_AGAIN_SECONDS = 1.0
_CLOSE_SECONDS = 3.0


class Server:
    """A server, whether or not it can be reached."""

    def __init__(
        self,
        settings: Settings,
        monotonic: Callable[[], float],
        started: Callable[[str, int, str], Awaitable[None]],
        showed: Callable[[str, Sequence[Shown]], Awaitable[None]],
        why_off: Callable[[str, Shown], str],
    ) -> None:
        """monotonic: returns the time in seconds. started: persists name, pid and start time of its process before that
        may do anything. showed: takes what the server shows, before each call. why_off: returns why a tool of the name
        may not be called."""
        self.name = settings.name
        self._settings, self._monotonic = settings, monotonic
        self._started, self._showed, self._why_off = started, showed, why_off
        self._keeper: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Talk] | None = None
        self._gone = asyncio.Event()
        self._failures = 0
        self._not_before, self._why = 0.0, ""
        self._checking: asyncio.Task[None] | None = None
        self._tasks = set[asyncio.Task[Any]]()
        self._closing = False

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, or one is being made."""
        return self._keeper is not None and not self._keeper.done() and not self._gone.is_set()

    async def connect(self) -> "Talk":
        """Return the connection, which is made if there is none. Raises ToolError with the reason.

        It goes on being made if that takes longer than a call may wait.
        """
        if self._checking is not None:
            await asyncio.shield(self._checking)
        if self._closing:
            raise ToolError(f"The server {self.name} is being stopped.")
        if self._gone.is_set() and self._keeper is not None:  # one process at a time
            await asyncio.wait({self._keeper})
        if self._keeper is None or self._keeper.done():
            if (wait := self._not_before - self._monotonic()) > 0:
                raise ToolError(f"The server {self.name} cannot be used; the next try is in {wait:.0f} s. {self._why}")
            self._gone = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._ready, self._gone), name=f"mcp-{self.name}")
        assert self._ready is not None
        if not (await asyncio.wait({self._ready}, timeout=_PATIENCE_SECONDS))[0]:
            raise self._error(f"has not started within {_PATIENCE_SECONDS:g} s; it goes on with that.")
        return self._ready.result()

    async def _looked(self, talk: "Talk") -> "Talk":
        """Return a connection over which the server has just told what it shows; one that is broken is made anew."""
        try:
            shown = await talk.listing()
        except Exception as error:
            log.info("an MCP server does not answer any more", server=self.name, reason=talk.why(error))
            talk.gone.set()
            return await self.connect()
        await self._showed(self.name, shown)
        return talk

    async def call(self, shown: Shown, arguments: dict[str, Any], update: Callable[[str], None]) -> ToolOutput:
        """Call a tool once. Raises ToolError; a cancelled call is told to the server, and not waited for."""
        seconds, task = self._settings.timeout_seconds, None
        talk = await self.connect()
        try:
            async with asyncio.timeout(seconds):
                talk = await self._looked(talk)
                if why := self._why_off(self.name, shown):
                    raise Refused(f"It was not called: {why}.")
                task = self._hold(asyncio.create_task(talk.call(shown, arguments, update)))
                await asyncio.wait({task})
        except TimeoutError:
            self._check(talk)
            outcome = "its outcome is unknown" if task else "it was not called"
            raise self._error(f"has not answered within {seconds:g} s, so the call was given up; {outcome}.") from None
        finally:
            if task is not None:
                task.cancel()
        try:
            output: ToolOutput = task.result()
        except asyncio.CancelledError:
            raise self._error("was stopped during the call; its outcome is unknown.") from None
        except Exception as error:
            self._check(talk)
            if talk.is_lost(error):
                raise self._error("has ended during the call, whose outcome is unknown.") from error
            why = str(error) if isinstance(error, ToolError) else talk.why(error)
            raise self._error(f"answered with an error: {why}") from error
        self._failures = 0
        return output

    async def close(self) -> None:
        """End the connection, and the process with it; one that is still being made is given up."""
        self._closing = True
        self._gone.set()
        stands = self._ready is not None and self._ready.done()
        for task in (self._keeper, self._checking):
            if task is not None and not task.done():
                await asyncio.wait({task}, timeout=_CLOSE_SECONDS if stands else 0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def _error(self, what: str) -> ToolError:
        error = ToolError(f"The server {self.name} {what}")
        error.origins = (Provenance("mcp", self.name),)
        return error

    def _hold(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Keep a task until it has ended, and what it raised from being complained about."""
        self._tasks.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _keep(self, ready: "asyncio.Future[Talk]", gone: asyncio.Event) -> None:
        """Hold a connection until the server is gone or not wanted any more, and note when the next may be made."""
        why = "it has ended."
        try:
            await self._hold_open(ready, gone)
        except ToolError as error:
            why = str(error)
        except Exception as error:
            why = reason(error)
        finally:
            if not self._closing:
                self._failures += 1
                again_at_once = self._failures == 1 and ready.done()
                pause = 0 if again_at_once else min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._failures - 1))
                self._not_before, self._why = self._monotonic() + pause, f"It failed last because {why}"
                log.warning("an MCP server is gone", server=self.name, reason=why, pause=pause)
            if not ready.done():
                ready.set_exception(self._error("is being stopped." if self._closing else f"cannot be used: {why}"))
                ready.exception()  # whoever waited may be gone

    async def _hold_open(self, ready: "asyncio.Future[Talk]", gone: asyncio.Event) -> None:
        await asyncio.to_thread(importlib.import_module, "agent.mcp.connection")  # heavy
        from agent.mcp.connection import connected

        changes = asyncio.Event()
        async with (
            asyncio.timeout(None) as limit,
            connected(self._settings, partial(self._started, self.name), gone, changes.set) as connection,
        ):
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._showed(self.name, await connection.listing())
            ready.set_result(connection)
            log.info("an MCP server is connected", server=self.name)
            watching = self._hold(asyncio.create_task(self._watch(connection, changes)))
            try:
                await gone.wait()
            finally:
                watching.cancel()
            # a server over HTTP may never answer that the session is over
            limit.reschedule(asyncio.get_running_loop().time() + _CLOSE_SECONDS)

    async def _watch(self, connection: "Talk", changes: asyncio.Event) -> None:
        """Look again whenever the server says that what it shows has changed."""
        while True:
            await changes.wait()
            changes.clear()
            await self._showed(self.name, await connection.listing())
            await asyncio.sleep(_AGAIN_SECONDS)

    def _check(self, talk: "Talk") -> None:
        """See whether the server still answers after a call that went wrong; the next calls wait for it."""
        if self._checking is None and not talk.gone.is_set():
            self._checking = asyncio.create_task(self._alive(talk), name=f"mcp-check-{self.name}")

    async def _alive(self, talk: "Talk") -> None:
        keeper = self._keeper
        try:
            async with asyncio.timeout(min(_ALIVE_SECONDS, self._settings.timeout_seconds)):
                await talk.listing()
        except Exception:
            talk.gone.set()
            if keeper is not None:
                await asyncio.wait({keeper}, timeout=_CLOSE_SECONDS)
        finally:
            self._checking = None
