"""A messaging platform that outlives the service: what it was told, what it accepted, how it can fail.

Telegram's rules: a poll confirms everything below its offset and the rest is delivered again; a send may have
happened although nobody was told; 429 says how long to wait. `PlatformChannel` is the adapter, one per service.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from channels.base import Capabilities, Mark, NotAccepted, NotReadable, Page, Reached, Sink
from channels.message import Attachment, ChatKind, ChatMoved, InboundKind, InboundMessage, Incoming, Origin, Place
from channels.outgoing import Action, Delivery, Moved, NotSent, Refused, SendResult, Sent, Unknown
from tests.serving import PlainChannel

ACCOUNT = "bot1"
Fault = Literal["429", "not_ready", "answer_lost", "request_lost", "refused"]


class Life(Protocol):
    """One service and its process: dies once."""

    @property
    def dead(self) -> bool:
        """Nothing it does reaches anybody any more."""

    async def effect(self) -> None:
        """Something happened outside; raises when the process dies at this moment."""


@dataclass(frozen=True, slots=True)
class Update:
    """What a person wrote. edits: the update whose words it replaces. deletes: the update that it takes back.
    moves_to: the chat has this id from now on.

    sent_at: in milliseconds, behind the beginning of the world.
    """

    update_id: int
    chat: str
    text: str
    edits: int = 0
    deletes: int = 0
    moves_to: str = ""
    file: bool = False
    voice: bool = False
    sent_at: int = 0

    @property
    def event_key(self) -> str:
        """Under which the service keeps it."""
        if self.deletes:
            return f"d:{self.chat}:{self.deletes}"
        return f"e:{self.chat}:{self.edits}:{self.update_id}" if self.edits else f"m:{self.chat}:{self.update_id}"


@dataclass(frozen=True, slots=True)
class Shown:
    """Something visible in a chat: a message, or the sign of work."""

    chat: str
    body: str
    nonce: int
    typing: bool = False
    gone: bool = False


FILE = b"what the file says"


class Platform:
    """The server side. changed is called whenever something happened.

    name: of its channel. changed_at: how many things had become visible when a message of a chat was edited or deleted
    last. leapt: milliseconds that have passed while nobody did anything.
    """

    def __init__(self, changed: Callable[[], None], name: str = "telegram") -> None:
        self.name = name
        self.updates: list[Update] = []
        self.confirmed = 0
        self.shown: list[Shown] = []
        self.faults: deque[tuple[str, Fault]] = deque()
        self.faulted: Counter[str] = Counter()
        self.doubtful: Counter[int] = Counter()
        self.floods: dict[int, int] = {}
        self.changed_at: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.early: list[str] = []
        self.leapt = 0
        self.wrote = asyncio.Event()
        self.again = 0
        self.live: list[Update] = []
        self.deaf = False
        self.connections = 0
        self.asked = 0
        self._changed = changed

    def write(self, chat: str, *texts: str, file: bool = False, voice: bool = False) -> None:
        """A person writes, and sends a file or a voice message along; several texts arrive in one poll."""
        for text in texts:
            self._tell(Update(len(self.updates) + 1, chat, text, file=file, voice=voice))

    def edit(self, original: Update, text: str) -> None:
        """A person writes other words in place of those of a message."""
        self._tell(Update(len(self.updates) + 1, original.chat, text, edits=original.update_id))

    def delete(self, original: Update) -> None:
        """A person takes a message back."""
        self._tell(Update(len(self.updates) + 1, original.chat, "", deletes=original.update_id))

    def move(self, chat: str, to: str) -> None:
        """A chat gets another id; under the old one nothing can be sent any more."""
        self.moved[chat] = to
        self._tell(Update(len(self.updates) + 1, chat, "", moves_to=to))

    def _tell(self, update: Update) -> None:
        update = replace(update, sent_at=update.update_id + self.leapt)
        self.updates.append(update)
        if not self.deaf:
            self.live.append(update)
        self.wrote.set()
        self._changed()

    def redeliver(self, count: int) -> None:
        """The newest updates are delivered once more."""
        self.again = count
        self.wrote.set()

    def disconnect(self, deaf: bool) -> None:
        """Who only listens misses what is written from now on, until the connection is there again."""
        self.deaf = deaf
        self.connections += not deaf
        self.wrote.set()

    def fail_next(self, chat: str, *faults: Fault) -> None:
        """The next sends into a chat fail so."""
        self.faults.extend((chat, fault) for fault in faults)

    def visible(self, chat: str) -> list[Shown]:
        """The messages of the bot in a chat."""
        return [shown for shown in self.shown if shown.chat == chat and not shown.typing and not shown.gone]

    def take_fault(self, chat: str) -> Fault | None:
        """What happens to a send into a chat."""
        if self.faults and self.faults[0][0] == chat:
            fault = self.faults.popleft()[1]
            self.faulted[fault] += 1
            return fault
        return None

    def show(self, shown: Shown) -> None:
        """Something becomes visible."""
        self.shown.append(shown)
        self._changed()

    def change(self, ident: str, body: str) -> None:
        """A message gets other words, or goes when there are none."""
        known = self.shown[int(ident) - 1]
        self.shown[int(ident) - 1] = replace(known, body=body or known.body, gone=not body)
        self.changed_at[known.chat] = len(self.shown)
        self._changed()


class PlatformChannel(PlainChannel):
    """The adapter.

    now: the platform's own clock, in milliseconds. again: how many confirmed updates every start delivers once more.
    pace: seconds between visible calls in a chat.
    """

    account = ACCOUNT
    capabilities = Capabilities(
        block_chars=4000,
        typing_seconds=0.001,
        rules="Plain words.",
        actions=frozenset((Action.SEND, Action.EDIT, Action.DELETE, Action.PREVIEW)),
    )

    def __init__(
        self,
        platform: Platform,
        life: Life,
        now: Callable[[], int],
        again: int = 2,
        pace: float = 0.0,
    ) -> None:
        super().__init__()
        self.name = platform.name
        self._platform = platform
        self._life = life
        self._now = now
        self._again = again
        self._pace = pace
        self._next_at: dict[str, int] = {}
        self._not_before: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._typing: dict[str, asyncio.Lock] = {}

    async def start(self, sink: Sink) -> None:
        self.sink = sink
        self._task = asyncio.create_task(self._receive(sink), name="intake")

    async def _receive(self, sink: Sink) -> None:
        platform = self._platform
        scope = f"{self.name}:{ACCOUNT}"
        offset = int(await sink.mark(scope) or 0)
        first = max(0, offset - self._again)
        while True:
            if not self._life.dead:
                platform.confirmed = max(platform.confirmed, offset)
            batch = [update for update in platform.updates if update.update_id > min(first, offset)]
            if platform.again and not batch:
                batch, platform.again = platform.updates[-platform.again :], 0
            if not batch:
                platform.wrote.clear()
                await platform.wrote.wait()
                continue
            last = batch[-1].update_id
            try:
                await sink.accept(
                    [_incoming(update, self.name) for update in batch],
                    Mark(scope, str(max(offset, last))),
                )
            except NotAccepted:
                await asyncio.sleep(0.001)
                continue
            first = offset = max(offset, last)

    async def stop_intake(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def pass_limit(self, place: Place) -> float:
        wait = max(self._next_at.get(place.chat, 0), self._not_before.get(place.chat, 0)) - self._now()
        if wait > 0:
            return wait / 1000
        self._next_at[place.chat] = self._now() + int(self._pace * 1000)
        return 0.0

    async def send(self, delivery: Delivery) -> SendResult:
        chat, platform = delivery.place.chat, self._platform
        async with self._typing.setdefault(chat, asyncio.Lock()):
            await _travel(self._life)
            if self._now() < platform.floods.get(delivery.nonce, 0):
                platform.early.append(delivery.body)
            fault = platform.take_fault(chat)
            if fault == "429":
                self._not_before[chat] = platform.floods[delivery.nonce] = self._now() + 2000
                await asyncio.sleep(0)
                return NotSent(2.0, "too many requests")
            if fault == "not_ready" and self.sink is not None:
                # the channel is ready again before anybody could have begun to wait for it
                self.sink.can_send(self.name, self.account)
                return NotSent(None, "not connected")
            if fault == "refused":
                return Refused("chat not found")
            if fault == "request_lost":
                platform.doubtful[delivery.nonce] += 1
                return Unknown("connection closed")
            if chat in platform.moved:
                return Moved(platform.moved[chat])
            if delivery.action in (Action.EDIT, Action.DELETE):
                platform.change(delivery.target, delivery.body)
                await self._life.effect()
                await _travel(self._life)
                return Sent(delivery.target)
            platform.show(Shown(chat, delivery.body, delivery.nonce))
            await self._life.effect()
            await _travel(self._life)
            if fault == "answer_lost":
                platform.doubtful[delivery.nonce] += 1
                return Unknown("connection closed")
            return Sent(str(len(platform.shown)))

    async def settle(self, delivery: Delivery) -> SendResult:
        await _travel(self._life)
        return await super().settle(delivery)

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        await _travel(self._life)
        yield FILE
        await _travel(self._life)

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """Reactions of a platform that shows none."""

    async def frame(self, place: Place, target: str, body: str) -> float:
        async with self._typing.setdefault(place.chat, asyncio.Lock()):
            await _travel(self._life)
            self._platform.change(target, body)
            await _travel(self._life)
            return 1.0

    async def working(self, place: Place) -> None:
        async with self._typing.setdefault(place.chat, asyncio.Lock()):
            await _travel(self._life)
            if place.chat not in self._platform.moved:
                self._platform.show(Shown(place.chat, "", 0, typing=True))


class ListeningChannel(PlatformChannel):
    """The adapter of a platform that tells everything once, to who is connected, and can be asked for the rest.

    The ids of its messages say nothing of the time.
    """

    async def _receive(self, sink: Sink) -> None:
        platform = self._platform
        sink.missed(self.name, ACCOUNT, ())  # its first time here: what was written before counts as missed, too
        told, connection = len(platform.live), -1
        while True:
            if connection != platform.connections:
                connection = platform.connections
                newest = {update.chat: update.update_id for update in platform.updates}
                sink.missed(
                    self.name, ACCOUNT, [Reached(place_of(chat, self.name), str(last)) for chat, last in newest.items()]
                )
            first, told = min(told, len(platform.live) - platform.again), len(platform.live)
            platform.again = 0
            for update in platform.live[max(first, 0) : told]:
                with contextlib.suppress(NotAccepted):
                    await sink.accept([_incoming(update, self.name)], None)
            if told == len(platform.live) and connection == platform.connections and not platform.again:
                platform.wrote.clear()
                await platform.wrote.wait()

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """Two at once; every third time too many have asked."""
        await _travel(self._life)
        self._platform.asked += 1
        if self._platform.asked % 3 == 0:
            raise NotReadable("too many requests", 1.0)
        found = [one for one in self._platform.updates if one.chat == place.chat and one.update_id > int(after)]
        batch = found[: min(most, 2)]
        return Page(
            [_incoming(update, self.name) for update in batch],
            str(batch[-1].update_id) if batch else "",
            len(found) > len(batch),
        )

    def position(self, at: int) -> str:
        """Before all of them."""
        return "0"


async def _travel(life: Life) -> None:
    """A request or an answer is under way; nothing arrives from, or at, a dead process."""
    await asyncio.sleep(0)
    if life.dead:
        await asyncio.Event().wait()


def _incoming(update: Update, channel: str) -> Incoming:
    if update.moves_to:
        return ChatMoved(channel=channel, account=ACCOUNT, old_chat=update.chat, new_chat=update.moves_to)
    kind = InboundKind.EDIT if update.edits else InboundKind.DELETE if update.deletes else InboundKind.MESSAGE
    return InboundMessage(
        origin=Origin(
            place=place_of(update.chat, channel),
            sender=update.chat,
            message_id=str(update.edits or update.deletes or update.update_id),
        ),
        event_key=update.event_key,
        kind=kind,
        text=update.text,
        sent_at=1_700_000_000_000 + update.sent_at,
        attachments=(
            *((Attachment(kind="file", ref="file", name="notes.md"),) if update.file else ()),
            *((Attachment(kind="audio", ref="voice", mime="audio/ogg", spoken=True),) if update.voice else ()),
        ),
    )


def place_of(chat: str, channel: str = "telegram") -> Place:
    """The direct messages with somebody."""
    return Place(channel=channel, account=ACCOUNT, chat=chat, kind=ChatKind.DIRECT)
