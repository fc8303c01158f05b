"""The outbox: makes the platform calls of the ledger, in order within a conversation, conversations side by side.

The rate limit is passed before `sending` is stored, so that the time in which a crash makes an outcome unknown holds
the call alone. Deliveries wait in the store, not here: memory holds one per conversation that is being served.
"""

import asyncio
from collections.abc import Sequence

import structlog

from bot.clock import Clock
from bot.store.errors import StoreUnavailable
from bot.store.store import Store
from bot.store.values import Delivery
from channels.base import Channel, UnknownOutcome
from channels.message import ChatKind, Place
from channels.outgoing import NotSent, Outgoing, Refused, SendResult, Sent, Unknown

log = structlog.get_logger()

_PAUSE = 1.0
"""Seconds between tries when the store cannot write."""


class Outbox:
    """Serves conversations that have something to deliver. max_age: milliseconds until a delivery expires."""

    def __init__(self, store: Store, clock: Clock, max_age: int) -> None:
        self._store = store
        self._clock = clock
        self._max_age = max_age
        self._channels: dict[str, Channel] = {}
        self._ready: dict[str, asyncio.Event] = {}
        self._workers: dict[int, asyncio.Task[None]] = {}
        self._reserved: set[int] = set()
        self._more: set[int] = set()
        self._calling: set[int] = set()
        self._held: set[int] = set()
        self._draining = False
        self._closing = False

    def add_channel(self, channel: Channel) -> None:
        """Deliver for this channel from now on."""
        self._channels[channel.name] = channel
        self._ready[channel.name] = asyncio.Event()

    def channel(self, name: str) -> Channel | None:
        """The channel of that name, if it is enabled."""
        return self._channels.get(name)

    async def start(self) -> None:
        """Settle what a crash left, then serve what is open."""
        await self._store.deliveries.recover(self._rule)
        await self.serve_open()

    async def serve_open(self) -> None:
        """Serve every conversation with something to deliver, as the store knows them."""
        for conv_id, place in await self._store.deliveries.open_conversations():
            self._serve(conv_id, place)

    def reserve(self, conv_id: int, place: Place) -> bool:
        """Take an idle conversation and its rate limit, so that a block may be stored as `sending` at once.

        After True, `planned` must follow, whether the block was stored or not.
        """
        channel = self._channels.get(place.channel)
        if channel is None or conv_id in self._workers or conv_id in self._reserved or self._closing:
            return False
        if channel.pass_limit(place) > 0:
            return False
        self._reserved.add(conv_id)
        return True

    def planned(self, conv_id: int, place: Place, deliveries: Sequence[Delivery], *, reserved: bool) -> None:
        """Blocks were stored (or not: no deliveries): send them. reserved: what `reserve` answered before."""
        if reserved:
            self._reserved.discard(conv_id)
        if place.kind is ChatKind.API:
            return
        if deliveries:
            self._serve(deliveries[0].conv_id, place, deliveries[0] if deliveries[0].begun else None)
        elif reserved and conv_id in self._more:
            self._serve(conv_id, place)

    def can_send(self, channel: str) -> None:
        """Deliveries that wait for the channel may be tried again."""
        if channel in self._ready:
            self._ready[channel].set()
            self._ready[channel] = asyncio.Event()

    async def close(self, grace: float) -> None:
        """Deliver what is open for at most grace seconds; the rest stays in the store. Calls under way are awaited,
        a channel that cannot send is not."""
        self._draining = True
        busy = [task for conv_id, task in self._workers.items() if conv_id not in self._held]
        if busy:
            await asyncio.wait(busy, timeout=grace)
        self._closing = True
        for conv_id, task in self._workers.items():
            if conv_id not in self._calling:
                task.cancel()
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    def _rule(self, channel: str) -> UnknownOutcome:
        found = self._channels.get(channel)
        return found.capabilities.unknown_outcome if found else UnknownOutcome.RESEND_ONCE

    def _serve(self, conv_id: int, place: Place, begun: Delivery | None = None) -> None:
        channel = self._channels.get(place.channel)
        if channel is None or (self._closing and begun is None):
            return
        if conv_id in self._workers or conv_id in self._reserved:
            self._more.add(conv_id)
            return
        task = asyncio.create_task(self._work(channel, conv_id, place, begun), name=f"deliver-{conv_id}")
        self._workers[conv_id] = task
        task.add_done_callback(lambda _: self._left(conv_id, place))

    def _left(self, conv_id: int, place: Place) -> None:
        del self._workers[conv_id]
        if conv_id in self._more and not self._closing:
            self._more.discard(conv_id)
            self._serve(conv_id, place)

    async def _work(self, channel: Channel, conv_id: int, place: Place, begun: Delivery | None) -> None:
        """Deliver until nothing is open."""
        while True:
            try:
                delivery, begun = begun or await self._next(channel, conv_id, place), None
                if delivery is None:
                    return
                ready = self._ready[channel.name]  # before the call: what opens during it must not be missed
                result = await self._deliver(channel, conv_id, place, delivery)
                if result is None or isinstance(result, Sent | Refused):
                    continue
                now_at, place = await self._store.deliveries.place(conv_id)
                if now_at != conv_id:
                    self._serve(now_at, place)
                    return
                if isinstance(result, NotSent) and result.retry_after is None:
                    if self._draining:
                        return
                    self._held.add(conv_id)
                    await ready.wait()
                    self._held.discard(conv_id)
            except StoreUnavailable:
                await self._clock.sleep(_PAUSE)

    async def _next(self, channel: Channel, conv_id: int, place: Place) -> Delivery | None:
        """What is to be delivered next, once its time and the rate limit allow it; None when nothing is open."""
        waited = 0
        while not self._closing:
            self._more.discard(conv_id)
            following = await self._store.deliveries.next(conv_id)
            if following is None:
                if conv_id in self._more:
                    continue
                return None
            wait = 0.0
            if following.delivery_id != waited:  # once: the clock may have been set back meanwhile
                waited = following.delivery_id
                wait = min(following.not_before - self._clock.now(), following.longest) / 1000
            if wait <= 0:
                wait = channel.pass_limit(place)
            if wait <= 0:
                return following
            await self._clock.sleep(wait)
        return None

    async def _deliver(self, channel: Channel, conv_id: int, place: Place, delivery: Delivery) -> SendResult | None:
        """Store it as `sending` unless it is, make the call, store what became of it; not to be interrupted between.

        None when it was not to be sent any more.
        """
        self._calling.add(conv_id)
        try:
            begin = self._store.deliveries.begin
            begun = delivery if delivery.begun else await begin(delivery.delivery_id, conv_id, self._max_age)
            if begun is None:
                return None
            result = await self._call(channel, place, begun)
            await self._settle(channel, place, begun, result)
            return result
        finally:
            self._calling.discard(conv_id)

    async def _call(self, channel: Channel, place: Place, delivery: Delivery) -> SendResult:
        outgoing = Outgoing(
            delivery_id=delivery.delivery_id,
            place=place,
            action=delivery.action,
            body=delivery.body,
            nonce=delivery.nonce,
            source=delivery.source,
            said=delivery.said,
            planned_at=delivery.planned_at,
        )
        try:
            result = await channel.send(outgoing)
        except Exception as error:  # a fault of the adapter: nobody knows how far it came
            log.exception("channel failed", channel=channel.name, source=delivery.source)
            result = Unknown(str(error))
        if isinstance(result, Refused | Unknown):
            log.warning("delivery", source=delivery.source, result=type(result).__name__, reason=result.reason)
        return result

    async def _settle(self, channel: Channel, place: Place, delivery: Delivery, result: SendResult) -> None:
        """What became of a call is known: keep it until it can be written, or until the service ends."""
        while True:
            try:
                return await self._store.deliveries.settle(
                    delivery, place, result, channel.capabilities.unknown_outcome
                )
            except StoreUnavailable:
                if self._closing:
                    log.error("the end of a call could not be stored", source=delivery.source)
                    return
                await self._clock.sleep(_PAUSE)
