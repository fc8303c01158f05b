"""What the terminal shows of a conversation: pure state, fed with events and blocks.

Blocks are what counts: each is shown once, for good, in the order of delivery. Above the prompt the part of the answer
that is not yet a block is shown live, so nothing is printed twice and nothing that was said is missing.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.events import (
    AgentEnd,
    AgentEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    Outcome,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from channels.console.adapter import ConsoleBlock, ConsoleQuestion

_SOURCE = re.compile(r"turn:(?P<turn>[^:]+):s(?P<step>\d+):b")
_LONGEST = 72
"""Characters of a tool's arguments or of its error on its one line."""
_INVISIBLE = " \t\r\n`~"
"""What is nothing to see when an answer ends with it: the end of a fence among them."""


class Tone(StrEnum):
    """How a piece looks."""

    ASKED = "asked"
    SAID = "said"
    HEADING = "heading"
    TOOL = "tool"
    FAILED_TOOL = "failed tool"
    ASIDE = "aside"
    UNSAID = "unsaid"


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that is printed for good. SAID and UNSAID are Markdown, the others are plain."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True)
class Live:
    """What is shown above the prompt for the moment. text: Markdown; since: when the run began, milliseconds."""

    text: str
    thinking: str
    tools: tuple[str, ...]
    since: int


@dataclass(slots=True)
class _Answer:
    """One answer of the model as far as it is known. name: turn and step; taken: how much of it blocks have shown."""

    name: tuple[str, int]
    taken: int
    text: str = ""
    thinking: str = ""
    closed: bool = False

    @property
    def rest(self) -> str:
        """What no block has shown, empty when that is nothing visible: the end of a fence needs no block."""
        rest = self.text[self.taken :]
        return rest if rest.strip(_INVISIBLE) else ""


class View:
    """attached_at: when this terminal opened (milliseconds); what was planned earlier came while nobody was here."""

    def __init__(self, attached_at: int) -> None:
        self._attached_at = attached_at
        self._away = False
        self._answer: _Answer | None = None
        self._early: dict[tuple[str, int], int] = {}  # of answers whose beginning comes later than their blocks
        self._tools: dict[str, str] = {}
        self._since = 0
        self.running: str | None = None
        """The run that is under way in this session."""
        self.aborting: str | None = None
        """The run that the person at this terminal has stopped by a key: nothing else says that it did."""
        self.status = ""
        """Which model answered last, and for how many tokens."""

    @property
    def live(self) -> Live | None:
        """What is going on; None when there is nothing to show."""
        answer = self._answer
        text = answer.rest if answer else ""
        if self.running is None and not text:
            return None
        thinking = answer.thinking if answer and not answer.text else ""
        return Live(text, thinking, tuple(self._tools.values()), self._since)

    def reconnected(self) -> None:
        """Events may be missing: what was going on is known again with the next one."""
        self.running, self._answer = None, None
        self._tools.clear()

    def block(self, block: ConsoleBlock) -> Sequence[Piece]:
        """A block was delivered."""
        pieces = []
        if block.planned_at < self._attached_at and not self._away:
            self._away = True
            pieces.append(Piece(Tone.HEADING, "While you were away"))
        if not self._shown_already(block):
            pieces.append(Piece(Tone.SAID, block.text))
        return pieces

    def question(self, question: ConsoleQuestion) -> Sequence[Piece]:
        """Something was said at another terminal, or is the last that was said before this one opened."""
        asked = Piece(Tone.ASKED, question.text)
        if question.answer is None:
            return [asked]
        pieces = [Piece(Tone.HEADING, "Last time"), asked]
        return [*pieces, Piece(Tone.SAID, question.answer)] if question.answer else pieces

    def leave(self) -> Sequence[Piece]:
        """The terminal closes: what is shown live stays."""
        return self._keep(0)

    def event(self, event: AgentEvent) -> Sequence[Piece]:
        """Something happened in a run."""
        if self.running != event.run.run_id and not isinstance(event, AgentEnd):
            self.running, self._since = event.run.run_id, event.at
            self._tools.clear()
        match event:
            case MessageStart():
                name = (event.run.turn_id, event.step)
                self._answer = _Answer(name, self._early.get(name, 0))
                self._early.clear()
            case MessageUpdate():
                self._grow(event)
            case MessageEnd(cut=True):
                return self._keep(len(event.text))  # the rest is void, and the model goes on behind what was planned
            case ToolExecutionStart():
                self._tools[event.call_id] = _summary(event.name, event.arguments)
            case ToolExecutionUpdate():
                pass
            case ToolExecutionEnd():
                return [self._tool_ended(event)]
            case Notice(detail=detail) if detail:
                return [Piece(Tone.ASIDE, detail)]
            case AgentEnd():
                return self._ended(event)
            case _:
                pass
        return []

    def _grow(self, event: MessageUpdate) -> None:
        answer = self._answer
        if answer is None or answer.name != (event.run.turn_id, event.step):
            return  # its beginning was not seen: its blocks will come
        if event.part == "text":
            answer.text += event.delta
        elif event.part == "thinking":
            answer.thinking += event.delta

    def _shown_already(self, block: ConsoleBlock) -> bool:
        """Count a block against the live answer. True when a stopped answer was printed with this part of it."""
        source, answer = _SOURCE.match(block.source), self._answer
        if source is None:
            return False
        name = (source["turn"], int(source["step"]))
        if answer is None or answer.name != name:
            self._early[name] = self._early.get(name, 0) + len(block.said)
            return False
        answer.taken += len(block.said)
        return answer.closed

    def _tool_ended(self, event: ToolExecutionEnd) -> Piece:
        summary = self._tools.pop(event.call_id, event.name)
        if event.state == "done":
            return Piece(Tone.TOOL, summary)
        reason = "outcome unknown" if event.state == "cut" else (_one_line(event.text) or event.state)
        return Piece(Tone.FAILED_TOOL, f"{summary}: {reason}")

    def _ended(self, event: AgentEnd) -> Sequence[Piece]:
        if self.running != event.run.run_id:
            return []  # a command, or a message that was dropped before its turn
        self.running = None
        self._tools.clear()
        if event.usage.output:
            self.status = f"{event.model} · {event.usage.input:,} tokens in, {event.usage.output:,} out"
        if event.outcome is not Outcome.ABORTED:
            return []
        pieces = []
        if self._answer is not None and self._answer.name[0] == event.run.turn_id:
            pieces, self._answer.closed = self._keep(0), True
        return [*pieces, Piece(Tone.ASIDE, "Stopped.")] if self.aborting == event.run.run_id else pieces

    def _keep(self, planned: int) -> list[Piece]:
        """What is live stays on the screen, but counts as not said. planned: so much of the answer is still said."""
        answer = self._answer
        if answer is None:
            return []
        end = max(answer.taken, planned)
        answer.text, rest = answer.text[:end], answer.text[end:]
        return [Piece(Tone.UNSAID, rest.strip())] if rest.strip(_INVISIBLE) else []


def _summary(name: str, arguments: str) -> str:
    """A call on one line: the tool and its path, or else the first text among its arguments."""
    try:
        values = dict(json.loads(arguments))
    except (ValueError, TypeError):
        return name
    first = next((value for value in (values.get("path"), *values.values()) if isinstance(value, str)), "")
    return f"{name} {_one_line(first)}".rstrip()


def _one_line(text: str) -> str:
    first = " ".join(text.split("\n", 1)[0].split())
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"
