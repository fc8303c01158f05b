"""What people and programs are shown of the heartbeat and of jobs: in chats, on the command line, as JSON over HTTP."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.message import Usage
from bot.persistence.schedules import Firing
from heartbeat.gate import Cause
from heartbeat.schedule import Every, describe

_CAUSES: dict[Cause, str] = {"due": "", "late": "late", "wake": "for an event", "now": "by hand"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptView:
    """What became of a due time, of a beat or a job; with `until` of a stretch of them. Moments in milliseconds.

    outcome: said, quiet, failed, stopped, running or skipped. reason: why it was skipped or has failed. cost: US
    dollars, None where no price is known.
    """

    due_at: int
    until: int
    cause: Cause
    outcome: str
    reason: str
    tokens: int
    cost: float | None

    def words(self, at: Callable[[int], str]) -> str:
        """On one line. at: writes a moment (milliseconds)."""
        when = at(self.due_at) + (f" to {at(self.until)}" if self.until > self.due_at else "")
        became = self.outcome + (f" ({self.reason})" if self.reason else "")
        ran = self.outcome != "skipped"
        tokens = f"{self.tokens:,} tokens" if self.tokens else ""
        cost = f"${self.cost:.4f}" if self.cost else ""
        return f"{when}: {', '.join(filter(None, (became, _CAUSES[self.cause] if ran else '', tokens, cost)))}"


def receipt(firing: Firing, cost: Callable[[Usage], float | None] = lambda usage: None) -> ReceiptView:
    """A due time as it is shown. cost: of tokens, in US dollars."""
    return ReceiptView(
        due_at=firing.due_at,
        until=firing.until,
        cause=firing.cause,
        outcome=(firing.outcome or "running") if firing.turn_id else "skipped",
        reason=firing.reason,
        tokens=firing.usage.input + firing.usage.output,
        cost=cost(firing.usage) if firing.turn_id else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatView:
    """The heartbeat, `GET /v1/heartbeat`. every: seconds, 0: never. session: empty while there is none.

    next_at: milliseconds. skip: why a beat of this moment would not ask the model, empty: it would. spent, budget: of
    today, in `unit` (tokens or USD). beats: the newest first.
    """

    on: bool
    every: float
    session: str
    next_at: int | None
    skip: str
    spent: float
    budget: float
    unit: str
    beats: tuple[ReceiptView, ...]

    def rows(self, at: Callable[[int], str]) -> Iterator[tuple[str, str]]:
        """What people are told of it, behind what it is about. at: writes a moment (milliseconds)."""
        every = describe(Every(round(self.every * 1000), 0)) if self.every else "heartbeat.every is 0"
        yield "heartbeat", f"{'on' if self.on else 'off'}, {every}"
        yield "session", self.session or "none yet: no owner has written directly"
        if self.next_at is not None:
            yield "next", at(self.next_at)
        yield "now", self.skip or "A beat would ask the model."
        spent = f"{self.spent:,.0f} of {self.budget:,.0f} tokens" if self.unit == "tokens" else ""
        yield "today", spent or f"${self.spent:,.2f} of ${self.budget:,.2f}"
        yield from (("beat", one.words(at)) for one in self.beats)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatView:
    """A beat that was asked for, `POST /v1/heartbeat/run`. begun: it runs now. session: where it runs.

    reason, words: why it does not; a word for programs and a sentence, empty where nothing keeps it. prompt: what the
    model is asked.
    """

    session: str
    begun: bool
    reason: str
    words: str
    prompt: str
