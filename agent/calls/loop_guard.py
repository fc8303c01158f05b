"""Notices that a turn goes round in circles: calls whose results it has seen already, and nothing new between them.

Counted anew from the transcript, so that a restart changes nothing. One rule finds the same call again and again, two
that alternate, and longer cycles; new results, and what a person writes meanwhile, begin the count again.
"""

import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.calls.repair import repaired
from agent.errors import ToolError
from agent.message import Entry, Mark, ToolCall
from agent.tools.base import Tool
from agent.tools.overflow import FOLDER

# How many repetitions in a row, in thirds, since those of a tool that is made to be polled count for one third. One or
# two are what careful people do, three happen to models that read a file again behind an error; no task needs eight.
# The last four are refused calls, by which a model shows that words do not help.
_WHOLE, _POLL = 3, 1
NOTED, REFUSED, OVER = 4 * _WHOLE, 8 * _WHOLE, 12 * _WHOLE

NOTE = (
    "\n\n[You have made this call before in this turn, with the same result, and learned nothing new since. "
    "Do something else, or say what you have found.]"
)
REFUSAL = (
    "Not executed: this call has been made again and again in this turn without a new result. "
    "Do something else, or say what you have found and what is missing."
)
OVER_NOTE = (
    "You have repeated calls without learning anything new. Call no tool. "
    "Say in a few sentences what is done and what is still open."
)
_KEPT_IN = re.compile(rf"{FOLDER}/[\w-]+\.txt")


class Repeated(ToolError):
    """A call was made again and again without a new result, and is refused."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """What the calls of a turn say about whether it goes round in circles."""

    # How many repetitions in a row the turn ends with, in thirds.
    count: int
    # All calls of the turn: name, arguments, and what the result says.
    calls: frozenset[tuple[str, str, str]]
    # Names of the tools that are made to be polled.
    polls: Container[str]

    @property
    def is_over(self) -> bool:
        """The turn is to end."""
        return self.count >= OVER

    def check(self, call: ToolCall) -> None:
        """Raises Repeated when a call is not to be executed any more."""
        if self._with(call) >= REFUSED and any(made[:2] == _asked(call) for made in self.calls):
            raise Repeated(REFUSAL)

    def noted(self, call: ToolCall, result: str) -> str:
        """The text of a result, with a note for the model where the call repeats an earlier one."""
        repeated = (*_asked(call), _learned(result)) in self.calls
        return result + NOTE if repeated and self._with(call) >= NOTED else result

    def _with(self, call: ToolCall) -> int:
        return self.count + (_POLL if call.name in self.polls else _WHOLE)


def repeats(entries: Iterable[Entry], tools: Mapping[str, Tool[Any]]) -> Repeats:
    """What a turn with these lines and tools has done."""
    polls = {name for name, tool in tools.items() if tool.polls}
    asked: dict[str, ToolCall] = {}
    seen: set[tuple[str, str, str]] = set()
    count = 0
    for entry in entries:
        if entry.kind == "user":
            count = 0
        asked |= {call.call_id: repaired(call, tools) for call in entry.message.tool_calls}
        for result in entry.message.tool_results:
            if (call := asked.get(result.call_id)) is None:
                continue
            made = (*_asked(call), _learned(result.text))
            if made in seen or result.mark is Mark.REPEATED:
                count += _POLL if call.name in polls else _WHOLE
            else:
                count = 0
            seen.add(made)
    return Repeats(count, frozenset(seen), polls)


def _learned(result: str) -> str:
    """What a result says, without the note of an earlier one and the name of the file that holds the whole of it."""
    return _KEPT_IN.sub("", result.removesuffix(NOTE))


def _asked(call: ToolCall) -> tuple[str, str]:
    """Name and arguments, however they are written."""
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments
