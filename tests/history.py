"""A platform whose past can be asked for, in memory: what is said there stays, whether the service listens or not.

past = Past()
past.say("two", START)
async with remembering(tmp_path, past) as hark:
    await hark.until_texts(1)
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from channels.base import Page, Reached, Sink
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, message_key
from tests.scripted_model import ScriptedModel
from tests.service import Hark, RecordingChannel, running, session_of
from tests.watch import ManualTime, Watch

START = 1_784_000_000_000
HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What the platform was asked for."""

    chat: str
    after: str
    before: str
    most: int


@dataclass
class Past:
    """Everything that was ever said. An id is the moment in milliseconds and a number.

    own: ids of messages of the bot, which are no events. reached: whether the platform names conversations and their
    newest messages. spaces: what chats lie in, by their ids. page: at most so many at once. faults: what comes of the
    next questions about a chat instead.
    on_history: awaited before an answer is made.
    """

    said: list[InboundMessage] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    asked: list[Asked] = field(default_factory=list)
    reached: bool = False
    page: int = 2
    spaces: dict[str, str] = field(default_factory=dict)
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    on_history: Callable[[str], Awaitable[None]] | None = None

    def say(self, text: str, at: int, chat: str = "1", **fields: Any) -> InboundMessage:
        """Somebody says something."""
        message_id = f"{at * 1000 + len(self.said) + 1}"
        message = InboundMessage(
            **{
                "origin": Origin(place=place(chat), sender=chat, message_id=message_id),
                "event_key": message_key(chat, message_id),
                "kind": InboundKind.MESSAGE,
                "text": text,
                "sent_at": at,
            }
            | fields
        )
        self.said.append(message)
        return message

    def newest(self) -> list[Reached]:
        """The conversations with their newest messages."""
        last = {one.origin.place: one.origin.message_id for one in self.said}
        found = [Reached(place, newest, self.spaces.get(place.chat, "")) for place, newest in last.items()]
        return found if self.reached else []


def place(chat: str) -> Place:
    """Of the direct messages of a person."""
    return Place(channel="telegram", account="bot", chat=chat, kind=ChatKind.DIRECT)


class RememberingChannel(RecordingChannel):
    """The adapter."""

    def __init__(self, watch: Watch, *, past: Past, **around: Any) -> None:
        super().__init__(watch, **around)
        self.past = past

    async def start(self, sink: Sink) -> None:
        await super().start(sink)
        self.reconnect()

    def reconnect(self) -> None:
        """Something may have been missed."""
        assert self.sink is not None
        self.sink.missed(self.name, self.account, self.past.newest())

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        past = self.past
        past.asked.append(Asked(place.chat, after, before, most))
        self.watch.changed()
        if past.faults.get(place.chat):
            raise past.faults[place.chat].pop(0)
        found = [
            one
            for one in past.said
            if one.origin.place == place and int(after) < int(one.origin.message_id) < int(before or 10**18)
        ]
        page = found[: min(most, past.page)]
        batch = [one for one in page if one.origin.message_id not in past.own]
        if past.on_history:
            await past.on_history(place.chat)
        return Page(batch, page[-1].origin.message_id if page else "", len(found) > len(page))

    def position(self, at: int) -> str:
        return f"{at * 1000}"


@contextlib.asynccontextmanager
async def remembering(
    home: Path, past: Past, *, hours: float = 0.0, config: Mapping[str, Any] | None = None, **around: Any
) -> AsyncIterator[Hark]:
    """A service on that platform, so many hours after START."""
    watch = Watch()
    made = {"made": RememberingChannel, "channel": {"past": past}, "time": ManualTime(watch, START + int(hours * HOUR))}
    async with running(home, config=config, model=ScriptedModel(watch), **made, **around) as hark:
        yield hark


def heard(hark: Hark, chat: str = "1") -> list[str]:
    """What the model was told in a chat, in order: the last line of each message."""
    turns = {turn_id for (turn_id,) in hark.stored.turns("turn_id", session_key=session_of(chat))}
    lines = [
        json.loads(body) for turn_id, body in hark.stored.entries("turn_id", "body", kind="user") if turn_id in turns
    ]
    return [line["parts"][-1]["text"].rsplit("\n", 1)[-1] for line in lines]


async def caught_up() -> None:
    """Return when nothing is read any more."""
    # nobody tells when it has ended
    while any(task.get_name() == "catch-up" for task in asyncio.all_tasks()):  # noqa: ASYNC110
        await asyncio.sleep(0)
