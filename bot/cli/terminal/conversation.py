"""The conversation of this machine's terminals: hears what is delivered and what happens, and says things.

Connects again by itself when the service goes away; what was to be delivered meanwhile waits in the ledger. Used by
the terminal and by its plain form.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from uuid import uuid4

from agent.events import AgentEvent
from bot.cli.terminal.client import Client, Rejected, Unreachable
from channels.console.adapter import ConsoleBlock
from channels.session_key import console_key

_RETRY = 0.5
"""Seconds between tries to connect."""
_AHEAD = 1000
"""What may have been heard and not yet looked at; more waits in the service."""
_REMEMBERED = 256
"""Blocks that are known when they come again."""


class Connection(Enum):
    """What became of the connection to the service."""

    FOUND = "found"
    LOST = "lost"


Heard = ConsoleBlock | AgentEvent | Connection


class Conversation:
    """One terminal's part in it. sleep: waits between tries to connect."""

    def __init__(self, client: Client, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep
        self._session = str(console_key())
        self._unsent: tuple[str, str] | None = None
        self._blocks: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED)
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
                    await self.heard.put(Connection.LOST)
                lost = True
            await self._sleep(_RETRY)

    async def say(self, text: str) -> str:
        """Send a message; returns its run's id. Raises Unreachable or Rejected: then say the same text again,
        and it is taken once, whatever became of the first try."""
        if self._unsent is None or self._unsent[0] != text:
            self._unsent = (text, uuid4().hex)
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
                await self.heard.put(Connection.FOUND)
                async for heard in stream:
                    if not isinstance(heard, ConsoleBlock) or self._is_new(heard):
                        await self.heard.put(heard)
        except Unreachable:
            if not found:
                raise

    def _is_new(self, block: ConsoleBlock) -> bool:
        """Whether a block was not heard before: one that a dying connection still brought is delivered again."""
        name = (block.delivery_id, block.source)
        if name in self._blocks:
            return False
        self._blocks.append(name)
        return True
