"""Beats and jobs, and a death in the middle: what the crash explorer must notice."""

from tests.mutants import Fault

_DUE = "tests/crash/test_explorer.py::test_a_death_when_something_is_due"
_JOBS = "tests/bot/background/test_due_times.py::test_"
_FIRE = (
    "        fired = await self.store.schedules.fire(job, (first, *firings[1:]), next_at, run, most)\n"
    '        if fired == "fired":'
)

FAULTS = (
    Fault(
        "heartbeat-crash/next-due-time-in-another-transaction",
        "Starter.start",
        _FIRE,
        f"        job = replace(job, next_at=next_at)\n        await self.store.schedules.put(job, 1000)\n{_FIRE}",
        (f"{_DUE}[reminder]", f"{_DUE}[recurring]"),
    ),
    Fault(
        "heartbeat-crash/message-in-another-transaction",
        "Starter.start",
        _FIRE,
        "        fired = await self.store.schedules.fire(job, (first, *firings[1:]), next_at, None, most)\n"
        "        await self.store.inbox.accept([run], None)\n"
        '        if fired == "fired":',
        (f"{_DUE}[reminder]", f"{_DUE}[recurring]"),
    ),
    Fault(
        "heartbeat-crash/missed-while-it-was-dead",
        "Beats.set_up",
        "if old and old.next_at is not None and (old.next_at <= now or old.schedule == schedule):",
        "if old and old.next_at is not None and old.next_at > now:",
        (f"{_DUE}[alert]",),
    ),
    Fault(
        "heartbeat-crash/a-cut-beat-goes-on",
        "Recovery.recover",
        'if kind == "beat":',
        'if kind == "child":',
        (f"{_DUE}[alert]",),
    ),
    Fault(
        "heartbeat-crash/a-cut-beat-stays-in-the-prompt",
        "_end_due_run",
        "    if not said:  # kept",
        "    if not said and outcome is Outcome.COMPLETED:  # kept",
        (f"{_DUE}[alert]",),
    ),
    Fault(
        "heartbeat-crash/tasks-of-a-cut-beat-are-done",
        "_end_due_run",
        "        if outcome is Outcome.COMPLETED:\n            for task",
        "        if outcome in (Outcome.COMPLETED, Outcome.ABORTED):\n            for task",
        (f"{_DUE}[tasks]",),
    ),
    Fault(
        "heartbeat-crash/a-reminder-is-done-when-it-begins",
        "Schedules.fire",
        "            self._accept(db, run, now)\n",
        "            self._accept(db, run, now)\n"
        '            db.execute("DELETE FROM job WHERE job_id=? AND next_at IS NULL", (job.job_id,))\n',
        ("tests/crash/test_explorer.py::test_a_reminder_that_dies_twice_is_told_of_and_tried_again",),
    ),
    Fault(
        "heartbeat-crash/a-stop-drops-reminders",
        "_stop_one",
        " AND kind NOT IN ('wake','job') AND seq < ?",
        " AND seq < ?",
        (f"{_JOBS}a_reminder_that_waits_behind_what_is_stopped_comes_all_the_same",),
    ),
    Fault(
        "heartbeat-crash/a-cut-job-before-people",
        "Claims.claim",
        "in (cut | unasked if background else cut).items():",
        "in (unasked | cut if background else cut).items():",
        ("tests/bot/store/test_yielding.py::test_a_turn_that_was_cut_goes_before_it",),
    ),
)
