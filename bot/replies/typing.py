"""The sign of work: shown while a run works, renewed as the platform wants it, never after the last block.

A call under way is never cancelled, because it could still arrive: the channel sends nothing visible into a chat
before its typing call has ended, and none begins once `stop` was called.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType

from channels.base import Channel
from channels.message import Place


class Typing:
    """The sign of one run. A context manager: leaving it stops the sign."""

    def __init__(self, channel: Channel | None, place: Place, on_error: Callable[[Exception], None]) -> None:
        self._channel = channel
        self._place = place
        self._on_error = on_error
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> "Typing":
        if self._channel is not None and self._channel.capabilities.typing_seconds:
            self._task = asyncio.create_task(self._show(self._channel), name="typing")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """No sign begins after this."""
        self._stopped.set()

    async def _show(self, channel: Channel) -> None:
        while not self._stopped.is_set():
            try:
                await channel.working(self._place)
            except Exception as error:
                self._on_error(error)
            try:
                async with asyncio.timeout(channel.capabilities.typing_seconds):
                    await self._stopped.wait()
            except TimeoutError:
                continue
