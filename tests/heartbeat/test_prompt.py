"""What a beat and a job say to the model."""

from agent.message import estimate_text
from heartbeat.checklist import DEFAULT, Task, compose, job_prompt

TASKS = (Task("mail", 1000, "Look for urgent mail."), Task("plants", 1000, "Water:\n- the fern\n- the palm"))


def test_a_beat_holds_the_prompt_as_it_is_the_notes_and_the_tasks_that_are_due() -> None:
    text = compose("  Look $around ${x}.\n", TASKS, "- Is the door shut?")
    assert text.startswith("  Look $around ${x}.\n\n\nHEARTBEAT.md says:\n- Is the door shut?\n\n")
    assert "- mail: Look for urgent mail.\n- plants: Water:\n  - the fern\n  - the palm\n\n" in text
    assert "late" not in text
    for sign in ("HEARTBEAT_OK", "stay_silent", "Nobody is reading along", "in the background"):
        assert text.count(sign) == 1


def test_what_there_is_nothing_of_is_not_named() -> None:
    text = compose("Look.", (), "")
    assert "HEARTBEAT.md" not in text
    assert "Tasks" not in text
    assert "due at [Sun 2026-11-22 03:15 UTC] and comes late" in compose("Look.", (), "", "[Sun 2026-11-22 03:15 UTC]")


def test_a_quiet_beat_is_small() -> None:
    assert "HEARTBEAT.md" in DEFAULT
    assert estimate_text(compose(DEFAULT, (), "", "[Sun 2026-11-22 03:15 UTC]")) < 250


def test_a_job_says_what_it_is_and_since_when_it_is_late() -> None:
    text = job_prompt("$5 a day", "Say ${this}.", None)
    assert 'the scheduled job "$5 a day"' in text
    assert text.endswith("\n\nSay ${this}.")
    assert "late" not in text
    assert "due at [Sun] and comes late" in job_prompt("a", "b", "[Sun]")
