"""The part of a transcript that is sent to the model: a summary of the older part, and the newest turns word for word.

`agent/compaction` decides what that is. When the beginning moves or old results are shortened, a large piece changes at
once, so that the prefix of consecutive requests stays the same for many turns (promise 7). Where turns were dropped
without a summary, one line tells the model so.
"""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace

from agent.message import Entry, Image, Mark, Message, Text, ToolCall, ToolResult, estimate
from agent.tools.conversation import STAY_SILENT

LEFT_OUT = "[Earlier parts of this conversation no longer fit and are not shown.]"
# Notes and results of the cut-answer rule, after a crash, a broken stream, a drain or the limit of output.
CUT_NOTE = "Your reply was cut off. The text above has been delivered. Go on from there; repeat nothing."
UNSAID_NOTE = (
    "Your reply reached the limit of output before it said anything, and no call in it was executed. "
    "Think less, say it more briefly, or do it in smaller steps."
)
INTERRUPTED = "Interrupted: the outcome of this call is unknown. It was not repeated."
NOT_EXECUTED = "Not executed: the run was stopped before this call."

# How much of the budget is used after the beginning has moved, as a fraction.
_KEEP = 0.6
# A result that is pruned keeps this many characters of its beginning and of its end.
PRUNED_CHARACTERS = 1000
# The file that a call is about, if its arguments name one.
_PATH = re.compile(r'"path"\s*:\s*"([^"]*)"')


