"""The JSON bodies of the gateway as types, for the routes that write them and the terminal's client that reads them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.message import Usage
from bot import wording
from bot.clock import moment
from bot.persistence.approvals import Approval
from bot.persistence.deliveries import LostDelivery
from bot.persistence.turns import Exchange
from bot.persistence.usage import Used


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """The approval or question that a run waits for."""

    id: str
    # The full text of what is asked.
    subject: str
    # The answers that a question offers; empty for an approval.
    options: tuple[str, ...]
    # ISO 8601 in UTC.
    expires_at: str


def waiting(approval: Approval) -> WaitingView:
    """The view of an approval for whoever began the run that waits for it."""
    ask, until = approval.ask, moment(approval.expires_at)
    return WaitingView(id=approval.approval_id, subject=ask.subject, options=ask.options, expires_at=until)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run, as `GET /v1/agent/{run_id}` shows it. Moments are ISO 8601 in UTC."""

    run_id: str
    session: str
    status: str
    accepted_at: str
    started_at: str | None
    ended_at: str | None
    text: str
    media: tuple[str, ...]
    usage: Usage
    # `kind`, `message`, and for owners `detail`, the cause as it was found; None when the run has not failed.
    error: dict[str, str] | None
    # What a person has to decide or to answer before the run goes on.
    waiting_for: WaitingView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleView:
    """Where a terminal begins, as `GET /v1/console` tells it."""

    # The position of the last event that was shown.
    position: int
    # The last exchange as far as it has been shown, None when there is none.
    last: Exchange | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """The health of a channel."""

    state: str
    # ISO 8601 in UTC.
    since: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessView:
    """Whether the service works and every enabled channel receives, as `GET /readyz` shows it."""

    ready: bool
    channels: dict[str, ChannelView]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """What the service is doing at this moment, as `GET /v1/status` shows it."""

    model: str
    # Why this model was chosen.
    model_reason: str
    # Which sandbox commands run in, and why that one.
    sandbox: str
    # What is frozen, since when and by whom; empty if nothing is.
    frozen: str
    # A sentence for each model that does not work at present.
    models_down: tuple[str, ...]
    running: int
    waiting: int
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int
    expired_deliveries: int
    # Deliveries that did not arrive, the newest first.
    lost: tuple[LostDelivery, ...]
    # When and why a run failed last; empty when none did.
    last_failure: str

    def rows(self, at: Callable[[int], str]) -> Iterator[tuple[str, str]]:
        """Yield names and texts for people. at: writes a moment, in milliseconds since the epoch, as people read it."""
        if self.frozen:
            yield "frozen", self.frozen
        yield from (("outage", text) for text in self.models_down)
        yield "sandbox", self.sandbox
        yield "runs", f"{self.running} running, {self.waiting} waiting"
        lost = f"{self.failed_deliveries} refused, {self.uncertain_deliveries} uncertain"
        lost += f", {self.expired_deliveries} late" if self.expired_deliveries else ""
        yield "deliveries", f"{self.undelivered} open, {lost}"
        yield from (("lost", wording.lost(found, at(found.at))) for found in self.lost)
        if self.last_failure:
            yield "failure", self.last_failure


# Rows of a table for people; `hark usage --json` has all.
_MOST_ROWS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageView:
    """What model calls have used, as `GET /v1/usage` shows it. A day begins at midnight of the machine's clock."""

    today_by_model: Sequence[Used]
    today_by_session: Sequence[Used]
    # Of today and the six days before it.
    week_by_model: Sequence[Used]
    week_by_session: Sequence[Used]

    def text(self, *, one_session: bool = False) -> str:
        """Return tables for people. one_session: all of it is of the session in which it is shown."""
        tables = [("Today", "model", self.today_by_model), ("Seven days", "model", self.week_by_model)]
        if not one_session:
            tables += [("Today", "session", self.today_by_session), ("Seven days", "session", self.week_by_session)]
        return "\n\n".join("\n".join(_table(*one)) for one in tables if one[2]) or wording.NOTHING_USED


def _table(title: str, of: str, found: Sequence[Used]) -> Iterator[str]:
    """Yield the lines of a table of Markdown."""
    yield f"| {title}, by {of} | calls | fresh | cached | written | output | cost |"
    yield "| --- | --: | --: | --: | --: | --: | --: |"
    for one in found[:_MOST_ROWS]:
        tokens = one.usage
        fresh = tokens.input - tokens.cache_read - tokens.cache_write
        counts = (one.calls, fresh, tokens.cache_read, tokens.cache_write, tokens.output)
        cost = wording.dollars(one.money) if one.money else ""
        yield f"| {one.name or 'probes of models'} | {' | '.join(f'{count:,}' for count in counts)} | {cost} |"
