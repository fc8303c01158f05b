"""The part of a transcript that goes to the model: newest turns that fit, calls never split from their results.

When the budget is exceeded the beginning moves by a large piece at once, so that the prefix of consecutive requests
stays the same for many turns (promise 7). What is left out is said to the model in one line.
"""

import re
from collections.abc import Collection, Container, Iterable, Sequence

from agent.cut import INTERRUPTED, UNSAID_NOTE
from agent.message import Entry, Message, Text, ToolCall, ToolResult
from agent.tools.stay_silent import STAY_SILENT

LEFT_OUT = "[Earlier parts of this conversation no longer fit and are not shown.]"
# What remains of the budget after a move, as a fraction.
_KEEP = 0.6
# What a call is about, as far as its arguments say it.
_PATH = re.compile(r'"path"\s*:\s*"([^"]*)"')


class Context:
    """The lines of one transcript from its present beginning on; grows by append only.

    start: seq of the first line that is shown.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = list(entries)
        self.tokens = sum(entry.tokens for entry in self.entries)

    @property
    def start(self) -> int:
        """Seq of the first line, 1 in an empty transcript."""
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
            open_calls -= _answered(entry)
        if not cut_at:
            return False
        self.tokens -= sum(entry.tokens for entry in self.entries[:cut_at])
        del self.entries[:cut_at]
        return True

    def _begins(self, index: int) -> bool:
        """Whether a piece may begin at a line; what people said to one turn, and its files, stay together."""
        entry, last = self.entries[index], self.entries[index - 1]
        if entry.kind == "user":
            return last.kind != "user" or last.turn_id != entry.turn_id
        return entry.kind in ("assistant", "assistant_cut", "summary")

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet: asked before a crash, and not begun."""
        done: set[str] = set()
        for entry in reversed(self.entries):
            if entry.kind == "assistant":
                return tuple(call for call in entry.message.tool_calls if call.call_id not in done)
            done |= _answered(entry)
        return ()

    def silenced(self, results: Sequence[ToolResult] = ()) -> bool:
        """Whether the last answer asked for silence and only results have come since. results: those not stored yet.

        A cut call counts: it might have done nothing else.
        """
        found = list(results)
        for entry in reversed(self.entries):
            if entry.kind != "tool_result":
                break
            found += entry.message.tool_results
        return any(one.name == STAY_SILENT and (not one.is_error or one.text == INTERRUPTED) for one in found)

    def unmended(self, turn_id: str, tools: Container[str], denied: Container[str]) -> ToolResult | None:
        """The newest failure of a turn with these tools that no later call made good: of that tool, on that path.

        denied: calls that people did not want.
        """
        aims: dict[str, str] = {}
        failed: dict[tuple[str, str], ToolResult] = {}
        for entry in self.entries:
            if entry.turn_id != turn_id:
                continue
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
        """Whether the turn that the transcript ends with has said anything visible. speaking: tools that do, too."""
        for entry in reversed(self.entries):
            if entry.turn_id != turn_id:
                return False
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

    def limit_cuts(self, turn_id: str) -> int:
        """How many answers of a turn the limit of output has cut: those that did not break off name their model."""
        found = (entry for entry in self.entries if entry.turn_id == turn_id)
        return sum(
            (entry.kind == "assistant_cut" and entry.message.model != "")
            or (entry.kind == "note" and entry.message.text == UNSAID_NOTE)
            for entry in found
        )

    def call_ids(self) -> set[str]:
        """Ids of all calls that are shown; providers want them unique."""
        return {call.call_id for entry in self.entries for call in entry.message.tool_calls}

    def messages(self) -> tuple[Message, ...]:
        """What is sent: valid for every provider, with the line about what is left out."""
        messages = pair(self.entries)
        if self.start > 1 and self.entries[0].kind != "summary":
            return (Message("user", (Text(LEFT_OUT),)), *messages)
        return messages


def pair(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """Transcript lines to messages in which every call is followed at once by its results, in call order.

    A call without a result gets one that says that its outcome is unknown; a result without a call is left out.
    """
    results: dict[str, ToolResult] = {}
    for entry in entries:
        for result in entry.message.tool_results:
            results.setdefault(result.call_id, result)
    messages = []
    for entry in entries:
        if entry.kind == "tool_result":
            continue
        messages.append(entry.message)
        if calls := entry.message.tool_calls:
            missing = (ToolResult(call.call_id, call.name, INTERRUPTED, is_error=True) for call in calls)
            messages.append(Message("tool", tuple(results.get(part.call_id, part) for part in missing)))
    return tuple(messages)


def _answered(entry: Entry) -> set[str]:
    return {result.call_id for result in entry.message.tool_results}
