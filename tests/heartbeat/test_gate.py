"""Whether a beat may ask the model: what speaks against it, and in which order."""

from dataclasses import replace
from datetime import UTC

import pytest

from heartbeat.checklist import Task, read
from heartbeat.gate import Budget, Facts, due_tasks, skip
from heartbeat.times import ActiveHours

HOUR = 3_600_000
NOW = 1_000 * 24 * HOUR + 9 * HOUR  # nine in the morning, UTC
NIGHT = ActiveHours(22 * 60, 6 * 60, UTC)
TASK = read("tasks:\n  - name: mail\n    interval: 2h\n    prompt: Look for mail.\n")
EMPTY = read("# Nothing\n- [ ]\n")

# Nothing speaks against this one.
GOOD = Facts(
    enabled=True,
    cause="due",
    now=NOW,
    session="agent:main:main",
    last_person=NOW - 7 * 24 * HOUR + 1,
    errors=2,
    active_hours=ActiveHours(9 * 60, 9 * 60 + 1, UTC),
    busy=False,
    checklist=read("- Is the door shut?"),
    own_prompt=False,
    task_times={},
    events=0,
    shown=True,
    spent=299_999,
    budget=Budget(300_000, "tokens"),
)

# Each with what makes it hold, and the causes that it holds for, in the order in which they are told.
REASONS: list[tuple[str, dict[str, object], tuple[str, ...]]] = [
    ("off", {"enabled": False}, ("due", "wake")),
    ("no-session", {"session": ""}, ("due", "wake", "now")),
    ("idle", {"last_person": NOW - 7 * 24 * HOUR}, ("due", "wake")),
    ("errors", {"errors": 3}, ("due", "wake")),
    ("quiet-hours", {"active_hours": NIGHT}, ("due", "wake")),
    ("busy", {"busy": True}, ("due", "wake", "now")),
    ("empty", {"checklist": EMPTY}, ("due", "now")),
    ("not-shown", {"shown": False}, ("due", "wake", "now")),
    ("budget", {"spent": 300_000}, ("due", "wake", "now")),
]


def reason(facts: Facts) -> str:
    """The word of what speaks against a beat; empty where nothing does."""
    found = skip(facts)
    assert found is None or found.words.endswith(".")
    return found.reason if found else ""


@pytest.mark.parametrize("cause", ["due", "wake", "now"])
def test_each_reason_holds_for_its_causes(cause: str) -> None:
    asked = replace(GOOD, cause=cause)  # type: ignore[arg-type]
    assert reason(asked) == ""
    for word, change, causes in REASONS:
        assert reason(replace(asked, **change)) == (word if cause in causes else ""), word  # type: ignore[arg-type]


def test_the_first_reason_of_all_is_told() -> None:
    changes = [change for _, change, _ in REASONS]
    for n, (word, _, _) in enumerate(REASONS):
        facts = GOOD
        for change in changes[n:]:
            facts = replace(facts, **change)  # type: ignore[arg-type]
        assert reason(facts) == word


def test_a_waiting_event_makes_up_for_an_empty_list() -> None:
    for checklist in (EMPTY, None):
        assert reason(replace(GOOD, checklist=checklist)) == "empty"
        assert reason(replace(GOOD, checklist=checklist, events=1)) == ""


def test_a_prompt_of_ones_own_makes_up_for_a_missing_file_but_not_for_an_empty_one() -> None:
    assert reason(replace(GOOD, own_prompt=True, checklist=None)) == ""
    assert reason(replace(GOOD, own_prompt=True, checklist=EMPTY)) == "empty"


def test_tasks_are_waited_for() -> None:
    mail = replace(GOOD, checklist=TASK)
    assert reason(mail) == ""
    assert reason(replace(mail, task_times={"mail": NOW - 2 * HOUR + 1})) == "no-task-due"
    assert reason(replace(mail, task_times={"mail": NOW - HOUR}, events=1)) == ""
    assert reason(replace(mail, task_times={"mail": NOW - 2 * HOUR})) == ""
    notes = replace(mail, checklist=replace(TASK, notes="- a note"), task_times={"mail": NOW})
    assert reason(notes) == "no-task-due"


def test_due_tasks() -> None:
    often, seldom, new = (Task(name, hours * HOUR, "x") for name, hours in (("often", 1), ("seldom", 24), ("new", 99)))
    checklist = replace(TASK, tasks=(often, seldom, new))
    assert due_tasks(checklist, {"often": NOW - HOUR, "seldom": NOW - HOUR, "gone": 0}, NOW) == (often, new)
    # the clock was set back
    assert due_tasks(checklist, {"often": NOW, "seldom": NOW + HOUR, "new": NOW - HOUR}, NOW) == (seldom,)


def test_a_spent_budget_is_told_in_its_unit() -> None:
    tokens, money = skip(replace(GOOD, spent=300_000)), skip(replace(GOOD, spent=2.5, budget=Budget(2, "USD")))
    assert tokens is not None
    assert "300,000 tokens of 300,000 tokens" in tokens.words
    assert money is not None
    assert "$2.50 of $2.00" in money.words
