"""Detects that a turn repeats itself: calls whose results it has seen before, with nothing new between them.

Repetitions are counted from the transcript, so a restart changes nothing. One rule finds a repeated call, two calls
that alternate, and longer cycles. A new result, or a message of a person, starts the count again.
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
from agent.tools.output import FOLDER

# Repetitions in a row are counted in thirds, because a call of a tool that is made to be polled counts as one third.
# One or two are normal, and three happen when a model reads a file again after an error, but no task needs eight. Four
# more, all refused, show that the model does not take the hint.
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
    """The repetitions among the calls of a turn."""

    # The number of repetitions at the end of the turn, in thirds.
    count: int
    # All calls of the turn as name, arguments and text of the result.
    calls: frozenset[tuple[str, str, str]]
    # Names of the tools that are made to be polled.
    polls: Container[str]

    @property
    def is_over(self) -> bool:
        """Whether the turn must end."""
        return self.count >= OVER

    def check(self, call: ToolCall) -> None:
        """Raise Repeated when a call must not be executed again."""
        if self._with(call) >= REFUSED and any(made[:2] == _asked(call) for made in self.calls):
            raise Repeated(REFUSAL)

    def noted(self, call: ToolCall, result: str) -> str:
        """Return the text of a result, with a note for the model if the call repeats an earlier one too often."""
        repeated = (*_asked(call), _learned(result)) in self.calls
        return result + NOTE if repeated and self._with(call) >= NOTED else result

    def _with(self, call: ToolCall) -> int:
        return self.count + (_POLL if call.name in self.polls else _WHOLE)


def repeats(entries: Iterable[Entry], tools: Mapping[str, Tool[Any]]) -> Repeats:
    """Count the repetitions in the lines of a turn."""
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
    """Return the text of a result without an appended note and the name of the file that holds the whole result."""
    return _KEPT_IN.sub("", result.removesuffix(NOTE))


def _asked(call: ToolCall) -> tuple[str, str]:
    """Return name and arguments of a call, the arguments as canonical JSON."""
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments
