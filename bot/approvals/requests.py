"""Puts requests and questions to people: chooses who is asked and where, and shows what was decided.

The store alone knows which requests are open. `Requests` looks there when it is told that something has changed, and
when the next request expires. It is called by `bot/runs/journal` when a turn parks, by commands and the gateway when
somebody decides, and by the service when it starts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

import structlog

from agent.errors import ToolError
from agent.tools.base import Ask, Decision
from bot import wording
from bot.approvals import decisions, words
from bot.approvals.grants import Grants
from bot.clock import Clock
from bot.commands.registry import Say
from bot.config.background import Approvals as Settings
from bot.outbox import Outbox
from bot.people.access import FOR_GUESTS, LOCAL, OWNER, is_trusted
from bot.people.conversations import Conversations
from bot.people.people import chat_of
from bot.persistence.approvals import ANYONE, Approval, Choice, Request
from bot.persistence.deliveries import OwnerNotice
from bot.persistence.errors import StoreUnavailable
from bot.persistence.turns import BY_THEMSELVES, Turn
from bot.store.store import Store
from channels.actions import ActionFailed
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatKind, InboundKind, InboundMessage, Place
from channels.outgoing import Button, Planned
from channels.sources import Source, reminder, sentence
from channels.sources import request as request_source

log = structlog.get_logger()

# Seconds until the next look at the requests when the store could not be read, and when a look at all of them failed.
_PAUSE, _AGAIN = 1.0, 60.0
# The most seconds between two looks, and between two tries of a request whose looks fail.
_LONGEST = 3600.0
# Seconds for which a platform may look for a conversation.
_PATIENCE = 5.0
# Who decides at the command line.
LOCALLY = f"console:{OWNER}"


class Requests:
    """The requests of a service that runs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        outbox: Outbox,
        conversations: Conversations,
        settings: Settings,
        wake: Callable[[str, bool], None],
    ) -> None:
        """Make it of its parts. wake: lets the turn of a session go on; it is given the
        session key, and whether the turn is one of the background."""
        self._wake = wake
        # Of the configuration.
        self.settings = settings
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._conversations = conversations
        self._people = conversations.people
        # What is allowed for more than one call.
        self.grants = Grants(store, clock)
        self._hurried = asyncio.Event()
        # Requests whose look failed: how often in a row, and when to try again (seconds of the monotonic clock).
        self._failed: dict[str, tuple[int, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def put(self, turn: Turn, ask: Ask) -> Request | Decision:
        """Return how an Ask of a turn is put to people, or an expired decision where nobody may decide it.

        The request is shown in the conversation of the turn, unless the configuration names another one. If none of
        those who may decide is known to read that conversation, the one of them who wrote last is shown it directly,
        and the conversation is told that it waits. Where nobody may decide, the conversation is told that. Raises
        StoreUnavailable.
        """
        approvers, place = self._who(turn, ask), turn.place
        if ask.alone and (turn.kind in BY_THEMSELVES or place.kind is ChatKind.API):
            return Decision("expired", ask.digest, ask.alone)
        if not approvers and not (place.kind in LOCAL and is_trusted(turn.messages[-1])):
            reason = words.nobody(ask)
            if place.kind is not ChatKind.API:
                await self._outbox.tell(place, sentence("nobody", turn.turn_id, ask.digest[:16]), reason)
            return Decision("expired", ask.digest, reason)
        reads = await self._reads_along(turn, approvers)
        if ask.question and not reads and (reason := await self._not_asked(turn, ask)):
            return Decision("expired", ask.digest, reason)
        ident = await self._new_id()
        expires = round(1000 * (self.settings.timeout_seconds if ask.seconds is None else ask.seconds))
        until = self._clock.stamp(self._clock.now() + expires)
        who = self.deciders(ask)
        origin, source = turn.messages[-1].origin, request_source(ident)
        asked = words.asked_in(origin)

        def shown(where: Place, source: Source, *before: str) -> tuple[Planned, ...]:
            foot = words.foot(ask, ident, who, until, where.kind)
            channel = self._outbox.channel(where.channel)
            foot = "\n\n".join((*before, wording.typed(foot, channel.capabilities.commands) if channel else foot))
            return self._blocks(
                source, where.channel, words.request(ask, foot, self._fits(where)), words.buttons(ask, ident)
            )

        request = Request(approval_id=ident, approvers=approvers, expires=expires)
        forward = None if ask.question else await self._forward()
        if forward is not None and forward != place:
            blocks = self._outbox.notice(source, words.waits_elsewhere(ask, ident), place.channel)
            elsewhere = [(forward, await asyncio.to_thread(shown, forward, source.also(2), asked))]
            return replace(request, blocks=() if place.kind is ChatKind.API else blocks, elsewhere=elsewhere)
        # in a group somebody may read along who has never written there
        here = forward is not None or reads or _may_read(place, approvers)
        hint = () if ask.question else (words.FORWARD,)
        people = [one.partition(":")[::2] for one in approvers if self._outbox.channel(one.partition(":")[0])]
        notice = OwnerNotice(people, CONSOLE, lambda where: shown(where, source.also(2), asked, *hint))
        if here:  # apart from the loop: a long command is rendered many times until its pieces fit
            blocks = await asyncio.to_thread(shown, place, source)
        else:
            texts = words.request(ask, words.told_elsewhere(ask, until), self._fits(place))
            blocks = self._blocks(source, place.channel, texts, ())
        blocks = () if place.kind is ChatKind.API else blocks
        return replace(request, blocks=blocks, notice=None if forward is not None or reads else notice)

    async def _not_asked(self, turn: Turn, ask: Ask) -> str:
        """Return why a question is not put to people who do not read the conversation; empty: it is put to them."""
        if ":" in ask.who:  # there is no way to write to anybody
            return words.NOT_HERE
        guests = not all(map(self._people.is_owner, turn.messages))
        asked = await self._store.approvals.questions(turn.turn_id) if guests else 0
        return words.ENOUGH if asked >= FOR_GUESTS else ""

    def deciders(self, ask: Ask) -> str:
        """Return in words who may decide an Ask."""
        return words.deciders(ask, named=bool(self.settings.approvers))

    def may_decide(self, approval: Approval, message: InboundMessage) -> bool:
        """Return whether the sender of a message may decide a request.

        Those who were asked may, and whoever has the terminal, the socket or the token.
        """
        origin = message.origin
        who = f"{origin.place.channel}:{origin.sender}"
        if origin.place.kind in LOCAL and is_trusted(message):
            return True
        if ANYONE in approval.approvers and chat_of(origin.place) == chat_of(approval.place):
            return not origin.by_bot
        still = approval.ask.question or who in self._deciders()
        return who in approval.approvers and still and not origin.by_bot

    async def is_open_to(self, approval: Approval, message: InboundMessage) -> bool:
        """Return whether a request may be spoken of where a message was written.

        It may where it is shown, and privately to those who may decide it.
        """
        place = message.origin.place
        if chat_of(place) == chat_of(approval.place):
            return True
        # what a press says is whatever the program of who pressed has sent, below whichever message
        if place.kind is ChatKind.DIRECT or place.kind in LOCAL or message.kind is InboundKind.BUTTON:
            return self.may_decide(approval, message)
        forward = await self._forward()
        return forward is not None and chat_of(place) == chat_of(forward)

    async def decide(self, approval_id: str, choice: Choice, by: str) -> bool:
        """Decide a request and let its turn go on; False if somebody else was first, or it was too late.

        by: who decides, as "channel:id"; the caller knows that they may. Raises StoreUnavailable.
        """
        found = await self._store.approvals.decide(approval_id, choice, by)
        if found is None:
            return False
        await self.decided(choice)
        self._wake(*found)
        return True

    async def approvals(self) -> list[Approval]:
        """Return the open requests, oldest first. Raises StoreUnavailable."""
        return list(await self._store.approvals.open())

    async def settle(self, named: str, choice: Choice, by: str = LOCALLY) -> Approval:
        """Decide a request for a program, and return it as it is then.

        named: its id, or the digits of it that are shown. Raises NotDecided, StoreUnavailable.
        """
        approval = decisions.meant(await self._store.approvals.find(named), named)
        decisions.check(approval, choice.verdict, self._clock.now(), choice.picked, choice.seconds)
        if choice.verdict == "answered":
            choice = replace(choice, reason=decisions.answer(approval, choice.reason))
        won = await self.decide(approval.approval_id, choice, by)
        (approval,) = await self._store.approvals.find(approval.approval_id)
        if not won:
            decisions.check(approval, choice.verdict, self._clock.now())
        return approval

    async def decided(self, choice: Choice) -> None:
        """Take note of a decision: what it allows from now on is allowed at once, and its messages soon show it."""
        if choice.verdict == "always":
            with suppress(StoreUnavailable):  # until it can be read it is asked about once more
                await self.grants.load()
        self._hurried.set()

    def hurry(self) -> None:
        """Look at the requests at once, because one was made or decided."""
        self._hurried.set()

    async def serve(self) -> None:
        """Let requests expire in time and show what was decided, until the task is cancelled."""
        while True:
            self._hurried.clear()
            try:
                wait = await self._look()
            except StoreUnavailable:
                wait = _PAUSE
            except Exception:  # not of one request
                log.exception("requests could not be looked after")
                wait = _AGAIN
            timer = asyncio.create_task(self._sleep(wait), name="requests-timer")
            timer.add_done_callback(lambda done: None if done.cancelled() else self._hurried.set())
            try:
                await self._hurried.wait()
            finally:
                timer.cancel()

    async def _sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def _look(self) -> float:
        """Look at all requests; returns the seconds until the next look. Raises StoreUnavailable.

        Each request is looked at by itself: one that fails is tried again later and does not hold up the others.
        """
        approvals = self._store.approvals
        for ident in (due := await approvals.due()):
            await self._try(ident, self._expire)
        for ident in (untold := await approvals.untold()):
            await self._try(ident, self._tell)
        self._failed = {ident: found for ident, found in self._failed.items() if ident in {*due, *untold}}
        expiry = await approvals.next_expiry()
        now = self._clock.monotonic()
        waits = [after - now for _, after in self._failed.values()]
        waits += [] if expiry is None else [(expiry - self._clock.now()) / 1000]
        return min(max(min(waits, default=_LONGEST), 0.0), _LONGEST)

    async def _try(self, ident: str, look: Callable[[str], Awaitable[None]]) -> None:
        """Look at a request, unless it failed a short while ago. Of failures in a row the first is logged."""
        times, after = self._failed.get(ident, (0, 0.0))
        if times and self._clock.monotonic() < after:
            return
        try:
            await look(ident)
        except StoreUnavailable:
            raise
        except Exception:  # a fault of ours, or of what is stored of it
            if not times:
                log.exception("a request could not be looked after", request=ident)
            self._failed[ident] = times + 1, self._clock.monotonic() + min(_PAUSE * 2 ** min(times, 12), _LONGEST)
        else:
            self._failed.pop(ident, None)

    async def _expire(self, ident: str) -> None:
        if found := await self._store.approvals.decide(ident, Choice(verdict="expired"), ""):
            self._wake(*found)

    async def _tell(self, ident: str) -> None:
        for approval in await self._store.approvals.find(ident):
            for edit in await self._store.approvals.tell(ident, partial(self._shown, approval)):
                self._outbox.serve(edit.conv_id, edit.place)

    def waits(self, approval_id: str, seq: int, message: InboundMessage) -> None:
        """Tell a person soon that a request waits for a decision, because their words decide nothing.

        seq: the place of their message in the inbox.
        """
        if not message.by_person or message.origin.by_bot:
            return
        task = asyncio.create_task(self._say_waits(approval_id, seq, message), name=f"waits-{seq}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _say_waits(self, approval_id: str, seq: int, message: InboundMessage) -> None:
        with suppress(StoreUnavailable):  # what they wrote is read all the same
            for approval in await self._store.approvals.find(approval_id):
                if approval.state == "open":
                    say = self.asked_back(approval, seq, message, message.text)
                    source = reminder(approval.approval_id, message.part_of or seq)
                    await self._outbox.tell(message.origin.place, source, say.text, say.choices)

    def asked_back(
        self, approval: Approval, seq: int, message: InboundMessage, said: str, *, reply: bool = False
    ) -> Say:
        """Make the answer to words that decide nothing.

        It shows in brief what the request is about, and later how it was decided; who may decide finds buttons below.
        said: the words. seq: of their message. reply: the message replies to the request, so no turn reads its words.
        """
        may = self.may_decide(approval, message)
        behind = not reply and not approval.by_itself and chat_of(approval.place) == chat_of(message.origin.place)
        text = words.waiting(approval, said, may=may, behind=behind)
        choices = words.choices(approval, seq) if may else ()
        return Say(text, choices, source=reminder(approval.approval_id, message.part_of or seq))

    def settled_words(self, approval: Approval, place: Place) -> str:
        """Return how a decided request reads in a place: whole where that fits into one message, else in brief."""
        return words.settled(approval, whole=self._fits(place)(words.settled(approval, whole=True)))

    def _shown(self, approval: Approval, place: Place, whole: bool) -> tuple[Planned, ...]:
        text = words.settled(approval, whole=whole)
        first = self._outbox.notice(sentence("told"), text, place.channel, ours=False)[:1]
        return tuple(replace(one, buttons=words.buttons_of(approval)) for one in first)

    def _blocks(
        self, source: Source, channel: str, texts: Sequence[str], buttons: tuple[Button, ...]
    ) -> tuple[Planned, ...]:
        """Make deliveries of texts, in order, with the buttons below the last. source: of all of them together."""
        bodies = [one for text in texts for one in self._outbox.notice(source, text, channel, ours=False)]
        *before, last = (replace(one, piece=n) for n, one in enumerate(bodies))
        return (*before, replace(last, buttons=buttons))

    def _fits(self, place: Place) -> Callable[[str], bool]:
        channel = self._outbox.channel(place.channel)
        return lambda text: channel is None or len(channel.render(text)) <= 1

    async def _new_id(self) -> str:
        """Return an id whose shown digits no other request has."""
        while True:
            ident = UUID(int=self._clock.random.getrandbits(128), version=4).hex
            if not await self._store.approvals.find(ident[: words.SHORT]):
                return ident

    def _deciders(self) -> tuple[str, ...]:
        """Return who may decide requests that are no questions, as "channel:id"."""
        owners = tuple(f"{channel}:{sender}" for channel, sender in self._people.owners)
        return self.settings.approvers or owners

    def _who(self, turn: Turn, ask: Ask) -> tuple[str, ...]:
        """Return who may decide an Ask of a turn, as "channel:id" or ANYONE."""
        if not ask.question:
            return self._deciders()
        if ask.who == "owner":
            return tuple(f"{channel}:{sender}" for channel, sender in self._people.owners)
        asked = (f"{one.origin.place.channel}:{one.origin.sender}" for one in turn.messages if one.origin.sender)
        if ask.who in ("asker", ""):
            return tuple(dict.fromkeys(asked))
        return (ANYONE if ask.who == "anyone" else ask.who,)

    async def _reads_along(self, turn: Turn, approvers: Sequence[str]) -> bool:
        """Return whether one of the approvers is known to read where a turn answers: in a group, has written there."""
        place = turn.place
        if place.kind is ChatKind.CONSOLE or (place.kind is not ChatKind.DIRECT and ANYONE in approvers):
            return True
        if any(f"{place.channel}:{one.origin.sender}" in approvers for one in turn.messages):
            return True
        if not _may_read(place, approvers):
            return False
        return any(f"{place.channel}:{one}" in approvers for one in await self._store.people.seen(place))

    async def _forward(self) -> Place | None:
        """Return where the configuration has requests shown instead of in their conversations, if it can be found."""
        if self.settings.forward_to is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE):
                return (await self._conversations.named(self.settings.forward_to)).place
        except (ToolError, ActionFailed, TimeoutError) as error:
            log.warning("approvals.forward_to cannot be used", reason=str(error) or "the platform does not answer")
            return None


def _may_read(place: Place, approvers: Sequence[str]) -> bool:
    """Return whether a place is one where several people read, on the channel of one of the approvers."""
    private = place.kind is ChatKind.DIRECT or place.kind in LOCAL
    return not private and any(who.startswith(f"{place.channel}:") for who in approvers)