class Context:
    """The lines of one transcript from a movable beginning on; lines are only ever appended.

    The messages of a request and the lines of each turn are updated as lines are added, so that the cost of a step
    depends on what is new in it and not on the length of the transcript.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        # Ids of all calls that were ever in the transcript, because providers want them unique.
        self.call_ids: set[str] = set()
        # What stands for the lines before the first one, if anything does; it was written after them.
        self.summary: Entry | None = None
        # What is remembered about the newest message: the last of what is sent, without being a line.
        self.recalled: Entry | None = None
        # A summary that failed is not tried again before the next request has so many tokens.
        self.no_summary_below = 0
        self._begin()
        self.append(entries)

    def _begin(self) -> None:
        self.entries: list[Entry] = []
        # The estimated tokens of all that is sent.
        self.tokens = sum(one.tokens for one in (self.summary, self.recalled) if one)
        # The seq of the first line whose results are sent whole.
        self.pruned_below = 1
        self.has_images = False  # whether a message of a person or a result holds an image
        self._turns: dict[str | None, list[Entry]] = {}
        self._messages: list[Message] = []
        self._results: dict[str, ToolResult] = {}
        self._beside: dict[str, int] = {}  # for each call id the index of the message that holds its result

    @property
    def start(self) -> int:
        """Seq of the first line, or of the first hidden one directly before it; 1 in an empty transcript."""
        return self.entries[0].since or self.entries[0].seq if self.entries else 1

    @property
    def end(self) -> int:
        """Seq of the last line, 0 in an empty transcript."""
        return max(self.entries[-1].seq if self.entries else 0, self.summary.seq if self.summary else 0)

    def append(self, entries: Iterable[Entry]) -> None:
        """Add lines that were persisted."""
        for entry in entries:
            if entry.kind == "summary":
                self.summary = entry
                self.tokens += entry.tokens
                continue
            self.entries.append(entry)
            self._turns.setdefault(entry.turn_id, []).append(entry)
            if entry.kind == "tool_result":
                shown = pruned(entry.message) if entry.pruned else entry.message
                self.tokens += estimate(shown) if entry.pruned else entry.tokens
                self.pruned_below = entry.seq + 1 if entry.pruned else self.pruned_below
                for result in shown.tool_results:
                    self._answer(result)
            else:
                self.tokens += entry.tokens
                self._add(entry.message)

    def _add(self, message: Message) -> None:
        """Add a message, followed by the results of its calls; a result that is missing says that it is unknown."""
        self._messages.append(message)
        if message.role == "user":
            self.has_images = self.has_images or any([isinstance(part, Image) for part in message.parts])
        if calls := message.tool_calls:
            self.call_ids |= {call.call_id for call in calls}
            self._beside |= dict.fromkeys([call.call_id for call in calls], len(self._messages))
            missing = [ToolResult(call.call_id, call.name, INTERRUPTED, is_error=True, mark=Mark.CUT) for call in calls]
            self._messages.append(Message("tool", tuple([self._results.get(one.call_id, one) for one in missing])))

    def _answer(self, result: ToolResult) -> None:
        """Put a result beside its call. Only the first result of a call counts, and none without a call."""
        self.has_images = self.has_images or bool(result.images)
        if self._results.setdefault(result.call_id, result) is result and result.call_id in self._beside:
            at = self._beside[result.call_id]
            parts = [result if part.call_id == result.call_id else part for part in self._messages[at].tool_results]
            self._messages[at] = replace(self._messages[at], parts=tuple(parts))

    def recall(self, block: Message | None) -> None:
        """Send a block behind all lines from now on, in the place of the one before; None: none is sent.

        Behind whatever the turn adds, so that each request begins with the lines of the one before.
        """
        self.tokens -= self.recalled.tokens if self.recalled else 0
        # it is nobody's word, whatever role it is sent in
        self.recalled = Entry(seq=0, kind="note", message=block, tokens=estimate(block)) if block else None
        self.tokens += self.recalled.tokens if self.recalled else 0

    def newest_first(self) -> Iterator[Entry]:
        """Yield what is recalled, then the lines from the last one on, and at the end the summary."""
        if self.recalled is not None:
            yield self.recalled
        yield from reversed(self.entries)
        if self.summary is not None:
            yield self.summary

    def of_turn(self, turn_id: str) -> Sequence[Entry]:
        """The lines of one turn."""
        return self._turns.get(turn_id, ())

    def cuts(self) -> Sequence[int]:
        """Return the indexes of the lines, but the first, at which the context could begin.

        No call before such a line lacks its result, and what people wrote to one turn stays together.
        """
        found: list[int] = []
        open_calls: set[str] = set()
        for index, entry in enumerate(self.entries):
            if index and not open_calls and self._begins(index):
                found.append(index)
            open_calls |= {call.call_id for call in entry.message.tool_calls}
            open_calls -= {result.call_id for result in entry.message.tool_results}
        return found

    def fit(self, budget: int) -> bool:
        """Drop the oldest lines so that the rest fits into `budget` estimated tokens; returns whether any was dropped.

        The newest piece that begins at one of the `cuts` stays even if it exceeds the budget alone; the provider then
        refuses the request.
        """
        if self.tokens <= budget:
            return False
        keep, rest, cut_at = int(budget * _KEEP), self.tokens, 0
        for index in self.cuts():
            rest -= sum(shown_tokens(entry) for entry in self.entries[cut_at:index])
            cut_at = index
            if rest <= keep:
                break
        if not cut_at:
            return False
        self._show(self.entries[cut_at:])
        return True

    def prune(self, until: int) -> bool:
        """Shorten the long results of the lines before a seq; returns whether that made the context smaller."""
        before = self.tokens
        self._show([replace(one, pruned=one.pruned or one.seq < until) for one in self.entries])
        return self.tokens < before

    def begin_at(self, start: int, summary: Entry) -> None:
        """Show a summary in place of the lines before a seq."""
        self.summary = summary
        self._show([entry for entry in self.entries if entry.seq >= start])

    def _show(self, entries: Sequence[Entry]) -> None:
        self._begin()
        self.append(entries)

    def _begins(self, index: int) -> bool:
        """Whether the transcript may begin at a line. The words of people to one turn, and its files, stay together."""
        entry, last = self.entries[index], self.entries[index - 1]
        if entry.kind == "user":
            return last.kind != "user" or last.turn_id != entry.turn_id
        return entry.kind in ("assistant", "assistant_cut")

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the last answer that have no result; after a crash these were asked but not started."""
        last = next((entry.message for entry in reversed(self.entries) if entry.kind == "assistant"), None)
        return tuple(call for call in last.tool_calls if call.call_id not in self._results) if last else ()

    def silenced(self, results: Sequence[ToolResult] = ()) -> bool:
        """Whether the last answer called `stay_silent` and nothing but results came after it.

        results: those that are not in the transcript yet. A cut call counts, because it has no other effect.
        """
        found = list(results)
        for entry in reversed(self.entries):
            if entry.kind != "tool_result":
                break
            found += entry.message.tool_results
        return any(one.name == STAY_SILENT and (not one.is_error or one.mark is Mark.CUT) for one in found)

    def unmended(self, turn_id: str, tools: Container[str], denied: Container[str]) -> ToolResult | None:
        """Return the newest failed result of a turn that no later call of the same tool with the same path made good.

        tools: names of the tools whose failures count. denied: ids of calls that people did not allow.
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

    def acts(self, turn_id: str) -> tuple[ToolCall, ...]:
        """Return the calls of a turn that succeeded, oldest first.

        Where the turn was answered already and went on because a person wrote again, only the calls after that count.
        """
        found: dict[str, ToolCall] = {}
        done: list[ToolCall] = []
        answered = False
        for entry in self.of_turn(turn_id):
            message = entry.message
            if entry.kind == "assistant":
                answered = not message.tool_calls
                found |= {call.call_id: call for call in message.tool_calls}
            elif entry.kind == "user" and answered:
                done.clear()
            done += [found[one.call_id] for one in message.tool_results if not one.is_error and one.call_id in found]
        return tuple(done)

    def succeeded(self, turn_id: str | None = None) -> set[str]:
        """Return the names of the tools that had a successful call in a turn; None: in any turn that is shown."""
        entries = self.entries if turn_id is None else self.of_turn(turn_id)
        return {result.name for entry in entries for result in entry.message.tool_results if not result.is_error}

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the transcript was left out."""
        return self.start == 1 and self.summary is None

    def said(self, turn_id: str, speaking: Collection[str]) -> bool:
        """Whether a turn has shown people anything. speaking: names of tools that send messages."""
        for entry in reversed(self.of_turn(turn_id)):
            if entry.message.role == "assistant" and entry.message.text.strip():
                return True
            if any(result.name in speaking and not result.is_error for result in entry.message.tool_results):
                return True
        return False

    def cut_text(self) -> str:
        """Return the text that the next answer continues: that of the cut answers at the end of the transcript."""
        texts: list[str] = []
        for entry in reversed(self.entries):
            if entry.kind == "assistant_cut":
                texts.append(entry.message.text)
            elif entry.kind != "note":
                break
        return "".join(reversed(texts))

    def marked(self, turn_id: str, mark: Mark) -> int:
        """Count the lines of a turn that have a mark."""
        return sum(entry.message.mark is mark for entry in self.of_turn(turn_id))

    def messages(self, *, recalled: bool = False) -> tuple[Message, ...]:
        """Return the messages of a request, valid for every provider: results follow their calls, in call order.

        The first message is the summary, if there is one, and says whether anything else was left out.
        recalled: whether what is recalled is to be the last one, as in the requests of the turn that runs.
        """
        if self.summary is None:
            first = () if self.start == 1 else (Message("user", (Text(LEFT_OUT),)),)
        else:
            gap = f"\n\n{LEFT_OUT}" if self.start > self.summary.covers else ""
            first = (Message("user", (Text(self.summary.message.text.strip() + gap),)),)
        last = (self.recalled.message,) if recalled and self.recalled else ()
        return (*first, *self._messages, *last)


def shown_tokens(entry: Entry) -> int:
    """Return the estimated tokens of a line as it is sent."""
    return estimate(pruned(entry.message)) if entry.pruned else entry.tokens


def pruned(message: Message) -> Message:
    """Return a message with long results of calls shortened to their beginning and end, and without their images."""
    return replace(message, parts=tuple(map(_pruned, message.tool_results))) if message.tool_results else message


def _pruned(result: ToolResult) -> ToolResult:
    text, left_out = result.text, len(result.text) - 2 * PRUNED_CHARACTERS
    if left_out > PRUNED_CHARACTERS:
        cut = f"\n[… {left_out:,} characters of this old result are not shown …]\n"
        text = f"{text[:PRUNED_CHARACTERS]}{cut}{text[-PRUNED_CHARACTERS:]}"
    return replace(result, text=text, images=())
