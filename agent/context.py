"""The part of a transcript that goes to the model: newest turns that fit, calls never split from their results.

When the budget is exceeded the beginning moves by a large piece at once, so that the prefix of consecutive requests
stays the same for many turns (promise 7). What is left out is said to the model in one line.
"""

import re
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import replace

from agent.message import Entry, Image, Mark, Message, Text, ToolCall, ToolResult
from agent.tools.stay_silent import STAY_SILENT

LEFT_OUT = "[Earlier parts of this conversation no longer fit and are not shown.]"
# Notes and results of the cut-answer rule: for crash, broken stream, drain and the limit of output.
CUT_NOTE = "Your reply was cut off. The text above has been delivered. Go on from there; repeat nothing."
UNSAID_NOTE = (
    "Your reply reached the limit of output before it said anything, and no call in it was executed. "
    "Think less, say it more briefly, or do it in smaller steps."
)
INTERRUPTED = "Interrupted: the outcome of this call is unknown. It was not repeated."
NOT_EXECUTED = "Not executed: the run was stopped before this call."

# What remains of the budget after a move, as a fraction.
_KEEP = 0.6
# What a call is about, as far as its arguments say it.
_PATH = re.compile(r'"path"\s*:\s*"([^"]*)"')


class Context:
    """The lines of one transcript from its present beginning on; grows by append only.

    What each step asks (the messages of a request, the lines of a turn) is kept up as lines are added, so that a step
    costs what is new in it, and not what the transcript holds.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.call_ids: set[str] = set()  # of all calls that were ever in it: providers want them unique
        self._begin()
        self.append(entries)

    def _begin(self) -> None:
        self.entries: list[Entry] = []
        self.tokens = 0
        self.has_images = False  # in words of people; those of results travel with these
        self._turns: dict[str | None, list[Entry]] = {}
        self._messages: list[Message] = []
        self._results: dict[str, ToolResult] = {}
        self._beside: dict[str, int] = {}  # of each call, which message has the results of its answer

    @property
    def start(self) -> int:
        """Seq of the first line that is shown, 1 in an empty transcript."""
        return self.entries[0].seq if self.entries else 1

    @property
    def end(self) -> int:
        """Seq of the last line, 0 in an empty transcript."""
        return self.entries[-1].seq if self.entries else 0

    def append(self, entries: Iterable[Entry]) -> None:
        """Add lines that were stored."""
        for entry in entries:
            self.entries.append(entry)
            self.tokens += entry.tokens
            self._turns.setdefault(entry.turn_id, []).append(entry)
            if entry.kind == "tool_result":
                for result in entry.message.tool_results:
                    self._answer(result)
            else:
                self._add(entry.message)

    def _add(self, message: Message) -> None:
        """Behind calls stand their results at once, at first that their outcome is unknown."""
        self._messages.append(message)
        if message.role == "user":
            self.has_images = self.has_images or any([isinstance(part, Image) for part in message.parts])
        if calls := message.tool_calls:
            self.call_ids |= {call.call_id for call in calls}
            self._beside |= dict.fromkeys([call.call_id for call in calls], len(self._messages))
            missing = [ToolResult(call.call_id, call.name, INTERRUPTED, is_error=True, mark=Mark.CUT) for call in calls]
            self._messages.append(Message("tool", tuple([self._results.get(one.call_id, one) for one in missing])))

    def _answer(self, result: ToolResult) -> None:
        """Put a result beside its call: the first of several; one without a call is left out."""
        if self._results.setdefault(result.call_id, result) is result and result.call_id in self._beside:
            at = self._beside[result.call_id]
            parts = [result if part.call_id == result.call_id else part for part in self._messages[at].tool_results]
            self._messages[at] = replace(self._messages[at], parts=tuple(parts))

    def of_turn(self, turn_id: str) -> Sequence[Entry]:
        """The lines of one turn."""
        return self._turns.get(turn_id, ())

    def fit(self, budget: int) -> bool:
        """Move the beginning so that the rest fits into budget tokens; returns whether it moved.

        It moves to a line at which no call is open. The newest such piece stays even if it alone exceeds the budget:
        the provider then says so.
        """
        if self.tokens <= budget:
            return False
        keep = int(budget * _KEEP)
        open_calls: set[str] = set()
        rest = self.tokens
        cut_at = 0
        for index, entry in enumerate(self.entries):
            if index and not open_calls and self._begins(index):
                cut_at = index
                if rest <= keep:
                    break
            rest -= entry.tokens
            open_calls |= {call.call_id for call in entry.message.tool_calls}
            open_calls -= {result.call_id for result in entry.message.tool_results}
        if not cut_at:
            return False
        shown = self.entries[cut_at:]
        self._begin()
        self.append(shown)
        return True

    def _begins(self, index: int) -> bool:
        """Whether a piece may begin at a line; what people said to one turn, and its files, stay together."""
        entry, last = self.entries[index], self.entries[index - 1]
        if entry.kind == "user":
            return last.kind != "user" or last.turn_id != entry.turn_id
        return entry.kind in ("assistant", "assistant_cut", "summary")

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet: asked before a crash, and not begun."""
        last = next((entry.message for entry in reversed(self.entries) if entry.kind == "assistant"), None)
        return tuple(call for call in last.tool_calls if call.call_id not in self._results) if last else ()

    def silenced(self, results: Sequence[ToolResult] = ()) -> bool:
        """Whether the last answer asked for silence and only results have come since. results: those not stored yet.

        A cut call counts: it might have done nothing else.
        """
        found = list(results)
        for entry in reversed(self.entries):
            if entry.kind != "tool_result":
                break
            found += entry.message.tool_results
        return any(one.name == STAY_SILENT and (not one.is_error or one.mark is Mark.CUT) for one in found)

    def unmended(self, turn_id: str, tools: Container[str], denied: Container[str]) -> ToolResult | None:
        """The newest failure of a turn with these tools that no later call made good: of that tool, on that path.

        denied: calls that people did not want.
        """
        aims: dict[str, str] = {}
        failed: dict[tuple[str, str], ToolResult] = {}
        for entry in self.of_turn(turn_id):
            aims |= {call.call_id: "".join(_PATH.findall(call.arguments)[:1]) for call in entry.message.tool_calls}
            for result in entry.message.tool_results:
                if result.name not in tools or result.call_id in denied:
                    continue
                aim = result.name, aims.get(result.call_id, "")
                failed.pop(aim, None)
                if result.is_error:
                    failed[aim] = result
                else:
                    failed.pop((result.name, ""), None)
        return next(reversed(failed.values()), None)

    def said(self, turn_id: str, speaking: Collection[str]) -> bool:
        """Whether a turn has said anything visible. speaking: tools that do, too."""
        for entry in reversed(self.of_turn(turn_id)):
            if entry.message.role == "assistant" and entry.message.text.strip():
                return True
            if any(result.name in speaking and not result.is_error for result in entry.message.tool_results):
                return True
        return False

    def cut_text(self) -> str:
        """The words that the next answer goes on from: those of the cut answers that the transcript ends with."""
        texts: list[str] = []
        for entry in reversed(self.entries):
            if entry.kind == "assistant_cut":
                texts.append(entry.message.text)
            elif entry.kind != "note":
                break
        return "".join(reversed(texts))

    def marked(self, turn_id: str, mark: Mark) -> int:
        """How many lines of a turn have a mark."""
        return sum(entry.message.mark is mark for entry in self.of_turn(turn_id))

    def messages(self) -> tuple[Message, ...]:
        """What is sent: each call is followed at once by the results of its message, in call order; valid for every
        provider. With the line about what is left out."""
        if self.start > 1 and self.entries[0].kind != "summary":
            return (Message("user", (Text(LEFT_OUT),)), *self._messages)
        return tuple(self._messages)
