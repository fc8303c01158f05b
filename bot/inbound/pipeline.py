"""The way of a message from an adapter into the store, on one screen: routing, accept, lane.

Nothing is awaited before the store call, so the order in which adapters call is the order of acceptance. The platform
is told that a message was received only after `accept` has returned.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

import structlog

from agent.message import cleaned
from bot.clock import Clock
from bot.commands.registry import Registry
from bot.config.model import CatchUpSettings
from bot.inbound.catch_up import CatchUp
from bot.inbound.commands import CommandRunner
from bot.inbound.routing import Routing
from bot.outbox import Outbox
from bot.people.people import People
from bot.persistence.causes import Cause
from bot.persistence.errors import StoreUnavailable
from bot.persistence.inbox import Accepted, AcceptedMessage, Duplicate, Fresh, Heard
from bot.runs.lanes import Lanes
from bot.store.store import Store
from channels.base import Mark, NotAccepted
from channels.message import (
    BACKGROUND,
    CARRIED_OUT,
    CLAIMED,
    Attachment,
    ChatMoved,
    InboundKind,
    InboundMessage,
    Incoming,
    Origin,
    UnreadEvent,
)

log = structlog.get_logger()

_STOPPING = "the service is stopping"
# How many people and chats that are not let in are named in the log, at most.
NAMED = 4096


@dataclass(eq=False)
class Pipeline:
    """The sink of all channels. waits: says to who has written what the turn before it waits for (approval, seq).
    asks: tells an owner of strangers who have got a code. clean: returns a text without secrets. settled: looks at the
    requests of turns that have ended."""

    store: Store
    routing: Routing
    people: People
    registry: Registry
    lanes: Lanes
    runner: CommandRunner
    outbox: Outbox
    clock: Clock
    settings: CatchUpSettings
    waits: Callable[[str, int, InboundMessage], None]
    asks: Callable[[], Awaitable[None]]
    clean: Callable[[str], str]
    settled: Callable[[], None]

    def __post_init__(self) -> None:
        self._closed = False
        self._commands_coming = 0
        self._named: set[tuple[str, ...]] = set()
        self._catch_up = CatchUp(
            self.store,
            self.outbox,
            self.lanes,
            self.clock,
            self.settings,
            self.routing,
            self._decide,
            self._store_and_tell,
        )
        # The rest of a sink is answered by others.
        self.mark, self.missed = self.store.inbox.mark, self._catch_up.missed
        self.commands, self.can_send = self.registry.infos, self.outbox.can_send

    async def close(self) -> None:
        """Accept nothing more: what comes now is refused, so that its sender offers it again."""
        self._closed = True
        await self._catch_up.close()

    async def accept(self, batch: Sequence[Incoming], mark: Mark | None) -> None:
        if self._closed:
            raise NotAccepted(_STOPPING)
        items = [self._decide(item) for item in batch]
        try:
            await self._catch_up.accept(batch, items, mark)
        except StoreUnavailable as error:
            raise NotAccepted(str(error)) from None
        with contextlib.suppress(StoreUnavailable):  # it is stored; the sweep finds it
            if any(isinstance(item, ChatMoved) for item in items):
                await self.outbox.serve_open()
            if any(isinstance(item, AcceptedMessage) and item.code for item in items):
                await self.asks()

    async def accept_one(self, item: AcceptedMessage) -> Fresh | Duplicate:
        """Accept a message whose session is known (HTTP, console). Raises StoreUnavailable."""
        if self._closed:
            raise StoreUnavailable(_STOPPING)
        item = cleaned(item)
        if (message := unsecret(item.message, self.clean)) is not item.message:
            item = replace(item, message=message)
        if self.registry.find(item.message.text, self.routing.askers.of(item.message)) is not None:
            item = replace(item, message=replace(item.message, kind=InboundKind.COMMAND))
        (answer,) = await self._store_and_tell([item], None)
        return answer

    async def _store_and_tell(self, items: Sequence[Accepted], mark: Mark | None) -> Sequence[Fresh | Duplicate]:
        """Store a batch, then begin what it asks for. Raises StoreUnavailable."""
        commands = sum(isinstance(item, AcceptedMessage) and item.message.kind in CARRIED_OUT for item in items)
        self._commands_coming += commands
        woken = set() if self._commands_coming or not self.routing.joins else self._wake_early(items)
        try:
            answers = await self.store.inbox.accept(items, mark)
        finally:
            self._commands_coming -= commands
        for item, answer in zip(items, answers, strict=True):
            if isinstance(answer, Fresh) and answer.stopped:  # it interrupts
                self.lanes.stop(answer.stopped)
                self.settled()
            self._tell(item, answer, woken)
            if isinstance(answer, Fresh) and answer.wake:  # behind a command, which comes first
                self.lanes.wake(answer.wake)
        return answers

    def _wake_early(self, items: Sequence[Accepted]) -> set[str]:
        """Wake the sessions in which people write; returns which. Not while commands come: those act first."""
        written = [
            (item.session_key, item.message)
            for item in items
            if isinstance(item, AcceptedMessage)
            and item.message.kind in CLAIMED - BACKGROUND
            and item.state == "waiting"
            and not (item.delay or item.follows or item.behind)
        ]
        return {key for key, message in written if key and self.lanes.wake_early(key, message)}

    def _decide(self, item: Incoming) -> Accepted:
        item = cleaned(item)
        if isinstance(item, UnreadEvent):
            return replace(item, raw=self.clean(item.raw), error=self.clean(item.error))
        if isinstance(item, ChatMoved):
            self.people.follow(item)  # before what is said there, also in the same batch
            return item
        return self._catch_up.aged(self.routing.decide(unsecret(item, self.clean)))

    def _tell(self, item: Accepted, answer: Fresh | Duplicate, woken: Collection[str]) -> None:
        if isinstance(item, Heard):
            return
        if isinstance(item, UnreadEvent):
            if isinstance(answer, Fresh):
                log.warning("event not readable; kept and passed over", channel=item.channel, error=item.error)
            return
        if isinstance(item, ChatMoved):
            log.info("chat moved", channel=item.channel, old=item.old_chat, new=item.new_chat)
            return
        message = item.message
        if isinstance(answer, Fresh):
            self.outbox.send(answer.said)
            if item.anew is not None and answer.became is item.anew.message:
                item = item.anew
            message = answer.became or message
            if answer.waits_for is not None:
                self.waits(answer.waits_for, answer.seq, message)
        if item.state == "dropped" or (isinstance(answer, Fresh) and answer.state != "waiting"):
            self._name(item.message.origin, item.reason if isinstance(answer, Duplicate) else answer.reason)
            return
        if isinstance(answer, Duplicate) or item.session_key is None or (item.behind and not answer.became):
            return
        if item.delay and message.kind in CLAIMED:
            background = message.kind in BACKGROUND
            self.lanes.wake_later(item.session_key, background, answer.ready_at, answer.wait, message)
        elif message.kind in BACKGROUND | CARRIED_OUT or item.session_key not in woken:
            self.begin(answer.seq, item.session_key, message)

    def begin(self, seq: int, session_key: str, message: InboundMessage) -> None:
        """See to a message that was accepted."""
        if message.kind in CARRIED_OUT:
            self.runner.begin(seq, session_key, message)
        elif message.kind in CLAIMED:
            self.lanes.wake(session_key, message.kind in BACKGROUND, message)

    def _name(self, origin: Origin, reason: Cause | None) -> None:
        """Once each: whoever mistook an id in the configuration finds the right one in the log."""
        channel, chat = origin.place.channel, origin.place.chat
        told: dict[Cause | None, tuple[str, dict[str, str]]] = {
            Cause.ACCESS: ("a stranger was not let in", {"id": origin.sender}),
            Cause.PAIRING: ("a stranger was given a code; `hark pairing` lets them in", {"id": origin.sender}),
            Cause.GROUP: ("a group was not let in", {"chat": chat} | ({"space": origin.space} if origin.space else {})),
            Cause.BOTS: (
                "bots talked to each other, so no more of them is answered until a person writes",
                {"chat": chat},
            ),
        }
        event, fields = told.get(reason, ("", {}))
        name = (event, channel, *fields.values())
        if event and all(fields.values()) and name not in self._named and len(self._named) < NAMED:
            self._named.add(name)
            log.warning(event, channel=channel, **fields)


def unsecret(message: InboundMessage, clean: Callable[[str], str]) -> InboundMessage:
    """Return a message without secrets in its words, in those that it quotes, and in the names of its files."""
    texts = [message.text, message.extra_context, *(one.name for one in message.attachments)]
    quoted = [one for one in (message.replied, message.forwarded) if one]
    for one in quoted:
        texts += [one.text, *(file.name for file in one.attachments)]
    if clean(whole := "\n".join(texts)) == whole:
        return message

    def named(files: Sequence[Attachment]) -> tuple[Attachment, ...]:
        return tuple(replace(one, name=clean(one.name)) for one in files)

    replied, forwarded = (
        replace(one, text=clean(one.text), attachments=named(one.attachments)) if one else None
        for one in (message.replied, message.forwarded)
    )
    files = named(message.attachments)
    text, context = clean(message.text), clean(message.extra_context)
    return replace(message, text=text, replied=replied, forwarded=forwarded, extra_context=context, attachments=files)
