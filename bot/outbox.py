"""The outbox: makes the platform calls of the ledger, in order within a conversation, for all conversations at once.

The rate limit is passed before `sending` is stored, so that a crash makes an outcome unknown only during the call
itself. Deliveries wait in the store: memory holds one for each conversation that is served.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from agent.hooks import NO_HOOKS, Hooks
from bot import wording
from bot.clock import Clock, unless
from bot.hooks.sending import SENDING, SENT, forbids, sent
from bot.people.accounts import is_of
from bot.people.people import People, chat_of
from bot.persistence.deliveries import Fate, OwnerNotice, PlanIn
from bot.persistence.errors import StoreUnavailable
from bot.replies.cutting import notice
from bot.replies.manner_words import given_up
from bot.store.store import Store
from bot.store.writer import once_available
from bot.voice.speech import Speech
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
from channels.receiver import digest_of
from channels.sources import Source, missed, refused, sentence

log = structlog.get_logger()

# The seconds between tries if the store cannot be used or an adapter fails.
_PAUSE = 1.0
_HOUR = 3_600_000


@dataclass(eq=False, slots=True)
class _Conversation:
    """A conversation that is reserved or being served."""

    channel: Channel
    conv_id: int
    task: "asyncio.Task[None] | None" = None  # None while the conversation is reserved
    # A delivery that is stored as `sending` already and is sent first.
    begun: Delivery | None = None
    more: asyncio.Event = field(default_factory=asyncio.Event)  # something was planned meanwhile
    # A call is under way, and its task must not be cancelled before the outcome is stored.
    calling: bool = False
    waiting: bool = False  # for the channel, perhaps for long


class Outbox:
    """Serves conversations that have something to deliver.

    max_age: after how many milliseconds a delivery expires. people: gives the owners, and is told of moved chats.
    """

    def __init__(self, store: Store, clock: Clock, max_age: int, people: People, hooks: Hooks = NO_HOOKS) -> None:
        self._store, self._clock = store, clock
        self._max_age = max_age
        self._people, self._hooks = people, hooks
        self._channels: list[Channel] = []
        self._ready: dict[Channel, asyncio.Event] = {}
        self._early: dict[int, Place] = {}  # conversations that wait for the account of their channel
        self._conversations: dict[int, _Conversation] = {}
        # Set, by the key of a source, after each call about a message that `outcome` waits for.
        self._followed: dict[str, asyncio.Event] = {}
        self._draining = self._closing = False
        self.speech: Speech | None = None  # makes what spoken answers say, right before they are sent

    def add_channel(self, channel: Channel) -> None:
        """Begin to deliver for a channel."""
        self._channels.append(channel)
        self._ready[channel] = asyncio.Event()

    async def exchange(self, gone: Sequence[Channel], come: Sequence[Channel]) -> None:
        """Deliver by other channels; returns once no call of the former ones is under way."""
        self._channels = [one for one in self._channels if one not in gone]
        for channel in come:
            self.add_channel(channel)
        while left := [found for found in self._conversations.values() if found.channel in gone]:
            for found in left:
                if found.task and not (found.calling or found.begun):
                    found.task.cancel()
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0)), *(one.task for one in left if one.task)])
        for channel in gone:
            del self._ready[channel]
        await self.serve_open()

    @property
    def idle(self) -> bool:
        """Whether nothing is delivered at present, but for what its channel cannot send."""
        return all(found.waiting for found in self._conversations.values())

    def channel(self, name: str) -> Channel | None:
        """Return a channel by its name, or None; all accounts of a channel render sentences of the service alike."""
        return next((channel for channel in self._channels if channel.name == name), None)

    def serving(self, place: Place) -> Channel | None:
        """Return the channel of the account of a place; None if there is none that knows its account already."""
        return next((channel for channel in self._channels if is_of(channel, place)), None)

    def notice(
        self, source: Source, text: str, channel: str | Channel, buttons: tuple[Button, ...] = (), *, ours: bool = True
    ) -> tuple[Planned, ...]:
        """Make the blocks of a sentence of the service, to be planned in a conversation of a channel.

        channel: the channel or its name; text of the model for one account needs the channel of the account itself.
        ours: the text is only of the service, so that commands in it are written as people type them.
        """
        made = self.channel(channel) if isinstance(channel, str) else channel
        blocks = notice(source, text, made, self._clock.nonce, ours=ours)
        if not buttons or not blocks:
            return blocks
        if len(blocks) > 1:  # the buttons must be below a message of one piece, since it is edited later
            choose = self.notice(source, wording.CHOOSE, channel)[0]
            blocks += (replace(choose, piece=len(blocks)),)
        return (*blocks[:-1], replace(blocks[-1], buttons=buttons))

    async def outcome(self, source: Source, seconds: float | None = None) -> Fate:
        """Return what has become of a message as soon as that is known, or after `seconds`."""
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
        """Reserve an idle conversation and pass its rate limit while blocks are stored, so that the first is `sending`.

        The stored deliveries must be handed to `send` before the context ends.
        """
        begins = blocks and SENDING not in self._hooks.points and not (blocks[0].file and blocks[0].file.says)
        reserved = self._reserve(conv_id, place) if begins else None
        try:
            yield PlanIn(conv_id, reserved is not None)
        finally:
            if reserved is not None and reserved.task is None:
                self._left(reserved)

    def send(self, deliveries: Sequence[Delivery]) -> None:
        """Send stored deliveries, those of a conversation in their order."""
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
        """Try deliveries again that wait for an account."""
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
        """Send a notice to an owner where they wrote last, else in the terminal; once per source."""
        await self._store.deliveries.tell_owner(self.to_owner(source, text))
        await self.serve_open()

    async def tell(self, place: Place, source: Source, text: str, buttons: tuple[Button, ...] = ()) -> None:
        """Send a sentence to a conversation, once per source. Raises StoreUnavailable."""
        said = OwnerNotice((), place, lambda where: self.notice(source, text, where.channel, buttons))
        await self._store.deliveries.tell_owner(said)
        await self.serve_open()

    async def close(self, grace: float) -> None:
        """Deliver open deliveries for at most `grace` seconds; the rest stays in the store.

        Calls under way are awaited, but not channels that cannot send.
        """
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
        """Serve a conversation that may have open deliveries. It is cheap, so it may be called too often."""
        channel = self.serving(place)
        if channel is not None:
            self._serve_by(channel, conv_id)
        elif any(found.name == place.channel and not found.account for found in self._channels):
            self._early[conv_id] = place

    def _serve_by(self, channel: Channel, conv_id: int) -> None:
        if conv_id in self._conversations:
            self._conversations[conv_id].more.set()
        elif not self._closing and channel in self._channels:
            self._start(_Conversation(channel, conv_id))

    def _start(self, conversation: _Conversation) -> None:
        self._conversations[conversation.conv_id] = conversation
        conversation.task = asyncio.create_task(self._work(conversation), name=f"deliver-{conversation.conv_id}")
        conversation.task.add_done_callback(lambda _: self._left(conversation))

    def _left(self, conversation: _Conversation) -> None:
        del self._conversations[conversation.conv_id]
        if conversation.more.is_set():
            self._serve_by(conversation.channel, conversation.conv_id)

    async def _work(self, conversation: _Conversation) -> None:
        """Deliver until nothing is open in the conversation."""
        while await once_available(lambda: self._carry_out_next(conversation), self._pause):
            pass

    async def _pause(self, error: StoreUnavailable) -> None:
        """Wait before the store is used again. When the outbox closes, raise the error instead."""
        if self._closing:
            log.error("the outbox has ended before the store could be used", reason=str(error))
            raise error
        await self._clock.sleep(_PAUSE)

    async def _carry_out_next(self, conversation: _Conversation) -> bool:
        """Make the next call, or find out what became of it; return False if nothing is left to be done."""
        delivery, conversation.begun = conversation.begun or await self._next(conversation), None
        if delivery is None:
            return False
        ready = self._ready[conversation.channel]  # taken before the call, so that an opening during the call counts
        result: SendResult | None
        forbidden = SENDING in self._hooks.points and await forbids(self._hooks, delivery)
        says = None if forbidden or not delivery.file or not delivery.file.says else delivery.file
        if delivery.action not in conversation.channel.capabilities.actions:
            await self._settle(delivery, result := Refused(wording.lacks(delivery.action)))
        elif delivery.state is DeliveryState.UNKNOWN:
            result = await self._settle_unknown(conversation, delivery)
        elif self.speech and says and (why := await self.speech.make(says)):
            result = Refused(why)
            await self._settle(delivery, result, why)
        else:
            result = await self._deliver(conversation, delivery, forbidden=forbidden)
        if (followed := self._followed.get(delivery.source.key)) is not None:
            followed.set()
        if not isinstance(result, Sent | NotSent | Unknown):
            await self.serve_open()  # an owner is told, or another conversation is to be served
        if isinstance(result, NotSent) and result.retry_after is None:
            if self._draining:
                return False
            conversation.waiting = True
            await ready.wait()
            conversation.waiting = False
        return True

    async def _next(self, conversation: _Conversation) -> Delivery | None:
        """Return what is next: at once if its outcome is unknown, else when time and rate limit allow; None: none."""
        waited = 0
        while not self._closing and conversation.channel in self._channels:
            conversation.more.clear()
            following = await self._store.deliveries.next(conversation.conv_id)
            if following is None:
                if conversation.more.is_set():
                    continue
                return None
            if following.state is DeliveryState.UNKNOWN:
                return following
            if following.state is DeliveryState.SENDING:  # begun before the chat moved, and not settled yet
                await self._clock.sleep(_PAUSE)
                continue
            wait = 0.0
            reacts = following.action is Action.REACT
            if reacts or following.delivery_id != waited:  # wait once, because the clock may be set back meanwhile
                waited = following.delivery_id
                wait = min(following.not_before - self._clock.now(), following.longest) / 1000
            if wait <= 0 and not following.unpaced:
                wait = conversation.channel.pass_limit(following.place)
            if wait <= 0:
                return following
            await (unless(conversation.more, self._clock.sleep(wait)) if reacts else self._clock.sleep(wait))
        return None

    async def _deliver(self, conversation: _Conversation, delivery: Delivery, *, forbidden: bool) -> SendResult | None:
        """Store a delivery as `sending`, make the call, store its result, uncancelled; None: it must not be sent."""
        conversation.calling = True
        try:
            begun: Delivery | None = delivery
            if delivery.state is not DeliveryState.SENDING:
                told = partial(self._missed, delivery), partial(self._unsent, delivery)
                what = delivery.delivery_id, conversation.conv_id, self._max_age
                begun = await self._store.deliveries.begin(*what, *told, forbidden=forbidden)
            if begun is None:
                return None
            try:
                result = await conversation.channel.send(begun)
            except Exception as error:  # a fault of the adapter: the outcome is unknown
                log.exception("channel failed", channel=conversation.channel.name, source=delivery.source.key)
                result = Unknown(str(error) or type(error).__name__)
            await self._settle(begun, result)
            return result
        finally:
            conversation.calling = False

    async def _settle_unknown(self, conversation: _Conversation, delivery: Delivery) -> SendResult | None:
        """Let the channel find out what became of a send; None if that failed."""
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

    async def _settle(self, delivery: Delivery, result: SendResult, said: str = "") -> None:
        """Store a result; try until the store can write or the outbox closes. said: what its conversation is told."""
        if isinstance(result, Refused | Unknown):
            log.warning("delivery", source=delivery.source.key, result=type(result).__name__, reason=result.reason)
        told = given_up(delivery, result.lost, self.notice) if isinstance(result, Sent) and result.lost else None
        if isinstance(result, Refused) and delivery.action is Action.EDIT and delivery.unless:  # of an undo
            said = wording.not_taken_off(result.reason)
        if said:
            source = delivery.source.also("told")
            told = OwnerNotice((), delivery.place, lambda where: self.notice(source, said, where.channel))
        elif isinstance(result, Refused) and delivery.action in (Action.SEND, Action.FILE):
            told = self.to_owner(self._refusal(delivery, result), wording.refused(delivery.place, result.reason))
        missed = partial(self._missed, delivery)
        await once_available(lambda: self._store.deliveries.settle(delivery, result, told, missed), self._pause)
        if isinstance(result, Sent) and SENT in self._hooks.points:
            sent(self._hooks, delivery, result)
        if isinstance(result, Moved):
            channel, account, old = chat_of(delivery.place)
            self._people.follow(ChatMoved(channel=channel, account=account, old_chat=old, new_chat=result.new_chat))

    def _missed(self, delivery: Delivery, since: int) -> Sequence[Planned]:
        """Make the notice to a conversation about messages that did not arrive since a time in milliseconds."""
        text = wording.missed(self._clock.stamp(since))
        return self.notice(missed(delivery.delivery_id), text, delivery.place.channel)

    def _unsent(self, delivery: Delivery) -> OwnerNotice:
        """Make the notice to an owner, once per conversation, that a rule keeps what is said from being sent there."""
        return self.to_owner(sentence("unsent", delivery.conv_id), wording.unsent(delivery.place))

    def _refusal(self, delivery: Delivery, result: Refused) -> Source:
        """Return the source of a notice about a refused message: one per hour, platform, and reason but its numbers."""
        name = re.sub(r"\d+", "", f"{delivery.place.channel}: {result.reason}")
        return refused(digest_of(name), self._clock.now() // _HOUR)

    def to_owner(
        self, source: Source, text: str, buttons: tuple[Button, ...] = (), *, both: bool = False
    ) -> OwnerNotice:
        """Make a notice to an owner, to be stored with its cause. both: it is sent to the terminal in any case."""
        reachable = [owner for owner in self._people.owners if self.channel(owner[0])]
        return OwnerNotice(reachable, CONSOLE, lambda place: self.notice(source, text, place.channel, buttons), both)
