"""What people are shown of a run besides the blocks of its answers: the typing sign, previews and side messages."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from agent.message import ToolCall
from bot import wording
from bot.clock import Clock
from bot.persistence.turns import Turn
from bot.replies.cutting import Replies
from bot.replies.reactions import Reaction, Working
from bot.speech import spoken
from channels.base import Channel
from channels.message import ChatKind, Place
from channels.outgoing import Planned
from channels.sources import Source, side_message
from channels.stream.chunker import Chunker

# The most edits of the messages of one answer, the last edits included.
MOST_EDITS = 12
# Seconds between the first two frames of a preview, and the factor by which each pause is longer than the one before.
_FIRST, _FURTHER = 1.0, 1.3
# The least and the most UTF-16 units of a piece of reasoning, which then fits into one message on every platform.
_LEAST, _MOST = 400, 1400


class Typing:
    """The typing sign of one run, shown while this context manager is entered, and its reaction.

    The sign is renewed as often as the platform needs it, and never after the last block. A call under way is not
    cancelled, because it could still arrive: the channel sends nothing visible into a chat before its typing call has
    ended. channel: None shows no sign. reaction: to the message that it answers; None shows none.
    """

    def __init__(
        self,
        channel: Channel | None,
        place: Place,
        on_error: Callable[[Exception], None],
        reaction: Reaction | None = None,
    ) -> None:
        self.reaction = reaction
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
        """Show the sign no more, and leave the reaction as it is."""
        self._stopped.set()
        if self.reaction is not None:
            self.reaction.stop()

    def state(self, working: Working) -> None:
        """Note what the run does now."""
        if self.reaction is not None:
            self.reaction.show(working)

    async def waits(self) -> None:
        """Stop, and show that the turn waits."""
        self.stop()
        if self.reaction is not None:
            await self.reaction.stay("waiting")

    def last(self, *, failed: bool = False) -> tuple[Planned, ...]:
        """Return the reaction that stays when the turn has ended."""
        return self.reaction.last(failed=failed) if self.reaction is not None else ()

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


@dataclass(eq=False)
class Showing:
    """Sends whole words when the model pauses, or keeps a preview up to date, for the answers of one run.

    A preview is one delivery, which is edited with the words so far. These edits (frames) are not persisted, few, and
    ever further apart. The final words are an edit that is persisted (`bot/store/rows`) and does not wait for frames.

    channel: where the run answers; None shows nothing. plan: persists blocks for delivery. sent_as: waits until a
    preview has been sent and returns its message id on the platform; empty when it was not sent.
    """

    replies: Replies
    channel: Channel | None
    place: Place
    clock: Clock
    plan: Callable[[Sequence[Planned]], Awaitable[None]]
    sent_as: Callable[[Planned], Awaitable[str]]

    def __post_init__(self) -> None:
        cutting = self.replies.streaming
        self._idle = cutting.idle_ms / 1000
        drafts = cutting.preview == "draft" and self.channel is not None and self.channel.capabilities.drafts
        self._drafts = drafts and self.place.kind is ChatKind.DIRECT
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._calling = asyncio.Lock()

    @property
    def _current(self) -> bool:
        """Whether the answer that the calling task shows is still being written."""
        return self._task is asyncio.current_task()

    def changed(self) -> None:
        """Note that the model has written more. Raises what `finish` raises."""
        self._changed.set()
        if self._task is not None and self._task.done() and not self.replies.previews:
            self._task.result()
        if self._task is None and self.channel is not None:
            show = self._previews(self.channel) if self.replies.previews else self._pauses()
            self._task = asyncio.create_task(show, name="showing")
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def stop(self) -> None:
        """Show nothing more of the answer. A call under way is not cancelled; it ends before the next delivery."""
        if self._task is not None and not self._calling.locked():
            self._task.cancel()
        self._task = None

    async def finish(self) -> None:
        """Stop, and wait until what was sent is persisted. Raises what the store raised if it could not be."""
        task = self._task
        self.stop()
        if task is not None and not self.replies.previews:
            async with self._calling:
                pass
            if task.done() and not task.cancelled():
                task.result()

    async def _pauses(self) -> None:
        while self._current:
            await self._changed.wait()
            while self._changed.is_set():
                self._changed.clear()
                await self.clock.sleep(self._idle)
            async with self._calling:
                if blocks := self.replies.pause():
                    await self.plan(blocks)

    async def _previews(self, channel: Channel) -> None:
        edits, pause = 0, _FIRST
        source: Source | None = None
        body = target = ""
        while edits < MOST_EDITS and self._current:
            await self._changed.wait()
            self._changed.clear()
            frame = self.replies.frame()
            if frame is None or (frame.source, frame.body) == (source, body):
                continue
            wait = pause
            if frame.source != source and not self._drafts:
                await self.plan([frame])
                source, target = frame.source, await self.sent_as(frame)
                edits += 1
            elif target or self._drafts:
                async with self._calling:  # not cancelled, because it could still arrive
                    wait = max(pause, await channel.frame(self.place, target, frame.body))
                edits, pause = edits + 1, pause * _FURTHER
            body = frame.body
            if self._current:
                await self.clock.sleep(wait)


class SideMessages:
    """Makes the side messages of one run, which show calls of tools (`/verbose`) and reasoning (`/reasoning`).

    Side messages are silent and no words of the answer: their `said` is empty and they have no step, so that they are
    not taken for words of the model or for the beginning of an answer that was cut.

    say: makes the deliveries of a text from their source and the text. shown: False where there are no side
    messages, because programs and terminals read the events instead. in_full: whether calls are shown with their
    arguments, because only owners read along.
    """

    def __init__(
        self, turn: Turn, say: Callable[[Source, str], Sequence[Planned]], *, shown: bool, in_full: bool
    ) -> None:
        self._verbose = shown and turn.settings.verbose == "on"
        self._reasoning = turn.settings.reasoning if shown else "off"
        self._turn_id, self._say, self._in_full = turn.turn_id, say, in_full
        # Pieces of reasoning by step, kept until there are words to show them before.
        self._thoughts: dict[int, list[str]] = {}

    def begin(self, step: int) -> None:
        """Begin the answer of a step, or begin it anew."""
        self._step, self._numbers = step, itertools.count()
        self._thoughts[step] = []
        if self._reasoning == "stream":
            self._chunker = Chunker(_LEAST, _MOST)

    def think(self, delta: str) -> Sequence[Planned]:
        """Take a piece of the reasoning; returns the side messages that are sent at once."""
        if self._reasoning == "stream":
            return self._quoted(block.text for block in self._chunker.feed(delta))
        if self._reasoning == "on" and self._step in self._thoughts:
            self._thoughts[self._step].append(delta)
        return ()

    def before(self) -> Sequence[Planned]:
        """Return the reasoning that must be sent before words are sent, also of earlier answers without words."""
        if self._reasoning == "stream":
            chunker, self._chunker = self._chunker, Chunker(_LEAST, _MOST)
            return self._quoted(block.text for block in chunker.end())
        text = "\n\n".join("".join(pieces) for pieces in self._thoughts.values()).strip()
        self._thoughts = {}
        return self._quoted([text if len(text) <= _MOST else f"{text[:_MOST]}…"] if text else ())[:1]

    def around(self, blocks: Sequence[Planned], calls: Sequence[ToolCall], used: str) -> Sequence[Planned]:
        """Return the last blocks of an answer that is not silent, with reasoning before and calls after them.

        used: what the turn has used, if it ends with this answer; else empty.
        """
        says = any(not block.unless for block in blocks) or (calls and self._reasoning == "stream")
        before = self.before() if says else ()
        lines = [wording.call(call.name, call.arguments if self._in_full else "") for call in calls if self._verbose]
        lines += [used] if used and self._verbose else []
        return (*before, *blocks, *(self._aside("t", "\n".join(lines)) if lines else ()))

    def _quoted(self, texts: Iterable[str]) -> list[Planned]:
        quotes = ("> " + text.replace("\n", "\n> ") for text in texts)
        return [one for quote in quotes for one in self._aside(f"r{next(self._numbers)}", spoken(quote))]

    def _aside(self, name: str, text: str) -> list[Planned]:
        found = self._say(side_message(self._turn_id, self._step, name), text)
        return [replace(one, said="", silent=True) for one in found]
