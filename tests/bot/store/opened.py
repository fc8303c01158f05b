"""A store of a test, and messages for it."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.events import MessageEnd, Outcome, RunRef
from agent.journal import Step
from agent.message import Message, Part, Text, Usage
from bot.clock import Clock
from bot.persistence.deliveries import PlanIn
from bot.persistence.events import Subscriber
from bot.persistence.inbox import AcceptedMessage, Duplicate
from bot.persistence.settings import AnsweredBy, SessionSettings
from bot.persistence.turns import Turn, TurnKind
from bot.store.store import Store
from bot.store.writer import CommitProbe
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, message_key

ANSWERED_BY = AnsweredBy("test/model", "off")
KEY = "agent:main:telegram:direct:1"
_NO_USAGE = Usage()
_numbers = itertools.count(1)


@contextlib.asynccontextmanager
async def opened(
    home: Path, clock: Clock | None = None, probe: CommitProbe | None = None, subscriber: Subscriber = lambda kept: None
) -> AsyncIterator[Store]:
    """A store that is open while the context lasts."""
    store = Store(home, clock or Clock(), lambda message, *_: Message("user", (Text(message.text),)), subscriber, probe)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def message(text: str = "hello", kind: InboundKind = InboundKind.MESSAGE, chat: str = "1") -> InboundMessage:
    """A message of person 1 as an adapter makes it, with a key of its own."""
    number = str(next(_numbers))
    place = Place(channel="telegram", account="bot", chat=chat, kind=ChatKind.DIRECT)
    origin = Origin(place=place, sender="1", message_id=number)
    return InboundMessage(origin=origin, event_key=message_key(chat, number), kind=kind, text=text, sent_at=0)


def a_turn(turn_id: str = "", session_key: str = "s", **fields: Any) -> Turn:
    """A turn that no store holds; of nobody, unless the fields say so."""
    given: dict[str, Any] = {
        "run": RunRef(run_id=turn_id, turn_id=turn_id, session_key=session_key, attempt=1),
        "kind": TurnKind.REPLY,
        "transcript_id": "",
        "messages": (),
        "conv_id": 0,
        "place": Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT),
        "step": 0,
        "usage": _NO_USAGE,
        "ran": 0,
        "entries": (),
        "prompt": None,
        "fingerprint": None,
        "more": False,
    }
    return Turn(**given | fields)


async def accept(store: Store, text: str = "hello", kind: InboundKind = InboundKind.MESSAGE, **fields: Any) -> int:
    """Let a message in; returns its place in the order of acceptance."""
    item = AcceptedMessage(message=message(text, kind), session_key=KEY)
    (answer,) = await store.inbox.accept([replace(item, **fields)])
    assert not isinstance(answer, Duplicate)
    return answer.seq


def whole(run: RunRef, *parts: Part, step: int = 1, usage: Usage = _NO_USAGE) -> Step:
    """An answer as a run stores it."""
    message = Message("assistant", parts)
    ended = MessageEnd(
        run=run,
        at=0,
        step=step,
        text=message.text,
        calls=tuple(call.call_id for call in message.tool_calls),
        stop_reason="end",
        usage=_NO_USAGE,
    )
    return Step(message=message, ended=ended, usage=usage, context_start=1, pruned_below=1, outcome=Outcome.COMPLETED)


def answering(kind: TurnKind, settings: SessionSettings, messages: Sequence[InboundMessage]) -> AnsweredBy:
    """Which model answers every turn."""
    return ANSWERED_BY


async def claim(store: Store) -> Turn:
    """Take the next turn of the session."""
    claimed = await store.turns.claim(KEY, "worker", answering)
    assert claimed is not None
    return claimed


async def accept_and_claim(
    store: Store, text: str = "hello", kind: InboundKind = InboundKind.MESSAGE, **fields: Any
) -> Turn:
    """Let a message in and take the turn that answers it."""
    await accept(store, text, kind, **fields)
    return await claim(store)


async def fail(store: Store, turn: Turn) -> None:
    """End a turn because no model could be reached, and tell nobody."""
    where = PlanIn(turn.conv_id)
    await store.turns.finish(turn.run, Outcome.FAILED, error_kind="network", error_message=None, where=where, blocks=())
