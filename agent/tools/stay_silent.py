"""`stay_silent`: ends the turn without another word. It does nothing but that, so a cut call of it counts too.

The loop ends the turn (`agent/calls/batch`), the service leaves out what was not yet on its way. Offered by
`agent/tools/registry`.
"""

from pydantic import Field

from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Tool

STAY_SILENT = "stay_silent"


class StaySilentParameters(Parameters):
    """Of `stay_silent`."""

    reason: str = Field(default="", max_length=500, description="Why, in a few words. Nobody is told.")


class StaySilentTool(Tool[StaySilentParameters]):
    """Says nothing."""

    name = STAY_SILENT
    description = "End your turn without saying anything, or anything more. For when nothing needs to be said."
    parameters = StaySilentParameters
    parallel_safe = True

    async def run(self, parameters: StaySilentParameters, context: CallContext) -> ToolOutput:
        """What the model reads if the turn goes on after all."""
        return ToolOutput(text="Nothing was said.")
