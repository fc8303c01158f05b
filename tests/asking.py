"""Tools that a test decides about: one asks a person before each call, one sends messages."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from agent.message import ToolOutput
from agent.tools.base import Ask, CallContext, Delivered, RunContext, Tool, ToolFactory
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
            approvers=("telegram:1",),
            seconds=self.seconds,
            words=self.words,
            otherwise=OTHERWISE,
        )

    async def run(self, parameters: Labelled, context: CallContext) -> ToolOutput:
        """See Tool."""
        self.begun.append(parameters.label)
        return ToolOutput(text=f"did {parameters.label}")


class SendingTool(Tool[Labelled]):
    """Sends its label, each word a message, and tells what has become of them; then does what the test wants."""

    name = "send"
    parameters = Labelled
    description = "Sends."

    def __init__(self, then: Callable[[], Awaitable[object]] | None = None) -> None:
        self._then = then
        self.fates: list[Delivered] = []

    async def run(self, parameters: Labelled, context: CallContext) -> ToolOutput:
        """See Tool."""
        names = [await context.deliver(word) for word in parameters.label.split()]
        if self._then is not None:
            await self._then()
        self.fates = [await context.delivered(name) for name in names]
        return ToolOutput(text=f"sent {len(names)}")


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


async def approval(hark: Hark, count: int = 1) -> str:
    """The id of the approval of that number (from 1), once the turn is parked on it."""
    stored = hark.stored
    await hark.until(lambda: stored.turns(state="parked") and len(stored.approvals()) == count, f"approval {count}")
    ((parked_on,),) = stored.turns("parked_on", state="parked")
    return str(parked_on)
