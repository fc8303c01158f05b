"""Tools that a test decides about: one asks a person before each call, one sends messages."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from agent.message import ToolOutput
from agent.tools.base import Ask, CallContext, RunContext, Tool, ToolFactory
from bot.persistence.deliveries import Delivered
from bot.service import Service
from channels.outgoing import Planned
from channels.sources import Source, tool_message
from tests.service import Hark, Labelled

ASKED = "May I?"
OTHERWISE = "Nobody was there."


class AskingTool(Tool[Labelled]):
    """Asks before each call, but for those labelled `free`; `begun` holds the labels of the calls that ran."""

    name = "ask"
    parallel_safe = True
    parameters = Labelled
    description = "Asks first."

    def __init__(self, *, seconds: float = 1800, words: str = ASKED) -> None:
        self.seconds = seconds
        self.words = words
        self.where = "here"
        self.begun: list[str] = []

    async def asks(self, parameters: Labelled, context: CallContext) -> Ask | None:
        """See Tool."""
        if parameters.label == "free":
            return None
        return Ask(
            digest=f"{parameters.label} {self.where}",
            subject=self.words,
            is_code=False,
            seconds=self.seconds,
            otherwise=OTHERWISE,
        )

    async def run(self, parameters: Labelled, context: CallContext) -> ToolOutput:
        """See Tool."""
        self.begun.append(parameters.label)
        return ToolOutput(text=f"did {parameters.label}")


async def send(service: Service, context: CallContext, *pieces: str) -> Source:
    """Plan a message of a running call, in pieces, where its turn answers; returns its source."""
    handle = service.parts.lanes.handle(context.session_key)
    assert handle is not None
    source, nonce = tool_message(context.turn_id, context.call_id), service.parts.clock.nonce
    blocks = [
        Planned(source=source, piece=n, body=text, nonce=nonce(), said="" if n else text)
        for n, text in enumerate(pieces)
    ]
    await handle.journal.send(handle.journal.turn.place, blocks, "")
    return source


class SendingTool(Tool[Labelled]):
    """Sends its label, each word a piece (or the whole as one), then does what the test wants; fate: what has become of
    the message by then. service: the one whose tool it is."""

    name = "send"
    parameters = Labelled
    description = "Sends."

    def __init__(
        self,
        service: Callable[[], Service],
        then: Callable[[], Awaitable[object]] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self._service = service
        self._then = then
        self._whole = whole
        self.fate: Delivered | None = None

    async def run(self, parameters: Labelled, context: CallContext) -> ToolOutput:
        """See Tool."""
        service = self._service()
        source = await send(service, context, *([parameters.label] if self._whole else parameters.label.split()))
        if self._then is not None:
            await self._then()
        self.fate = (await service.parts.store.turns.delivered(source.key)).state
        return ToolOutput(text="sent")


@dataclass
class Workbench:
    """A factory of tools, which notes for whom it made some; open: how many of them are not closed."""

    make: Callable[[RunContext], Sequence[Tool[Any]]]
    runs: list[RunContext] = field(default_factory=list)
    open: int = 0

    @property
    def factory(self) -> ToolFactory:
        """To be given to a service."""

        return lambda run: _Made(self, run)


class _Made(AbstractAsyncContextManager[Sequence[Tool[Any]]]):
    """Tools of one run. No generator: that would be closed by the collector as well."""

    def __init__(self, bench: Workbench, run: RunContext) -> None:
        self._bench = bench
        self._run = run

    async def __aenter__(self) -> Sequence[Tool[Any]]:
        await asyncio.sleep(0)
        tools = self._bench.make(self._run)
        self._bench.runs.append(self._run)
        self._bench.open += 1
        return tools

    async def __aexit__(self, *error: object) -> None:
        await asyncio.sleep(0)
        self._bench.open -= 1


def said(hark: Hark, chat: str = "1") -> list[str]:
    """What was sent into a chat; of a request only that it was, and not how it was edited."""
    aside = ("told:", "again:")
    here = (one for one in hark.channel.sent if one.place.chat == chat and ":0." not in one.source.key)
    sent = (one for one in here if not one.source.key.startswith(aside))
    return [ASKED if one.source.key.startswith("ask:") and ASKED in one.body else one.body for one in sent]


async def approval(hark: Hark, count: int = 1) -> str:
    """The id of the approval of that number (from 1), once the turn is parked on it."""
    stored = hark.stored
    await hark.until(lambda: stored.turns(state="parked") and len(stored.approvals()) == count, f"approval {count}")
    ((parked_on,),) = stored.turns("parked_on", state="parked")
    return str(parked_on)
