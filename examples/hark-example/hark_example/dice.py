"""The tool dice."""

import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from pydantic import Field

from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, RunContext, Sink, Tool


class Roll(Parameters):
    """What is rolled."""

    count: int = Field(default=1, ge=1, le=100, description="How many dice.")
    sides: int = Field(default=6, ge=2, le=1000, description="How many sides each has.")


class DiceTool(Tool[Roll]):
    """Rolls dice."""

    name = "dice"
    description = "Roll dice; returns what each shows and their sum."
    parameters = Roll

    async def sink(self, parameters: Roll, context: CallContext) -> Sink:
        """Nothing is changed anywhere, so it may be called whatever was read before."""
        return "look"

    async def run(self, parameters: Roll, context: CallContext) -> ToolOutput:
        """Roll."""
        rolled = [1 + secrets.randbelow(parameters.sides) for _ in range(parameters.count)]
        return ToolOutput(text=f"{', '.join(map(str, rolled))} (sum {sum(rolled)})")


def tools(run: RunContext) -> AbstractAsyncContextManager[Sequence[DiceTool]]:
    """The tools of a run. What it needs for so long would be opened and closed by the context."""
    return nullcontext([DiceTool()])
