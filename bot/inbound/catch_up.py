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

from agent.message import cleaned
from bot import wording
from bot.clock import Clock
from bot.config.model import CatchUpSettings
from bot.inbound.gaps import Gap, Key, Listened, key_of, rank
from bot.inbound.routing import Routing
from bot.inbound.threads import Threads
from bot.outbox import Outbox
from bot.persistence.causes import Cause
from bot.persistence.errors import StoreUnavailable
from bot.persistence.inbox import Accepted, AcceptedMessage, Duplicate, Fresh, Heard
from bot.runs.lanes import Lanes
from bot.store.store import Store
from bot.store.writer import once_available
from channels.base import History, Mark, NotReadable, Page, Reached, Threaded
from channels.message import ChatKind, InboundKind, InboundMessage, Incoming, Place, id_order
from channels.sources import Source, sentence

log = structlog.get_logger()

# Messages asked for at once.
PAGE = 100
# Histories that are asked for at the same time.
CALLS = 4
PAUSE = 1.0
LONGEST_PAUSE = 60.0
# How often a channel may fail by a fault of its own before its conversation is given up.
FAULTS = 5
# Seconds for which messages wait behind a history that cannot be read; what is missing is read all the same, later.
LONGEST_HOLD = 60.0
# Messages behind the cursor that are looked through for one that is too old to be read.
OWN = 20
# Milliseconds after which a message that a platform delivers into a group was missed.
LATE = 60_000


