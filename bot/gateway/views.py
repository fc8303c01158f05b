"""The JSON bodies of the gateway as types, for the routes that write them and the terminal's client that reads them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.message import Usage
from bot import wording
from bot.clock import moment
from bot.persistence.approvals import Approval
from bot.persistence.deliveries import LostDelivery
from bot.persistence.turns import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """What a run waits for. subject: all of it. options: of a question. expires_at: ISO 8601 in UTC."""

    id: str
    subject: str
    options: tuple[str, ...]
    expires_at: str


def waiting(approval: Approval) -> WaitingView:
    """What whoever began a run may know of what it waits for."""
    ask, until = approval.ask, moment(approval.expires_at)
    return WaitingView(id=approval.approval_id, subject=ask.subject, options=ask.options, expires_at=until)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run, `GET /v1/agent/{run_id}`. Moments are ISO 8601 in UTC.

    error: `kind`, `message`, and for owners `detail`, the cause as it was found; None when the run has not failed.
    waiting_for: what a person has to decide or to answer before it goes on.
    """

    run_id: str
    session: str
    status: str
    accepted_at: str
    started_at: str | None
    ended_at: str | None
    text: str
    media: tuple[str, ...]
    usage: Usage
    error: dict[str, str] | None
    waiting_for: WaitingView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleView:
    """What a terminal begins with, `GET /v1/console`. position: of the last event it has shown. last: the last exchange
    as far as it has been shown, None when there is none."""

    position: int
    last: Exchange | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """How a channel stands, and since when (ISO 8601, UTC)."""

    state: str
    since: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessView:
    """Whether every enabled channel receives, `GET /readyz`."""

    ready: bool
    channels: dict[str, ChannelView]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """Counts of this moment, `GET /v1/status`. model_reason: why this model was chosen. sandbox: which one holds
    commands in, and why.

    lost: what did not arrive, newest first. last_failure: of a run, when and why; empty when there was none.
    """

    model: str
    model_reason: str
    sandbox: str
    running: int
    waiting: int
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int
    expired_deliveries: int
    lost: tuple[LostDelivery, ...]
    last_failure: str

    def rows(self, at: Callable[[int], str]) -> Iterator[tuple[str, str]]:
        """What people are told of it, behind what it is about. at: writes a moment (milliseconds)."""
        yield "sandbox", self.sandbox
        yield "runs", f"{self.running} running, {self.waiting} waiting"
        lost = f"{self.failed_deliveries} refused, {self.uncertain_deliveries} uncertain"
        lost += f", {self.expired_deliveries} late" if self.expired_deliveries else ""
        yield "deliveries", f"{self.undelivered} open, {lost}"
        yield from (("lost", wording.lost(found, at(found.at))) for found in self.lost)
        if self.last_failure:
            yield "failure", self.last_failure
