"""What the terminal shows of a conversation: pure state, fed with events.

An answer is shown live above the prompt while it is written, and printed for good by its message_end, which alone
counts: so nothing is printed twice and nothing that was said is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agent import events
from bot import wording
from bot.persistence.approvals import SHOWN
from bot.persistence.turns import Exchange
from bot.replies.directives import Directives, for_people
from bot.speech import spoken

# Everything of C0 and C1 but tab and line feed, and the marks that change the direction of what follows.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text made safe for a terminal: it moves no cursor, changes no title and does not read backwards.

    Control characters are left out; what no encoding can carry becomes the replacement character.
    """
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


# The event of a message that shows a request, see `bot/persistence/approvals.Request`; ids that Tab offers at the most.
_ASKS = re.compile(rf"/said/ask:([0-9a-f]{{{SHOWN}}})[0-9a-f]{{24}}\b")
_MOST_ASKED = 8


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
    """Something that is printed for good. The text of SAID and UNSAID is Markdown, that of the others is plain."""

    tone: Tone
    text: str
    # What plain output prints of it: the words of the model or the service as they were written.
    said: str = field(default="", compare=False)
    # It happened before this terminal was opened.
    away: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Live:
    """What is shown above the prompt while a run is under way."""

    # Markdown.
    text: str
    thinking: str
    tools: tuple[str, ...]
    # When the run began, in milliseconds since the epoch.
    since: int


@dataclass(slots=True)
class _Answer:
    """One answer of the model as far as it is known."""

    # The turn and the step.
    name: tuple[str, int]
    text: str = ""
    thinking: str = ""
    # The part of the text that is for people.
    shown: str = ""
    directives: Directives = field(default_factory=Directives)


