"""What the terminal shows of a conversation: pure state, fed with events.

An answer is printed for good block by block while it is written, cut as the service cuts it, and counts as far as its
message_end says. Above the prompt the part that is not yet a block is shown live, so nothing is printed twice and
nothing that was said is missing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agent.events import (
    SAID,
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    Outcome,
    ToolExecutionEnd,
    ToolExecutionStart,
    UpdateEvent,
)
from bot.persistence.values import Exchange
from channels.console.settings import CUTTING
from channels.outgoing import ReplyBlock
from channels.settings import Streaming
from channels.stream.chunker import Chunker

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
    """Something that is printed for good. SAID and UNSAID are Markdown, the others are plain.

    said: the model's own words of it, or of the service; of: the answer that they belong to. away: it came while nobody
    was here.
    """

    tone: Tone
    text: str
    said: str = field(default="", compare=False)
    of: str = field(default="", compare=False)
    away: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Live:
    """What is shown above the prompt for the moment. text: Markdown; since: when the run began, milliseconds."""

    text: str
    thinking: str
    tools: tuple[str, ...]
    since: int


class _Answer:
    """One answer of the model as far as it is known. name: turn and step; printed: how much of it stands for good.

    after: the words of a cut answer that it continues. seen: so much of it an earlier terminal has printed.
    """

    def __init__(self, name: tuple[str, int], cutting: Streaming, after: str, seen: int = 0) -> None:
        self.name = name
        self.text = ""
        self.thinking = ""
        self.printed = seen
        self._cutting = cutting
        self._after = after
        self._torn = False
        self._begin()

    @property
    def rest(self) -> str:
        """What is not printed, empty when that is nothing visible: the end of a fence needs no block."""
        rest = self.text[self.printed :]
        return rest if rest.strip(_INVISIBLE) else ""

    def grow(self, delta: str, offset: int) -> list[Piece]:
        """The model wrote more; returns the blocks that this completes. What comes behind a gap waits for the end."""
        if self._torn or offset != len(self.text):
            self._torn = True
            return []
        self.text = self._fed = self.text + delta
        return self._pieces(self._chunker.feed(delta))

    def end(self, text: str) -> list[Piece]:
        """What the answer was is known; returns what of it was not printed."""
        if not text.startswith(self._fed):
            self._begin()
        return self._pieces([*self._chunker.feed(text[len(self._fed) :]), *self._chunker.end()])

    def tear(self) -> None:
        """Some of it may be missing: what was live is not shown any more."""
        self.text, self._torn = self.text[: self.printed], True
        self._begin()

    def _begin(self) -> None:
        self._chunker = Chunker(self._cutting.min_chars, self._cutting.max_chars, self._after)
        self._cut = 0
        self._fed = ""

    def _pieces(self, blocks: Sequence[ReplyBlock]) -> list[Piece]:
        pieces = []
        for block in blocks:
            self._cut += len(block.said)
            if self._cut > self.printed:
                self.printed = self._cut
                pieces.append(Piece(Tone.SAID, block.text, block.said, "/".join(map(str, self.name))))
        return pieces


class View:
    """opened_at: when this terminal opened (milliseconds); what happened earlier came while nobody was here.

    cutting: how the service cuts answers that are shown here.
    """

    def __init__(self, opened_at: int, cutting: Streaming = CUTTING) -> None:
        self._opened_at = opened_at
        self._cutting = cutting
        self._away = False
        self._answer: _Answer | None = None
        self._seen = 0
        self._continues = ("", "")
        self._ended = ""
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

    @property
    def printed(self) -> int:
        """Characters of the answer under way that stand for good."""
        return self._answer.printed if self._answer else self._seen

    def printed_before(self, characters: int) -> None:
        """So much of the answer that is under way now an earlier terminal has printed."""
        self._seen = characters

    def reconnected(self) -> None:
        """Updates may be missing: what was going on is known again with the next event."""
        self.running = None
        self._tools.clear()
        if self._answer:
            self._answer.tear()

    def last(self, exchange: Exchange) -> Sequence[Piece]:
        """The last that was said before this terminal opened."""
        pieces = [Piece(Tone.HEADING, "Last time"), Piece(Tone.ASKED, exchange.question)]
        return [*pieces, Piece(Tone.SAID, exchange.answer)] if exchange.answer else pieces

    def leave(self) -> Sequence[Piece]:
        """The terminal closes: what is shown live stays."""
        return self._drop()

    def event(self, event: AgentEvent) -> Sequence[Piece]:
        """Something happened in a run."""
        run = event.run.run_id
        if run not in (self.running, self._ended) and not isinstance(event, AgentEnd | Notice):
            self.running, self._since = run, event.at
            self._tools.clear()
        pieces = self._pieces(event)
        if not pieces or event.at >= self._opened_at or isinstance(event, UpdateEvent):
            return pieces
        heading = [] if self._away else [Piece(Tone.HEADING, "While you were away")]
        self._away = True
        return [*heading, *(replace(piece, away=True) for piece in pieces)]

    def _pieces(self, event: AgentEvent) -> Sequence[Piece]:
        match event:
            case AgentStart(message=message) if message:
                return [Piece(Tone.ASKED, message)]
            case MessageStart():
                self._answer = self._made(event)
                self._seen = 0
            case MessageUpdate():
                return self._grow(event)
            case MessageEnd():
                return self._answer_ended(event)
            case ToolExecutionStart():
                self._tools[event.call_id] = _summary(event.name, event.arguments)
            case ToolExecutionEnd():
                return [self._tool_ended(event)]
            case Notice(kind=kind, detail=detail) if kind == SAID:
                return [Piece(Tone.SAID, detail, detail, event.id)]
            case Notice(detail=detail) if detail:
                return [Piece(Tone.ASIDE, detail)]
            case AgentEnd():
                return self._ended_run(event)
            case _:
                pass
        return []

    def _made(self, event: MessageStart | MessageEnd, seen: int = 0) -> _Answer:
        return _Answer((event.run.turn_id, event.step), self._cutting, self._cut_before(event), seen)

    def _cut_before(self, event: MessageStart | MessageEnd) -> str:
        """The words of the cut answer that this one continues."""
        turn, words = self._continues
        return words if turn == event.run.turn_id else ""

    def _grow(self, event: MessageUpdate) -> Sequence[Piece]:
        answer = self._answer
        if answer is None or answer.name != (event.run.turn_id, event.step):
            return ()  # its beginning was not seen: it comes whole, at its end
        if event.part == "text":
            return answer.grow(event.delta, event.offset)
        if event.part == "thinking":
            answer.thinking += event.delta
        return ()

    def _answer_ended(self, event: MessageEnd) -> Sequence[Piece]:
        answer = self._answer
        if answer is None or answer.name != (event.run.turn_id, event.step):
            answer = self._made(event, self._seen)
        pieces = answer.end(event.text)
        rest = answer.text[max(answer.printed, len(event.text)) :]  # void; the model goes on behind what was planned
        if event.cut and rest.strip(_INVISIBLE):
            pieces.append(Piece(Tone.UNSAID, rest.strip()))
        before = self._cut_before(event)
        self._continues = (event.run.turn_id, before + event.text) if event.cut else ("", "")
        self._answer, self._seen = None, 0
        return pieces

    def _tool_ended(self, event: ToolExecutionEnd) -> Piece:
        summary = self._tools.pop(event.call_id, event.name)
        if event.state == "done":
            return Piece(Tone.TOOL, summary)
        reason = "outcome unknown" if event.state == "cut" else (_one_line(event.text) or event.state)
        return Piece(Tone.FAILED_TOOL, f"{summary}: {reason}")

    def _ended_run(self, event: AgentEnd) -> Sequence[Piece]:
        if event.is_last:
            self._ended = event.run.run_id
        if self.running != event.run.run_id:
            return []  # a command, or a message that was dropped before its turn
        self.running = None
        self._tools.clear()
        if event.usage.output:
            self.status = f"{event.model} · {event.usage.input:,} tokens in, {event.usage.output:,} out"
        pieces = self._drop()
        self._answer, self._seen = None, 0
        if event.outcome is Outcome.ABORTED and self.aborting == event.run.run_id:
            pieces.append(Piece(Tone.ASIDE, "Stopped."))
        return pieces

    def _drop(self) -> list[Piece]:
        """What is live stays on the screen, but counts as not said."""
        rest = self._answer.rest if self._answer else ""
        if self._answer:
            self._answer.tear()
        return [Piece(Tone.UNSAID, rest.strip())] if rest else []


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