@dataclass(eq=False)
class CatchUp:
    """Between the decision about a message and the store.

    routing: knows where anybody is answered. decide: about one that was read, as about one that comes live. keep:
    stores a batch and begins what it asks for; raises StoreUnavailable.
    """

    store: Store
    outbox: Outbox
    lanes: Lanes
    clock: Clock
    settings: CatchUpSettings
    routing: Routing
    decide: Callable[[Incoming], Accepted]
    keep: Callable[[Sequence[Accepted], Mark | None], Awaitable[Sequence[Fresh | Duplicate]]]
    _accounts: dict[tuple[str, str], Listened] = field(default_factory=dict, init=False)
    _calls: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, CALLS), init=False)
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set, init=False)
    _told: set[Source] = field(default_factory=set, init=False)
    _storing: Counter[Key] = field(default_factory=Counter, init=False)
    _closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._max_age = int(self.settings.max_age.total_seconds() * 1000)
        self._threads = Threads(self.routing.may_show)

    def missed(self, channel: str, account: str, reached: Sequence[Reached]) -> None:
        """See channels.base.Sink."""
        found = self.outbox.serving(Place(channel=channel, account=account, chat="", kind=ChatKind.DIRECT))
        if self._closed or not isinstance(found, History):
            return
        known = self._accounts.setdefault((channel, account), Listened(found))
        known.channel = found  # another adapter, if its configuration has changed
        for gap in known.gaps.values():
            gap.newest = ""  # what was told of it is of before
            gap.asked += 1
        for one in reached:
            known.gap(one.place).newest = one.newest
            known.spaces[one.place.chat] = one.space
        known.listing += 1
        self._begin(self._list(known, everything=True))

    def aged(self, item: AcceptedMessage) -> AcceptedMessage:
        """A decision about a message; one that was missed is taken together with others, and one that is too old is
        dropped, which is said once to whoever wrote directly."""
        message = item.message
        oldest = self._oldest()
        said = item.state == "waiting" and message.kind in (InboundKind.MESSAGE, InboundKind.COMMAND)
        if not said or not 0 < message.sent_at < oldest:
            shared = message.origin.place.kind is not ChatKind.DIRECT  # of one person the messages gather anyway
            missed = shared and message.kind is InboundKind.MESSAGE and 0 < message.sent_at < self.clock.now() - LATE
            return replace(item, delay=0, gathers=True) if said and missed else item
        place = message.origin.place
        source, text = self._note_aged(place), wording.away(self.clock.stamp(oldest))
        say = self.outbox.notice(source, text, place.channel) if place.kind is ChatKind.DIRECT else ()
        return replace(item, state="dropped", reason=Cause.AGE, session_key=None, say=say)

    async def accept(self, batch: Sequence[Incoming], items: Sequence[Accepted], mark: Mark | None) -> None:
        """Store what was decided about a live batch; nothing is awaited before. Raises StoreUnavailable."""
        kept: list[Accepted] = []
        places: dict[Key, Place] = {}
        for incoming, item in zip(batch, items, strict=True):
            kept.append(item)
            if isinstance(incoming, InboundMessage) and isinstance(item, AcceptedMessage):
                place = cleaned(incoming.origin.place)  # as the platform has it: an answer may open a thread
                places[key_of(place)] = place
                if (account := self._accounts.get((place.channel, place.account))) is not None:
                    kept[-1:] = self._behind(account, place, incoming.kind, self._told_unread(account, place, item))
        self._storing.update(places.keys())
        try:
            answers = await self.keep(kept, mark)
        except BaseException:
            self._refused(places.values())
            raise
        finally:
            self._storing.subtract(places.keys())
            self._storing = +self._storing
        for item, answer in zip(kept, answers, strict=True):
            if isinstance(item, AcceptedMessage) and isinstance(answer, Fresh) and answer.state == "held":
                self._look_around(item)

    async def close(self) -> None:
        """Read nothing more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Live.

    def _behind(self, account: Listened, place: Place, kind: InboundKind, item: AcceptedMessage) -> Sequence[Accepted]:
        """What is stored of a message: itself, and that its conversation is heard up to it.

        One into a gap waits behind the history; and no cursor passes a message that may still be refused.
        """
        if account.listing or key_of(place) in account.gaps:
            if item.state == "waiting" and item.message.kind is InboundKind.MESSAGE:
                gap = account.gap(place)
                if not gap.late:
                    gap.held = True
                    return [replace(item, behind=True, delay=0, gathers=gap.patience > 0)]
            return [item]
        asks = item.state == "waiting" and item.message.kind is InboundKind.MESSAGE
        if asks and isinstance(account.channel, Threaded):
            item = replace(item, asks_around=place.thread not in ("", item.message.origin.message_id))
        if kind is InboundKind.MESSAGE and not self._storing[key_of(place)]:
            return [item, Heard(place, item.message.origin.message_id)]
        return [item]

    def _look_around(self, item: AcceptedMessage) -> None:
        """What is the first for the bot in a thread waits until it is known what was said there before."""
        place = item.message.origin.place
        if not item.asks_around or self._closed:
            return
        account = self._accounts[place.channel, place.account]
        begins = key_of(place) not in account.gaps and not account.listing
        gap = account.gap(place)
        gap.held, gap.patience = True, max(gap.patience, item.delay)
        if begins:
            gap.reading = True
            self._begin(self._close_gap(account, gap, wanted=False))

    def _told_unread(self, account: Listened, place: Place, item: AcceptedMessage) -> AcceptedMessage:
        """Whoever writes to the bot where something was not looked at is told so with it, once."""
        source = account.unread.get(key_of(place))
        if source is None or item.state != "waiting":
            return item
        return replace(item, say=(*item.say, *self.outbox.notice(source, wording.UNREAD, place.channel)))

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

    async def _list(self, account: Listened, *, everything: bool) -> None:
        """Begin to read each conversation that has a gap and where anybody is answered: direct messages first, then
        those with the newest activity.

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
        calls = 0
        passed: list[Gap] = []
        begun: list[Accepted] = []
        gaps = [gap for gap in account.gaps.values() if not gap.reading]
        for gap in sorted(gaps, key=rank, reverse=True):
            wanted = not fresh and not (gap.newest and id_order(gap.newest) <= id_order(gap.cursor))
            wanted = wanted and self.routing.answers_in(gap.place, account.spaces.get(gap.place.chat, ""))
            if fresh and gap.newest:  # what was said before its first time here was not said to it
                begun.append(Heard(gap.place, gap.newest))
            if wanted and calls == self.settings.max_conversations:
                wanted = False
                passed.append(gap)
            calls += wanted
            gap.reading = True
            if wanted or gap.held:
                self._begin(self._close_gap(account, gap, wanted))
            else:
                del account.gaps[key_of(gap.place)]
        if begun:
            await once_available(partial(self.keep, begun, None), self._pause)
        if passed:
            await self._tell_unread(account, passed)

    async def _tell_unread(self, account: Listened, passed: Sequence[Gap]) -> None:
        """These are not looked at. Who wrote directly not long ago may wait for an answer, and is told at once; others
        when they write again."""
        name, oldest = account.channel.name, account.channel.position(self._oldest())
        log.warning("not read because of catch_up.max_conversations", channel=name, conversations=len(passed))
        period = self.clock.now() // self._max_age
        for key, gap in [(key_of(gap.place), gap) for gap in passed]:
            account.unread[key] = source = sentence("unread", *key, period)
            if gap.place.kind is ChatKind.DIRECT and id_order(gap.cursor) >= id_order(oldest):
                await once_available(partial(self.outbox.tell, gap.place, source, wording.UNREAD), self._pause)

    async def _close_gap(self, account: Listened, gap: Gap, wanted: bool) -> None:
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
            await self._release(account.channel, gap, asked)
        del account.gaps[key_of(gap.place)]

    async def _release(self, channel: History, gap: Gap, asked: int) -> None:
        """Let go what waits behind a gap, unless more was missed than then."""
        while gap.held and asked == gap.asked:
            around = await self._around(channel, gap)
            gap.held = False  # what is held from here on comes behind this transaction
            try:
                released = await self.store.history.release(gap.place, around)
            except StoreUnavailable:
                gap.held = True
                await self.clock.sleep(PAUSE)
            else:
                for session_key in released:
                    self.lanes.wake(session_key)

    async def _around(self, channel: History, gap: Gap) -> Sequence[InboundMessage]:
        """What was said before in a thread whose first message for the bot waits, meanwhile for more of its sender."""
        if not gap.place.thread or not isinstance(channel, Threaded):
            return ()
        if not (begins := await once_available(partial(self.store.history.begins, gap.place), self._pause)):
            return ()
        waiting = [self.clock.sleep(gap.patience / 1000)] if gap.patience else []
        return (await asyncio.gather(self._threads.before(channel, gap.place, begins), *waiting))[0] or ()

    async def _read(self, account: Listened, gap: Gap) -> None:
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
            page = await self._page(channel, gap, after, "", PAGE)
            more = page.more and id_order(page.newest) > id_order(after)
            after = max(after, page.newest, key=id_order)
            if id_order(after) > id_order(gap.cursor):
                items += map(self._decide_read, page.batch)
                gap.held = gap.held or any(isinstance(item, AcceptedMessage) and item.behind for item in items)
                keep = partial(self.keep, [Heard(gap.place, after), *items], None)
                await once_available(keep, self._pause)
                gap.cursor, items = after, []

    def _decide_read(self, message: Incoming) -> Accepted:
        """It waits until all of its history is read: what was missed in one conversation is one turn."""
        item = self.decide(message)
        if not isinstance(item, AcceptedMessage):
            return item
        waits = item.state == "waiting" and item.message.kind is InboundKind.MESSAGE
        return replace(item, gathers=waits, behind=waits)

    async def _passed_over(self, channel: History, gap: Gap, oldest: str) -> list[Accepted]:
        """The first message that is too old to be read, dropped by that rule, if there is one."""
        page = await self._page(channel, gap, gap.cursor, oldest, OWN)
        if page.batch:
            self._note_aged(gap.place)
        decided = map(self.decide, page.batch[:1])
        return [item for item in decided if isinstance(item, AcceptedMessage) and item.reason is Cause.AGE]

    def _note_aged(self, place: Place) -> Source:
        """Log it once, in a place and for a time that this names."""
        source = sentence("away", *key_of(place), self.clock.now() // self._max_age)
        if source not in self._told:
            self._told.add(source)
            log.warning("messages older than catch_up.max_age are not read", channel=place.channel, chat=place.chat)
        return source

    async def _page(self, channel: History, gap: Gap, after: str, before: str, most: int) -> Page:
        """Ask until there is an answer; others are asked meanwhile. Raises NotReadable if there never will be one."""
        tries, place, begun = 0, gap.place, self.clock.monotonic()
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
            wait = max(wait, min(PAUSE * 2 ** min(tries, 16), LONGEST_PAUSE))
            if not gap.late and self.clock.monotonic() + wait - begun > LONGEST_HOLD:
                gap.late = True
                log.warning("a history cannot be read yet", channel=place.channel, chat=place.chat)
                await self._release(channel, gap, gap.asked)
            await self.clock.sleep(wait)
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
