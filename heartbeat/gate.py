"""Whether a beat may ask the model: what speaks against it, in a fixed order, decided before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from heartbeat.active_hours import ActiveHours
from heartbeat.checklist import Checklist, Task

# Without a word from a person for so long, in milliseconds, beats stop until the next one.
IDLE_AFTER = 7 * 24 * 3600 * 1000
# So many beats in a row that fail for the key or the account stop them too.
MOST_ERRORS = 3

_GO_ON = "beats go on with the next message."

# Why something fires: its time has come, it had come while nobody was there, an event asks for it, a person does.
Cause = Literal["due", "late", "wake", "now"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What beats may cost in a day."""

    amount: float
    unit: Literal["tokens", "USD"]

    def show(self, amount: float) -> str:
        """An amount in its unit."""
        return f"{amount:,.0f} tokens" if self.unit == "tokens" else f"${amount:,.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the decision rests on. Moments are milliseconds since the epoch.

    enabled: beats are on. session: whose heartbeat it is, empty while there is none. last_person: when a person last
    wrote or, before anybody has, when beats began. errors: beats in a row that failed for the key or the account, since
    then. checklist: None when the file is missing. own_prompt: the configuration has a prompt of its own. task_times:
    when each task was last done. events: how many the next turn is to be told. shown: an alert could be shown
    somewhere. spent: of today's budget.
    """

    enabled: bool
    cause: Cause
    now: int
    session: str
    last_person: int
    errors: int
    active_hours: ActiveHours
    busy: bool
    checklist: Checklist | None
    own_prompt: bool
    task_times: Mapping[str, int]
    events: int
    shown: bool
    spent: float
    budget: Budget


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a beat does not ask the model. reason: a word for programs; words: a sentence for people."""

    reason: str
    words: str


def skip(facts: Facts) -> Skip | None:
    """The first reason against a beat; None when it may ask the model."""
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
    """Whether what a beat has said before, and nobody could read, may be said again: that asks no model, so nothing but
    what keeps beats from people counts."""
    by_day = facts.active_hours.contains(facts.now)
    return facts.enabled and bool(facts.session) and facts.shown and by_day and not facts.busy


def due_tasks(checklist: Checklist, last: Mapping[str, int], at: int) -> tuple[Task, ...]:
    """The tasks that a beat has to do.

    at: when the beat was due. That moment, not the end of its turn, is what becomes the time of a task that was done:
    so one of every 30m is due at each beat of 30m. A time that lies ahead (a clock was set back) does not count.
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
