"""Decides whether a beat may ask the model. The reasons against it are checked in a fixed order, before any cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from heartbeat.checklist import Checklist, Task
from heartbeat.times import ActiveHours

# After so many milliseconds without a message from a person, beats stop until the next message.
IDLE_AFTER = 7 * 24 * 3600 * 1000
# After so many beats in a row that failed because of the key or the account, beats stop as well.
MOST_ERRORS = 3

_GO_ON = "beats go on with the next message."

# Why a beat runs: its time has come, its time came while the service was not running, an event or a person asks for it.
Cause = Literal["due", "late", "wake", "now"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What beats may cost in a day."""

    amount: float
    unit: Literal["tokens", "USD"]

    def show(self, amount: float) -> str:
        """Return an amount with its unit."""
        return f"{amount:,.0f} tokens" if self.unit == "tokens" else f"${amount:,.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the decision depends on. Moments are milliseconds since the epoch."""

    # Whether beats are switched on.
    enabled: bool
    cause: Cause
    now: int
    # The session of the heartbeat; empty while there is none.
    session: str
    # When a person last wrote, or when beats began if nobody has written yet.
    last_person: int
    # Beats in a row, since `last_person`, that failed because of the key or the account.
    errors: int
    active_hours: ActiveHours
    # Whether the conversation is at work.
    busy: bool
    # HEARTBEAT.md; None when the file is missing.
    checklist: Checklist | None
    # Whether the configuration has a prompt of its own.
    own_prompt: bool
    # When each task was last done.
    task_times: Mapping[str, int]
    # How many events the next turn has to report.
    events: int
    # Whether an alert could be shown anywhere.
    shown: bool
    # How much of today's budget is spent.
    spent: float
    budget: Budget


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a beat does not ask the model."""

    # A word for programs.
    reason: str
    # A sentence for people.
    words: str


def skip(facts: Facts) -> Skip | None:
    """Return the first reason against a beat; None: it may ask the model."""
    asked = facts.cause == "now"
    if not (facts.enabled or asked):
        return Skip("off", "Heartbeats are off.")
    if not facts.session:
        return Skip("no-session", "No owner has written to me directly yet, so there is no conversation to beat in.")
    if not asked and facts.now - facts.last_person >= IDLE_AFTER:
        return Skip("idle", f"Nobody has written for seven days; {_GO_ON}")
    if not asked and facts.errors >= MOST_ERRORS:
        return Skip("errors", f"{facts.errors} beats in a row failed for the model's key or account; {_GO_ON}")
    if not asked and not facts.active_hours.contains(facts.now):
        return Skip("quiet-hours", "It is outside the active hours.")
    if facts.busy:
        return Skip("busy", "The conversation is at work" + ("." if asked else "; the beat is tried again soon."))
    waits = facts.events > 0 or facts.cause == "wake"
    if not waits and (reason := _nothing_to_do(facts)):
        return reason
    if not facts.shown:
        return Skip("not-shown", "Nothing that a beat says could be shown anywhere.")
    budget = facts.budget
    if facts.spent >= budget.amount:
        sums = f"{budget.show(facts.spent)} of {budget.show(budget.amount)}"
        return Skip("budget", f"The budget of today is spent: {sums}.")
    return None


def may_say_again(facts: Facts) -> bool:
    """Whether an alert that nobody could read may be sent again.

    This asks no model, so only the rules about when people may be notified count.
    """
    by_day = facts.active_hours.contains(facts.now)
    return facts.enabled and bool(facts.session) and facts.shown and by_day and not facts.busy


def due_tasks(checklist: Checklist, last: Mapping[str, int], at: int) -> tuple[Task, ...]:
    """Return the tasks that a beat has to do.

    at: when the beat was due. This moment, and not the end of the turn, is recorded as the time of a task, so that a
    task of every 30m is due at each beat of 30m. A recorded time in the future (a clock was set back) does not count.
    """
    return tuple(
        task for task in checklist.tasks if task.name not in last or not 0 <= at - last[task.name] < task.interval_ms
    )


def _nothing_to_do(facts: Facts) -> Skip | None:
    checklist = facts.checklist
    if checklist is None or not (checklist.notes or checklist.tasks):
        if facts.own_prompt and checklist is None:
            return None
        return Skip("empty", "HEARTBEAT.md holds nothing to look at.")
    if checklist.tasks and not due_tasks(checklist, facts.task_times, facts.now):
        return Skip("no-task-due", "None of the tasks in HEARTBEAT.md is due.")
    return None
