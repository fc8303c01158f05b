"""The user message of a beat and of a job. Its words stand in `prompt.md`, beside this."""

from collections.abc import Sequence
from importlib import resources
from string import Template

from heartbeat.checklist import Task

# DEFAULT is `heartbeat.prompt` where the configuration has none.
DEFAULT, _END, _JOB, _LATE = (
    words.strip() for words in (resources.files(__package__) / "prompt.md").read_text("utf-8").split("\n---\n")
)


def compose(prompt: str, tasks: Sequence[Task], notes: str, late: str | None = None) -> str:
    """A beat's message. prompt: as it is configured; tasks: those that are due; notes: the rest of HEARTBEAT.md.

    late: since when, as people write moments; None when it is on time.
    """
    parts = [prompt, *_late(late)]
    if notes:
        parts.append(f"HEARTBEAT.md says:\n{notes}")
    if tasks:
        listed = "\n".join(f"- {task.name}: {task.prompt.replace(chr(10), chr(10) + '  ')}" for task in tasks)
        parts.append(f"Tasks of HEARTBEAT.md that are due now:\n{listed}")
    return "\n\n".join((*parts, _END))


def job_prompt(name: str, prompt: str, due: str | None) -> str:
    """A job's message. due: since when it is late, as people write moments; None when it is on time."""
    return "\n\n".join((Template(_JOB).substitute(name=f'"{name}"'), *_late(due), prompt))


def _late(due: str | None) -> tuple[str, ...]:
    return () if due is None else (Template(_LATE).substitute(due=due),)
