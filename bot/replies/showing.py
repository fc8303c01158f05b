"""While an answer is being written: what is whole goes out when the model pauses, or a preview shows all there is.

A preview is one row of the ledger. Its frames are neither stored nor waited for, and there are few of them, ever
further apart; the words that are final are an edit of the ledger (`bot/store/rows`), which nothing here can hold up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bot.clock import Clock
from bot.replies.cutting import Replies
from channels.base import Channel
from channels.message import ChatKind, Place
from channels.outgoing import Planned
from channels.sources import Source

# Of one answer, those included that are the last ones of its messages.
MOST_EDITS = 12
# Seconds between the first frames, and how much longer each pause is than the one before.
_FIRST, _FURTHER = 1.0, 1.3


class Showing:
    """Sends what is whole at a pause, or keeps a preview up to date, for the answers of one run.

    channel: where the run answers; None where nothing can be shown. plan: puts blocks into the ledger. sent_as: waits
    until a preview has been sent and returns its id on the platform; empty when it was not sent.
    """

    def __init__(
        self,
        replies: Replies,
        channel: Channel | None,
        place: Place,
        clock: Clock,
        plan: Callable[[Sequence[Planned]], Awaitable[None]],
        sent_as: Callable[[Planned], Awaitable[str]],
    ) -> None:
        self._replies = replies
        self._channel = channel
        self._place = place
        self._clock = clock
        self._plan = plan
        self._sent_as = sent_as
        self._idle = replies.streaming.idle_ms / 1000
        drafts = replies.streaming.preview == "draft" and channel is not None and channel.capabilities.drafts
        self._drafts = drafts and place.kind is ChatKind.DIRECT
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._calling = asyncio.Lock()

    @property
    def _current(self) -> bool:
        """Whether the answer of the task that asks is still being written."""
        return self._task is asyncio.current_task()

    def changed(self) -> None:
        """The model has written more. Raises what `finish` would."""
        self._changed.set()
        if self._task is not None and self._task.done() and not self._replies.previews:
            self._task.result()
        if self._task is None and self._channel is not None:
            show = self._previews(self._channel) if self._replies.previews else self._pauses()
            self._task = asyncio.create_task(show, name="showing")
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def stop(self) -> None:
        """The answer has ended: nothing more is shown of it. A call under way ends by itself, before what follows."""
        if self._task is not None and not self._calling.locked():
            self._task.cancel()
        self._task = None

    async def finish(self) -> None:
        """The same, once what has gone out is in the ledger. Raises what its store raised: then it is not."""
        task = self._task
        self.stop()
        if task is not None and not self._replies.previews:
            async with self._calling:
                pass
            if task.done() and not task.cancelled():
                task.result()

    async def _pauses(self) -> None:
        while self._current:
            await self._changed.wait()
            while self._changed.is_set():
                self._changed.clear()
                await self._clock.sleep(self._idle)
            async with self._calling:
                if blocks := self._replies.pause():
                    await self._plan(blocks)

    async def _previews(self, channel: Channel) -> None:
        edits, pause = 0, _FIRST
        source: Source | None = None
        body = target = ""
        while edits < MOST_EDITS and self._current:
            await self._changed.wait()
            self._changed.clear()
            frame = self._replies.frame()
            if frame is None or (frame.source, frame.body) == (source, body):
                continue
            wait = pause
            if frame.source != source and not self._drafts:
                await self._plan([frame])
                source, target = frame.source, await self._sent_as(frame)
                edits += 1
            elif target or self._drafts:
                async with self._calling:  # not to be interrupted: it could still arrive
                    wait = max(pause, await channel.frame(self._place, target, frame.body))
                edits, pause = edits + 1, pause * _FURTHER
            body = frame.body
            if self._current:
                await self._clock.sleep(wait)
