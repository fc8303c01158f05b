"""The way of a message from an adapter into the store, on one screen: access, command, session key, accept, lane.

Nothing is awaited before the store call, so the order in which adapters call is the order of acceptance. The platform
is told that a message was received only after `accept` has returned.
"""

import contextlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import structlog

from agent.text import cleaned
from bot.clock import Clock
from bot.commands.answers import CommandRunner
from bot.commands.registry import Registry
from bot.config.model import CatchUpSettings
from bot.inbound.acknowledge import acknowledge
from bot.inbound.catch_up import CatchUp
from bot.outbox import Outbox
from bot.persistence.errors import StoreUnavailable
from bot.persistence.protocols import Store
from bot.persistence.values import Accepted, AcceptedMessage, Duplicate, Fresh, Heard, Later
from bot.runs.lanes import Lanes
from channels.base import CommandInfo, Mark, NotAccepted, Reached
from channels.message import (
    BACKGROUND,
    CARRIED_OUT,
    CLAIMED,
    ChatMoved,
    InboundKind,
    InboundMessage,
    Incoming,
    UnreadEvent,
)
from channels.settings import Acknowledgement

log = structlog.get_logger()

_STOPPING = "the service is stopping"
STRANGER_LIMIT = 4096
"""Bytes kept of the one message that is kept of an unknown sender."""
STRANGERS = 4096
"""How many of them are named in the log, at most."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How a message finds its session, what says that it was seen, and why it is dropped if it is."""

    session_key: Callable[[InboundMessage], str]
    acknowledgement: Callable[[InboundMessage], Acknowledgement]
    refusal: Callable[[InboundMessage], str | None]


class Pipeline:
    """The sink of all channels."""

    def __init__(
        self,
        store: Store,
        routing: Routing,
        registry: Registry,
        lanes: Lanes,
        commands: CommandRunner,
        outbox: Outbox,
        clock: Clock,
        catch_up: CatchUpSettings,
    ) -> None:
        self._store = store
        self._routing = routing
        self._registry = registry
        self._lanes = lanes
        self._commands = commands
        self._outbox = outbox
        self._closed = False
        self._commands_coming = 0
        self._strangers: set[tuple[str, str]] = set()
        self._catch_up = CatchUp(store, outbox, lanes, clock, catch_up, self._decide, self._store_and_tell)

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
        if any(isinstance(item, ChatMoved) for item in items):
            with contextlib.suppress(StoreUnavailable):  # it is stored; the sweep finds it
                await self._outbox.serve_open()

    async def accept_one(self, item: AcceptedMessage) -> Fresh | Duplicate:
        """Accept a message whose session is known (HTTP, console). Raises StoreUnavailable."""
        if self._closed:
            raise StoreUnavailable(_STOPPING)
        item = cleaned(item)
        if self._registry.find(item.message.text) is not None:
            item = replace(item, message=replace(item.message, kind=InboundKind.COMMAND))
        (answer,) = await self._store_and_tell([item], None)
        return answer

    async def mark(self, scope: str) -> str | None:
        return await self._store.inbox.mark(scope)

    def missed(self, channel: str, account: str, reached: Sequence[Reached]) -> None:
        self._catch_up.missed(channel, account, reached)

    def commands(self) -> Sequence[CommandInfo]:
        return self._registry.infos()

    def can_send(self, channel: str, account: str) -> None:
        self._outbox.can_send(channel, account)

    async def _store_and_tell(self, items: Sequence[Accepted], mark: Mark | None) -> Sequence[Fresh | Duplicate]:
        """Store a batch, then begin what it asks for. Raises StoreUnavailable."""
        commands = sum(isinstance(item, AcceptedMessage) and item.message.kind in CARRIED_OUT for item in items)
        self._commands_coming += commands
        woken = set() if self._commands_coming else self._wake_early(items)
        try:
            answers = await self._store.inbox.accept(items, mark)
        finally:
            self._commands_coming -= commands
        for item, answer in zip(items, answers, strict=True):
            self._tell(item, answer, woken)
        return answers

    def _wake_early(self, items: Sequence[Accepted]) -> set[str]:
        """Wake the sessions in which people write; returns which. Not while commands come: those act first."""
        written = [
            item.session_key
            for item in items
            if isinstance(item, AcceptedMessage)
            and item.message.kind in CLAIMED - BACKGROUND
            and not (item.delay or item.behind)
        ]
        return {session_key for session_key in written if session_key and self._lanes.wake_early(session_key)}

    def _decide(self, item: Incoming) -> Accepted:
        item = cleaned(item)
        if isinstance(item, UnreadEvent | ChatMoved):
            return item
        reason = self._routing.refusal(item)
        if reason is not None:
            return AcceptedMessage(message=_bounded(item), session_key=None, state="dropped", reason=reason)
        session_key = self._routing.session_key(item)
        if item.kind is InboundKind.MESSAGE and self._registry.find(item.text) is not None:
            item = replace(item, kind=InboundKind.COMMAND)
        say = acknowledge(item, self._routing.acknowledgement(item))
        return self._catch_up.aged(AcceptedMessage(message=item, session_key=session_key, say=say))

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
        if isinstance(answer, Fresh):
            self._outbox.send(answer.said)
        if item.state == "dropped":
            self._name_stranger(item)
            return
        if isinstance(answer, Duplicate) or item.session_key is None or item.behind:
            return
        if item.message.kind in CARRIED_OUT:
            self._commands.begin(answer.seq, item.session_key, item.message)
        elif item.message.kind in CLAIMED:
            background = item.message.kind in BACKGROUND
            if item.delay:
                self._lanes.wake_later(Later(item.session_key, background, answer.ready_at, item.delay))
            elif background or item.session_key not in woken:
                self._lanes.wake(item.session_key, background=background)

    def _name_stranger(self, item: AcceptedMessage) -> None:
        """Once per person: whoever mistook an id in the configuration finds the right one in the log."""
        origin = item.message.origin
        stranger = (origin.place.channel, origin.sender)
        if (
            item.reason == "access"
            and stranger[1]
            and stranger not in self._strangers
            and len(self._strangers) < STRANGERS
        ):
            self._strangers.add(stranger)
            log.warning("a stranger was not let in", channel=stranger[0], id=stranger[1])


def _bounded(message: InboundMessage) -> InboundMessage:
    """What is kept of a stranger: one message per sender (by its key), at most 4 KB of text, no attachments."""
    origin = message.origin
    text = message.text.encode()[:STRANGER_LIMIT].decode(errors="ignore")
    name = origin.sender_name[:64]
    return replace(
        message,
        event_key=f"x:{origin.sender}",
        text=text,
        attachments=(),
        origin=replace(origin, sender_name=name),
    )
