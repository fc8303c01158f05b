"""The outbox: makes the platform calls of the ledger, in order within a conversation, conversations side by side.

The rate limit is passed before `sending` is stored, so that the time in which a crash makes an outcome unknown holds
the call alone. Deliveries wait in the store, not here: memory holds one per conversation that is being served.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot import wording
from bot.clock import Clock
from bot.people.accounts import is_of
from bot.people.people import People, chat_of
from bot.persistence.deliveries import Fate, OwnerNotice, PlanIn
from bot.persistence.errors import StoreUnavailable, once_available
from bot.replies.cutting import notice
from bot.store.store import Store
from channels.base import Channel
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatMoved, Place
from channels.outgoing import (
    Action,
    Button,
    Delivery,
    DeliveryState,
    Moved,
    NotSent,
    Planned,
    Refused,
    SendResult,
    Sent,
    Unknown,
)
from channels.sources import Source, missed, refused

log = structlog.get_logger()

# Seconds between tries when the store cannot write, or a channel fails by a fault of its own.
_PAUSE = 1.0
_HOUR = 3_600_000
# What differs between refusals of the same kind.
_NUMBERS = re.compile(r"\d+")


@dataclass(eq=False, slots=True)
class _Conversation:
    """One that is reserved or being served; task: None while it is reserved.

    begun: stored as `sending` already, to be sent first. more: something was planned meanwhile. calling: a call is
    under way, and nothing may come between it and the store of its outcome. waiting: for its channel, for as long as
    that takes.
    """

    channel: Channel
    conv_id: int
    task: "asyncio.Task[None] | None" = None
    begun: Delivery | None = None
    more: bool = False
    calling: bool = False
    waiting: bool = False


class Outbox:
    """Serves conversations that have something to deliver.

    max_age: milliseconds until a delivery expires. people: whose owners are told what was refused, and who learn of
    chats that moved.
    """

    def __init__(self, store: Store, clock: Clock, max_age: int, people: People) -> None:
        self._store = store
        self._clock = clock
        self._max_age = max_age
        self._people = people
        self._channels: list[Channel] = []
        self._ready: dict[Channel, asyncio.Event] = {}
        # Conversations that wait until the account they belong to is known.
        self._early: dict[int, Place] = {}
        self._conversations: dict[int, _Conversation] = {}
        # Messages that somebody waits for: set each time that something may have become of a piece of one.
        self._followed: dict[str, asyncio.Event] = {}
        self._draining = False
        self._closing = False

    def add_channel(self, channel: Channel) -> None:
        """Deliver for this channel from now on."""
        self._channels.append(channel)
        self._ready[channel] = asyncio.Event()

    def channel(self, name: str) -> Channel | None:
        """A channel of that name, if one is enabled; all its accounts render sentences of the service alike."""
        return next((channel for channel in self._channels if channel.name == name), None)

    def serving(self, place: Place) -> Channel | None:
        """The channel that delivers there: that of the account whose conversation it is, once it knows its id."""
        return next((channel for channel in self._channels if is_of(channel, place)), None)

    def notice(
        self, source: Source, text: str, channel: str | Channel, buttons: tuple[Button, ...] = (), *, ours: bool = True
    ) -> tuple[Planned, ...]:
        """A sentence of the service itself, to be planned in a conversation of a channel, or of the one of that name;
        words of the model for one account are rendered by its own.

        ours: all words of it are, so that the commands it names stand there as people type them.
        """
        made = self.channel(channel) if isinstance(channel, str) else channel
        blocks = notice(source, text, made, self._clock.nonce, ours=ours)
        if not buttons or not blocks:
            return blocks
        if len(blocks) > 1:  # the message that is edited later is one
            choose = self.notice(source, wording.CHOOSE, channel)[0]
            blocks += (replace(choose, piece=len(blocks)),)
        return (*blocks[:-1], replace(blocks[-1], buttons=buttons))

    async def outcome(self, source: Source, seconds: float | None = None) -> Fate:
        """What has become of a message, by its name: once that is known, or after so many seconds."""
        self._followed[source.key] = changed = asyncio.Event()
        timer = asyncio.Future[None]() if seconds is None else asyncio.ensure_future(self._clock.sleep(seconds))
        timer.add_done_callback(lambda _: changed.set())
        try:
            while (fate := await self._store.turns.delivered(source.key)).open and not timer.done():
                await changed.wait()
                changed.clear()
            return fate
        finally:
            timer.cancel()
            del self._followed[source.key]

    async def start(self) -> None:
        """Note what a crash left in the middle of a call, then serve what is open."""
        await self._store.deliveries.recover()
        await self.serve_open()

    async def serve_open(self) -> None:
        """Serve every conversation with something to deliver, as the store knows them."""
        for conv_id, place in await self._store.deliveries.open_conversations():
            self.serve(conv_id, place)

    @contextlib.contextmanager
    def planning(self, conv_id: int, place: Place, blocks: Sequence[Planned]) -> Iterator[PlanIn]:
        """While blocks are being stored: an idle conversation and its rate limit are taken, so that the first may be
        stored as `sending` at once. What was stored is to be handed to `send` before this ends."""
        reserved = self._reserve(conv_id, place) if blocks else None
        try:
            yield PlanIn(conv_id, reserved is not None)
        finally:
            if reserved is not None and reserved.task is None:
                self._left(reserved)

    def send(self, deliveries: Sequence[Delivery]) -> None:
        """Deliveries were stored: send them, those of a conversation in their order."""
        for first in {one.conv_id: one for one in reversed(deliveries)}.values():
            reserved = self._conversations.get(first.conv_id)
            if first.state is DeliveryState.SENDING and reserved is not None and reserved.task is None:
                reserved.begun = first
                self._start(reserved)
            elif first.state in (DeliveryState.PLANNED, DeliveryState.SENDING):
                self.serve(first.conv_id, first.place)

    def _reserve(self, conv_id: int, place: Place) -> _Conversation | None:
        channel = self.serving(place)
        if channel is None or conv_id in self._conversations or self._closing or channel.pass_limit(place) > 0:
            return None
        reserved = self._conversations[conv_id] = _Conversation(channel, conv_id)
        return reserved

    def can_send(self, channel: str, account: str) -> None:
        """Deliveries that wait for the account may be tried again."""
        found = [one for one in self._channels if (one.name, one.account) == (channel, account)]
        if len(found) > 1:
            log.error("two accounts of the configuration are the same bot", channel=channel, account=account)
        for one in found:
            self._ready[one].set()
            self._ready[one] = asyncio.Event()
        early, self._early = self._early, {}
        for conv_id, place in early.items():
            self.serve(conv_id, place)

    async def tell_owner(self, source: Source, text: str) -> None:
        """Tell an owner something, once per source: where they wrote last, else in the terminal."""
        await self._store.deliveries.tell_owner(self.to_owner(source, text))
        await self.serve_open()

    async def tell(self, place: Place, source: Source, text: str, buttons: tuple[Button, ...] = ()) -> None:
        """Say something in a conversation, once per source. Raises StoreUnavailable."""
        said = OwnerNotice((), place, lambda where: self.notice(source, text, where.channel, buttons))
        await self._store.deliveries.tell_owner(said)
        await self.serve_open()

    async def close(self, grace: float) -> None:
        """Deliver what is open for at most grace seconds; the rest stays in the store. Calls under way are awaited,
        a channel that cannot send is not."""
        self._draining = True
        busy = [found.task for found in self._conversations.values() if found.task and not found.waiting]
        if busy:
            await asyncio.wait(busy, timeout=grace)
        self._closing = True
        left = [found for found in self._conversations.values() if found.task]  # some may have begun meanwhile
        for found in left:
            if found.task and not (found.calling or found.begun):
                found.task.cancel()
        await asyncio.gather(*(found.task for found in left if found.task), return_exceptions=True)

    def serve(self, conv_id: int, place: Place) -> None:
        """Something may be open in a conversation. Cheap, and right to call too often."""
        channel = self.serving(place)
        if channel is not None:
            self._serve_by(channel, conv_id)
        elif any(found.name == place.channel and not found.account for found in self._channels):
            self._early[conv_id] = place

    def _serve_by(self, channel: Channel, conv_id: int) -> None:
        if conv_id in self._conversations:
            self._conversations[conv_id].more = True
        elif not self._closing:
            self._start(_Conversation(channel, conv_id))

    def _start(self, conversation: _Conversation) -> None:
        self._conversations[conversation.conv_id] = conversation
        conversation.task = asyncio.create_task(self._work(conversation), name=f"deliver-{conversation.conv_id}")
        conversation.task.add_done_callback(lambda _: self._left(conversation))

    def _left(self, conversation: _Conversation) -> None:
        del self._conversations[conversation.conv_id]
        if conversation.more:
            self._serve_by(conversation.channel, conversation.conv_id)

    async def _work(self, conversation: _Conversation) -> None:
        """Deliver until nothing is open."""
        while await once_available(lambda: self._carry_out_next(conversation), self._pause):
            pass

    async def _pause(self, error: StoreUnavailable) -> None:
        """Before the store is asked again. At the end it is not: the next start finds there what is open."""
        if self._closing:
            log.error("the outbox has ended before the store could be used", reason=str(error))
            raise error
        await self._clock.sleep(_PAUSE)

    async def _carry_out_next(self, conversation: _Conversation) -> bool:
        """Make the next call, or look what became of it. False when there is nothing to be done here any more."""
        delivery, conversation.begun = conversation.begun or await self._next(conversation), None
        if delivery is None:
            return False
        ready = self._ready[conversation.channel]  # before the call: what opens during it counts
        result: SendResult | None
        if delivery.action not in conversation.channel.capabilities.actions:
            result = Refused(wording.lacks(delivery.action))
            await self._settle(delivery, result)
        elif delivery.state is DeliveryState.UNKNOWN:
            result = await self._settle_unknown(conversation, delivery)
        else:
            result = await self._deliver(conversation, delivery)
        if (followed := self._followed.get(delivery.source.key)) is not None:
            followed.set()
        if not isinstance(result, Sent | NotSent | Unknown):
            await self.serve_open()  # the owner is told, or it is to be sent elsewhere and is served there
        if isinstance(result, NotSent) and result.retry_after is None:
            if self._draining:
                return False
            conversation.waiting = True
            await ready.wait()
            conversation.waiting = False
        return True

    async def _next(self, conversation: _Conversation) -> Delivery | None:
        """What is to be looked at next; what is to be sent, once its time and the rate limit allow it.

        None when nothing is open.
        """
        waited = 0
        while not self._closing:
            conversation.more = False
            following = await self._store.deliveries.next(conversation.conv_id)
            if following is None:
                if conversation.more:
                    continue
                return None
            if following.state is DeliveryState.UNKNOWN:
                return following
            if following.state is DeliveryState.SENDING:  # begun where the chat was before, and not settled yet
                await self._clock.sleep(_PAUSE)
                continue
            wait = 0.0
            if following.delivery_id != waited:  # once: the clock may have been set back meanwhile
                waited = following.delivery_id
                wait = min(following.not_before - self._clock.now(), following.longest) / 1000
            if wait <= 0:
                wait = conversation.channel.pass_limit(following.place)
            if wait <= 0:
                return following
            await self._clock.sleep(wait)
        return None

    async def _deliver(self, conversation: _Conversation, delivery: Delivery) -> SendResult | None:
        """Store it as `sending` unless it is, make the call, store what became of it; not to be interrupted between.

        None when it was not to be sent any more.
        """
        conversation.calling = True
        try:
            begun: Delivery | None = delivery
            if delivery.state is not DeliveryState.SENDING:
                begin = self._store.deliveries.begin
                begun = await begin(
                    delivery.delivery_id, conversation.conv_id, self._max_age, partial(self._missed, delivery)
                )
            if begun is None:
                return None
            try:
                result = await conversation.channel.send(begun)
            except Exception as error:  # a fault of the adapter: nobody knows how far it came
                log.exception("channel failed", channel=conversation.channel.name, source=delivery.source.key)
                result = Unknown(str(error) or type(error).__name__)
            await self._settle(begun, result)
            return result
        finally:
            conversation.calling = False

    async def _settle_unknown(self, conversation: _Conversation, delivery: Delivery) -> SendResult | None:
        """Let the channel find out what became of a send; None when it could not even look."""
        conversation.waiting = True
        try:
            result = await conversation.channel.settle(delivery)
        except Exception:
            log.exception("channel failed", channel=conversation.channel.name, source=delivery.source.key)
            await self._clock.sleep(_PAUSE)
            return None
        finally:
            conversation.waiting = False
        log.info("delivery", source=delivery.source.key, settled=type(result).__name__)
        await self._settle(delivery, result)
        return result

    async def _settle(self, delivery: Delivery, result: SendResult) -> None:
        """What became of a call is known: keep it until it can be written, or until the service ends."""
        if isinstance(result, Refused | Unknown):
            log.warning("delivery", source=delivery.source.key, result=type(result).__name__, reason=result.reason)
        told = None
        if isinstance(result, Refused) and delivery.action in (Action.SEND, Action.FILE):
            told = self.to_owner(self._refusal(delivery, result), wording.refused(delivery.place, result.reason))
        missed = partial(self._missed, delivery)
        await once_available(lambda: self._store.deliveries.settle(delivery, result, told, missed), self._pause)
        if isinstance(result, Moved):
            channel, account, old = chat_of(delivery.place)
            self._people.follow(ChatMoved(channel=channel, account=account, old_chat=old, new_chat=result.new_chat))

    def _missed(self, delivery: Delivery, since: int) -> Sequence[Planned]:
        """What a conversation is told of messages that did not arrive there, or may not have."""
        text = wording.missed(self._clock.stamp(since))
        return self.notice(missed(delivery.delivery_id), text, delivery.place.channel)

    def _refusal(self, delivery: Delivery, result: Refused) -> Source:
        """The source of what an owner is told of a refused message: once an hour for each reason of a platform."""
        kind = hashlib.sha256(_NUMBERS.sub("", f"{delivery.place.channel}: {result.reason}").encode()).hexdigest()[:16]
        return refused(kind, self._clock.now() // _HOUR)

    def to_owner(self, source: Source, text: str, *, both: bool = False) -> OwnerNotice:
        """Something for an owner to know, to be stored with what it is about. both: in the terminal in any case."""
        reachable = [owner for owner in self._people.owners if self.channel(owner[0])]
        return OwnerNotice(reachable, CONSOLE, lambda place: self.notice(source, text, place.channel), both)