class View:
    """What one terminal shows. opened_at: when it was opened, in milliseconds since the epoch."""

    def __init__(self, opened_at: int) -> None:
        self._opened_at = opened_at
        self._away = False
        self._answer: _Answer | None = None
        self._ended = ""
        self._tools: dict[str, str] = {}
        self._since = 0
        self._beat = ""
        # The run that is under way in this session.
        self.running: str | None = None
        # The run that the person at this terminal has stopped by a key: nothing else says that it did.
        self.aborting: str | None = None
        # Which model answered last, and for how many tokens.
        self.status = ""
        # The shown digits of what somebody is asked, as far as this terminal was told, oldest first.
        self.asked: list[str] = []

    @property
    def live(self) -> Live | None:
        """What is under way; None when there is nothing to show."""
        answer = self._answer or _Answer(("", 0))
        if self.running is None and not answer.shown:
            return None
        thinking = "" if answer.text else answer.thinking
        return Live(answer.shown, thinking, tuple(self._tools.values()), self._since)

    def reconnected(self) -> None:
        """Forget what was under way, because updates may be missing; the next events tell it again."""
        self.running = None
        self._tools.clear()
        self._answer = None

    def last(self, exchange: Exchange) -> Sequence[Piece]:
        """The pieces of the last exchange before this terminal was opened."""
        pieces = [Piece(Tone.HEADING, "Last time"), Piece(Tone.ASKED, exchange.question)]
        return [*pieces, Piece(Tone.SAID, spoken(exchange.answer))] if exchange.answer else pieces

    def event(self, event: events.AgentEvent) -> Sequence[Piece]:
        """Take in an event of a run; returns the pieces to print."""
        run = event.run.run_id
        if isinstance(event, events.AgentStart) and event.is_beat:
            self._beat = run
        says = isinstance(event, events.MessageEnd) or (isinstance(event, events.Notice) and event.kind == events.SAID)
        if run == self._beat and not says:
            return []
        known = run in (self.running, self._ended, self._beat)
        if not (known or isinstance(event, events.AgentEnd | events.Notice)):
            self.running, self._since = run, event.at
            self._tools.clear()
        pieces = self._pieces(event)
        if not pieces or event.at >= self._opened_at:
            return pieces
        heading = [] if self._away else [Piece(Tone.HEADING, "While you were away")]
        self._away = True
        return [*heading, *(replace(piece, away=True) for piece in pieces)]

    def _pieces(self, event: events.AgentEvent) -> Sequence[Piece]:
        match event:
            case events.AgentStart(message=message) if message:
                return [Piece(Tone.ASKED, message)]
            case events.MessageStart():
                self._answer = _Answer((event.run.turn_id, event.step))
            case events.MessageUpdate():
                self._grow(event)
            case events.MessageEnd():
                return self._answer_ended(event)
            case events.ToolExecutionStart():
                self._tools[event.call_id] = f"{event.name} {wording.subject(event.arguments)}".rstrip()
            case events.ToolExecutionEnd():
                return [self._tool_ended(event)]
            case events.Notice(kind=kind, detail=detail) if kind == events.SAID:
                if asks := _ASKS.search(event.id):
                    self.asked = [*(one for one in self.asked if one != asks[1]), asks[1]][-_MOST_ASKED:]
                return [Piece(Tone.SAID, detail, detail)]
            case events.Notice(kind=verdict) if verdict in wording.DECIDED:
                return [self._decided(verdict, event.id.rpartition("/")[2][:SHOWN])]
            case events.Notice(detail=detail, kind=kind) if detail and kind != events.PARKED:  # a delivery says it
                return [Piece(Tone.ASIDE, detail)]
            case events.AgentEnd():
                return self._ended_run(event)
        return []

    def _decided(self, verdict: str, ident: str) -> Piece:
        self.asked = [one for one in self.asked if one != ident]
        if verdict != "expired":
            return Piece(Tone.ASIDE, f"{wording.DECIDED[verdict]}.")
        text = f"{wording.DECIDED[verdict]}. `/approve {ident} again` asks again."
        return Piece(Tone.ASIDE, text, text)

    def _grow(self, event: events.MessageUpdate) -> None:
        """Show more of the answer; one whose beginning was not seen, and what is behind a gap, comes at its end."""
        answer = self._answer
        if answer is None or answer.name != (event.run.turn_id, event.step):
            return
        if event.part == "text" and event.offset == len(answer.text):
            answer.text += event.delta
            answer.shown += answer.directives.feed(event.delta)
        elif event.part == "thinking":
            answer.thinking += event.delta

    def _answer_ended(self, event: events.MessageEnd) -> Sequence[Piece]:
        pieces = []
        if (words := for_people(event.text)).strip():
            pieces.append(Piece(Tone.SAID, spoken(words), event.text))
        if event.cut and self._answer:  # the model goes on behind what counts
            self._answer.text = self._answer.text[len(event.text) :]
            pieces += self.leave()
        self._answer = None
        return pieces

    def _tool_ended(self, event: events.ToolExecutionEnd) -> Piece:
        summary = self._tools.pop(event.call_id, event.name)
        if event.state == "done":
            return Piece(Tone.TOOL, summary)
        reason = "outcome unknown" if event.state == "cut" else (wording.one_line(event.text) or event.state)
        return Piece(Tone.FAILED_TOOL, f"{summary}: {reason}")

    def _ended_run(self, event: events.AgentEnd) -> Sequence[Piece]:
        if event.is_last:
            self._ended = event.run.run_id
        if self.running != event.run.run_id:
            return []  # a command, or a message that was dropped before its turn
        self.running = None
        self._tools.clear()
        if event.usage.output:
            self.status = f"{event.model} · {wording.used(event.usage, event.money)}"
        pieces = self.leave()
        if event.outcome is events.Outcome.ABORTED and self.aborting == event.run.run_id:
            pieces.append(Piece(Tone.ASIDE, "Stopped."))
        return pieces

    def leave(self) -> list[Piece]:
        """End the answer that is under way; its text stays on the screen as UNSAID."""
        rest = self._answer.text.strip() if self._answer else ""
        self._answer = None
        return [Piece(Tone.UNSAID, spoken(rest))] if rest else []
