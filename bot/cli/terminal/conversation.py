"""The conversation of this machine's terminals: hears what is delivered and what happens, and says things.

Connects again by itself when the service goes away; what was to be delivered meanwhile waits in the ledger. Used by
the terminal and by its plain form.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from uuid import uuid4

from bot.cli.terminal.client import Client, Received, Rejected, Unreachable
from bot.gateway.views import ChannelView
from channels.console.adapter import ConsoleBlock, ConsoleQuestion
from channels.session_key import console_key

_RETRY = 0.5
"""Seconds between tries to connect."""
_LOOK = 2.0
"""Seconds between looks at the platforms."""
_OURS = ("console", "store")
"""What `/readyz` lists besides platforms."""
_AHEAD = 1000
"""What may have been heard and not yet looked at; more waits in the service."""
_REMEMBERED = 256
"""Blocks and questions that are known when they come again."""


class Link(Enum):
    """What became of the connection to the service."""

    FOUND = "found"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform receives, or does not. text: one line that says so, with the cause."""

    text: str


Heard = Received | Link | Platform


class Conversation:
    """One terminal's part in it. sleep: waits between tries to connect."""

    def __init__(self, client: Client, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep
        self._session = str(console_key())
        self._unsent: tuple[str, str] | None = None
        self._known: deque[tuple[int, str] | str] = deque(maxlen=_REMEMBERED)
        self.heard: asyncio.Queue[Heard] = asyncio.Queue(_AHEAD)
        """What was heard, in order."""

    async def listen(self) -> None:
        """Hear everything until cancelled. Raises Rejected when the service wants no terminal."""
        lost = False
        while True:
            try:
                await self._hear()
                lost = False
            except Unreachable:
                if not lost:
                    await self.heard.put(Link.LOST)
                lost = True
            await self._sleep(_RETRY)

    async def watch(self) -> None:
        """Hear how the platforms stand, at first and when it changes, until cancelled."""
        told: dict[str, ChannelView] = {}
        while True:
            with contextlib.suppress(Unreachable, Rejected):
                for name, channel in (await self._client.readiness()).channels.items():
                    before, told[name] = told.get(name), channel
                    news = before is None or (before.state, before.detail) != (channel.state, channel.detail)
                    if news and name not in _OURS and channel.state != "starting":
                        await self.heard.put(Platform(_spoken(name.capitalize(), channel)))
            await self._sleep(_LOOK)

    async def say(self, text: str) -> str:
        """Send a message; returns its run's id. Raises Unreachable or Rejected: then say the same text again,
        and it is taken once, whatever became of the first try."""
        if self._unsent is None or self._unsent[0] != text:
            self._unsent = (text, uuid4().hex)
            self._known.append(self._unsent[1])  # shown by who says it
        run_id = await self._client.submit(text, self._session, self._unsent[1])
        self._unsent = None
        return run_id

    async def abort(self, run_id: str) -> bool:
        """End a run; False when it had ended or the service is not there."""
        try:
            await self._client.abort(run_id)
        except (Unreachable, Rejected):
            return False
        return True

    async def _hear(self) -> None:
        """Hear until the connection ends. Raises Unreachable when there was none."""
        found = False
        try:
            async with self._client.console() as stream:
                found = True
                await self.heard.put(Link.FOUND)
                async for heard in stream:
                    if self._is_new(heard):
                        await self.heard.put(heard)
        except Unreachable:
            if not found:
                raise

    def _is_new(self, heard: Received) -> bool:
        """Whether it was not heard before: a block that a dying connection still brought is delivered again."""
        match heard:
            case ConsoleBlock():
                name: tuple[int, str] | str = (heard.delivery_id, heard.source)
            case ConsoleQuestion():
                name = heard.key
            case _:
                return True
        if name in self._known:
            return False
        self._known.append(name)
        return True


def _spoken(name: str, channel: ChannelView) -> str:
    detail = channel.detail or ("receiving" if channel.state == "ready" else channel.state)
    return detail if detail.startswith(name) else f"{name}: {detail}"
