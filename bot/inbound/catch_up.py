"""Catching up: what was said while nobody listened is read from the platform, and what comes live waits behind it.

A conversation has a *gap* from the moment when something may have been missed until its history was read to the end.
Gaps are in memory alone, because every start is one; what lasts is the *cursor* in the store: the newest message up to
which nothing is missing (docs/decisions/0021-cursors-and-gaps.md).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog

from agent.text import cleaned
from bot import wording
from bot.clock import Clock
from bot.config.model import CatchUpSettings
from bot.outbox import Outbox
from bot.persistence.errors import StoreUnavailable, once_available
from bot.persistence.protocols import Store
from bot.persistence.values import Accepted, AcceptedMessage, Heard
from bot.runs.lanes import Lanes
from channels.base import History, Mark, NotReadable, Page, Reached
from channels.message import ChatKind, InboundKind, InboundMessage, Incoming, Place, id_order

log = structlog.get_logger()

# Messages asked for at once.
PAGE = 100
# Histories that are asked for at the same time.
CALLS = 4
PAUSE = 1.0
LONGEST_PAUSE = 60.0
# How often a channel may fail by a fault of its own before its conversation is given up.
FAULTS = 5
# Messages behind the cursor that are looked through for one that is too old to be read.
OWN = 20

Key = tuple[str, str, str, str]


def key_of(place: Place) -> Key:
    """What makes it a conversation of its own."""
    return place.channel, place.account, place.chat, place.thread


@dataclass(eq=False, slots=True)
class _Gap:
    """A conversation of which something may be missing.

    newest: its newest message, where the platform has told it. asked: how often something may have been missed since it
    opened. held: something of it waits in the store. reading: a task has taken it on.
    """

    place: Place
    newest: str = ""
    cursor: str = ""
    asked: int = 0
    held: bool = False
    reading: bool = False


@dataclass(eq=False, slots=True)
class _Account:
    """Of a channel with a history. listing: while it is not 0, every conversation counts as having a gap.

    first: when the bot was there for the first time, in milliseconds.
    """

    channel: History
    listing: int = 0
    first: int = 0
    gaps: dict[Key, _Gap] = field(default_factory=dict)

    def gap(self, place: Place) -> _Gap:
        """That of a conversation, opened if it is not."""
        return self.gaps.setdefault(key_of(place), _Gap(place))


@dataclass(eq=False)
class CatchUp:
    """Between the decision about a message and the store.

    decide: about one that was read, as about one that comes live. keep: stores a batch and begins what it asks for;
    raises StoreUnavailable.
    """

    store: Store
    outbox: Outbox
    lanes: Lanes
    clock: Clock
    settings: CatchUpSettings
    decide: Callable[[Incoming], Accepted]
    keep: Callable[[Sequence[Accepted], Mark | None], Awaitable[object]]
    _accounts: dict[tuple[str, str], _Account] = field(default_factory=dict, init=False)
    _calls: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, CALLS), init=False)
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set, init=False)
    _told: set[str] = field(default_factory=set, init=False)
    _storing: Counter[Key] = field(default_factory=Counter, init=False)
    _closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._max_age = int(self.settings.max_age.total_seconds() * 1000)

    def missed(self, channel: str, account: str, reached: Sequence[Reached]) -> None:
        """See channels.base.Sink."""
        found = self.outbox.serving(Place(channel=channel, account=account, chat="", kind=ChatKind.DIRECT))
        if self._closed or not isinstance(found, History):
            return
        known = self._accounts.setdefault((channel, account), _Account(found))
        for gap in known.gaps.values():
            gap.newest = ""  # what was told of it is of before
            gap.asked += 1
        for one in reached:
            known.gap(one.place).newest = one.newest
        known.listing += 1
        self._begin(self._list(known, everything=True))

    def aged(self, item: AcceptedMessage) -> AcceptedMessage:
        """A decision about a message; one that is too old is dropped, which is said once to whoever wrote directly."""
        message = item.message
        oldest = self._oldest()
        said = item.state == "waiting" and message.kind in (InboundKind.MESSAGE, InboundKind.COMMAND)
        if not said or not 0 < message.sent_at < oldest:
            return item
        place = message.origin.place
        source, text = self._note_aged(place), wording.away(self.clock.stamp(oldest))
        say = self.outbox.notice(source, text, place.channel) if place.kind is ChatKind.DIRECT else ()
        return replace(item, state="dropped", reason="age", session_key=None, say=say)

    async def accept(self, batch: Sequence[Incoming], items: Sequence[Accepted], mark: Mark | None) -> None:
        """Store what was decided about a live batch; nothing is awaited before. Raises StoreUnavailable."""
        kept: list[Accepted] = []
        places: dict[Key, Place] = {}
        for incoming, item in zip(batch, items, strict=True):
            kept.append(item)
            if isinstance(incoming, InboundMessage) and isinstance(item, AcceptedMessage):
                place = cleaned(incoming.origin.place)  # as the platform has it: an answer may open a thread
                places[key_of(place)] = place
                kept[-1:] = self._behind(place, incoming.kind, item)
        self._storing.update(places.keys())
        try:
            await self.keep(kept, mark)
        except BaseException:
            self._refused(places.values())
            raise
        finally:
            self._storing.subtract(places.keys())
            self._storing = +self._storing

    async def close(self) -> None:
        """Read nothing more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Live.

    def _behind(self, place: Place, kind: InboundKind, item: AcceptedMessage) -> Sequence[Accepted]:
        """What is stored of a message: itself, and that its conversation is heard up to it.

        One into a gap waits behind the history; and no cursor passes a message that may still be refused.
        """
        account = self._accounts.get((place.channel, place.account))
        if account is not None and (account.listing or key_of(place) in account.gaps):
            if item.state == "waiting" and item.message.kind is InboundKind.MESSAGE:
                account.gap(place).held = True
                return [replace(item, behind=True, delay=0, gathers=False)]
        elif account is not None and kind is InboundKind.MESSAGE and not self._storing[key_of(place)]:
            return [item, Heard(place, item.message.origin.message_id)]
        return [item]

    def _refused(self, places: Iterable[Place]) -> None:
        """Nothing of a live batch was stored, or nobody knows: what it had is read from the history."""
        for place in places:
            account = self._accounts.get((place.channel, place.account))
            if account is not None and not self._closed:
                gap = account.gap(place)
                gap.newest = ""
                gap.asked += 1
                self._begin(self._list(account, everything=False))

    # Reading.

    async def _list(self, account: _Account, *, everything: bool) -> None:
        """Begin to read each conversation that has a gap, those with the newest activity first.

        everything: all that the store knows of the account have one.
        """
        channel, since = account.channel, self._oldest()
        ask = partial(self.store.history.known, channel.name, channel.account, since)
        known = await once_available(ask, self._pause)
        account.first = known.first
        for one in known.conversations:
            gap = account.gaps.get(key_of(one.place))
            if gap is None and everything and one.listed:
                gap = account.gap(one.place)
            if gap is not None and not gap.reading:
                gap.cursor, gap.held = one.cursor, gap.held or one.held
        account.listing -= everything
        fresh = known.fresh and not account.listing  # and nothing was missed since
        calls = passed = 0
        begun: list[Accepted] = []
        gaps = [gap for gap in account.gaps.values() if not gap.reading]
        for gap in sorted(gaps, key=lambda gap: max(id_order(gap.newest), id_order(gap.cursor)), reverse=True):
            wanted = not fresh and not (gap.newest and id_order(gap.newest) <= id_order(gap.cursor))
            if fresh and gap.newest:  # what was said before its first time here was not said to it
                begun.append(Heard(gap.place, gap.newest))
            if wanted and calls == self.settings.max_conversations:
                wanted = False
                passed += 1
            calls += wanted
            gap.reading = True
            if wanted or gap.held:
                self._begin(self._close_gap(account, gap, wanted))
            else:
                del account.gaps[key_of(gap.place)]
        if passed:
            log.warning("not read because of catch_up.max_conversations", channel=channel.name, conversations=passed)
        if begun:
            await once_available(partial(self.keep, begun, None), self._pause)

    async def _close_gap(self, account: _Account, gap: _Gap, wanted: bool) -> None:
        """Read what is missing, if wanted, then let go what waits behind it; anew if more was missed meanwhile."""
        asked = None
        while asked != gap.asked:
            wanted, asked = wanted or asked is not None, gap.asked
            if wanted:
                where = {"channel": gap.place.channel, "chat": gap.place.chat, "thread": gap.place.thread}
                try:
                    await self._read(account, gap)
                except Exception as error:  # else a fault of the adapter
                    say = log.warning if isinstance(error, NotReadable) else log.exception
                    say("a history cannot be read; what was missed there is lost", **where, reason=str(error))
            while gap.held and asked == gap.asked:
                gap.held = False  # what is held from here on comes behind this transaction
                try:
                    released = await self.store.history.release(gap.place)
                except StoreUnavailable:
                    gap.held = True
                    await self.clock.sleep(PAUSE)
                else:
                    for session_key in released:
                        self.lanes.wake(session_key)
        del account.gaps[key_of(gap.place)]

    async def _read(self, account: _Account, gap: _Gap) -> None:
        """From the cursor to the end, oldest first; each page is one transaction, its cursor with it.

        Raises NotReadable.
        """
        channel = account.channel
        oldest = channel.position(self._oldest())
        items: list[Accepted] = []
        if gap.cursor and id_order(gap.cursor) < id_order(oldest):
            items = await self._passed_over(channel, gap, oldest)
        after = max(gap.cursor or channel.position(account.first), oldest, key=id_order)
        more = True
        while more:
            page = await self._page(channel, gap.place, after, "", PAGE)
            more = page.more and id_order(page.newest) > id_order(after)
            after = max(after, page.newest, key=id_order)
            if id_order(after) > id_order(gap.cursor):
                items += map(self._decide_read, page.batch)
                keep = partial(self.keep, [Heard(gap.place, after), *items], None)
                await once_available(keep, self._pause)
                gap.cursor, items = after, []

    def _decide_read(self, message: Incoming) -> Accepted:
        """It waits for nothing more of its sender: what comes behind it is ready at once."""
        item = self.decide(message)
        return replace(item, delay=0, gathers=False) if isinstance(item, AcceptedMessage) else item

    async def _passed_over(self, channel: History, gap: _Gap, oldest: str) -> list[Accepted]:
        """The first message that is too old to be read, dropped by that rule, if there is one."""
        page = await self._page(channel, gap.place, gap.cursor, oldest, OWN)
        if page.batch:
            self._note_aged(gap.place)
        decided = map(self.decide, page.batch[:1])
        return [item for item in decided if isinstance(item, AcceptedMessage) and item.reason == "age"]

    def _note_aged(self, place: Place) -> str:
        """Log it once, in a place and for a time that this names."""
        name = f"away:{':'.join(key_of(place))}:{self.clock.now() // self._max_age}"
        if name not in self._told:
            self._told.add(name)
            log.warning("messages older than catch_up.max_age are not read", channel=place.channel, chat=place.chat)
        return name

    async def _page(self, channel: History, place: Place, after: str, before: str, most: int) -> Page:
        """Ask until there is an answer; others are asked meanwhile. Raises NotReadable if there never will be one."""
        tries = 0
        while True:
            try:
                async with self._calls:
                    return await channel.history(place, after, before, most)
            except NotReadable as error:
                if error.retry_after is None:
                    raise
                wait = error.retry_after
                log.info("a history is asked for again", channel=place.channel, chat=place.chat, reason=str(error))
            except Exception:  # a fault of the adapter
                if tries >= FAULTS:
                    raise
                wait = 0.0
                log.exception("channel failed", channel=place.channel)
            await self.clock.sleep(max(wait, min(PAUSE * 2**tries, LONGEST_PAUSE)))
            tries += 1

    def _oldest(self) -> int:
        return self.clock.now() - self._max_age

    async def _pause(self, error: StoreUnavailable) -> None:
        await self.clock.sleep(PAUSE)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="catch-up")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("catching up has failed", exc_info=error)
