"""What may look at calls of tools, and change them, before and after they run. See `agent/tools/pipeline.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.message import ToolOutput


@dataclass(frozen=True, slots=True)
class HookedCall:
    """A call. arguments: as the model wrote them, or an earlier hook; not checked yet."""

    turn_id: str
    session_key: str
    call_id: str
    name: str
    arguments: Mapping[str, Any]


class Hook:
    """Base class of hooks.

    Of a call that waits for a person, or that a crash came between, `before` is called again when its turn goes on:
    what it does besides may happen twice.
    """

    async def before(self, call: HookedCall) -> HookedCall:
        """The call as it is to go on: policy, validation and people see the arguments that this returns.

        Raises Refused with a sentence for the model when it is not to run; any other error refuses it, too.
        """
        return call

    async def after(self, call: HookedCall, output: ToolOutput) -> ToolOutput:
        """What a call that ran gave back, as it is to go on. An error is logged, and the output stays as it was."""
        return output
