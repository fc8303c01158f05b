"""The commands /schedule and /heartbeat, with which owners say what the bot does by itself."""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from bot.background.control import Control
from bot.background.jobs import JobError, Jobs
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from heartbeat import spoken

# The most characters that are quoted of what was not understood.
_QUOTED = 80

# The five fields of a crontab, and a time zone if there is one, in any quotes that keyboards make; or five words.
_CRON = re.compile(
    r"[\"'“”„‘’](?P<quoted>[^\"'“”„‘’]*)[\"'“”„‘’]\s*(?P<text>.*)|(?P<bare>(?:\S+\s+){5})(?P<rest>.*)", re.S
)


class ScheduleArguments(Arguments):
    """The arguments of /schedule."""

    action: str = Field(
        default="list",
        description="in 10m TEXT, at 18:30 TEXT, every monday 8:00 TEXT, cron “0 9 * * 1-5” TEXT; list; or pause, "
        "resume, run, delete or history with a job.",
    )
    details: str = Field(default="", description="The time and what to do then; or the id of a job.")


class HeartbeatArguments(Arguments):
    """The arguments of /heartbeat."""

    action: Literal["status", "on", "off", "now"] = Field(default="status", description="status, on, off or now.")


def build(jobs: Jobs, control: Control) -> tuple[Command, ...]:
    """Make the commands."""

    async def schedule(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ScheduleArguments)
        try:
            match arguments.action.lower():
                case "list" | "pause" | "resume" | "run" | "delete" | "history" as order:
                    place = call.message.origin.place
                    here = jobs.limit(call.session_key, place, by_owners=call.by_owner)
                    return Say(await jobs.carry_out(order, arguments.details, here))
                case "cron":
                    when, prompt = _crontab(arguments.details)
                case _:
                    when, prompt = _spoken(f"{arguments.action} {arguments.details}", jobs.dispatcher.clock.now())
            key = f"{call.seq}:{call.message.event_key}"
            return Say(await jobs.add(key, call.message.origin, prompt, when))
        except JobError as error:
            return Say(str(error), mistake=True)

    async def heartbeat(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, HeartbeatArguments)
        return Say(await control.carry_out(arguments.action))

    plans = "Reminders and jobs: list; at TIME, every 2h or cron “0 9 * * 1-5”, and what to do; pause, resume, … ID."
    beats = "Whether and when I look by myself what needs attention."
    return (
        Command(name="schedule", help=plans, run=schedule, arguments=ScheduleArguments),
        Command(name="heartbeat", help=beats, run=heartbeat, arguments=HeartbeatArguments),
    )


def _crontab(details: str) -> tuple[Mapping[str, str], str]:
    """Split what stands behind `cron` into the fields with their zone and the prompt of the job. Raises JobError."""
    found = _CRON.fullmatch(details)
    if found is None:
        raise JobError('Write five fields in quotes, then what to do: /schedule cron "0 9 * * 1-5" Say good morning.')
    fields = (found["quoted"] or found["bare"]).split()
    return {"cron": " ".join(fields[:5]), "zone": " ".join(fields[5:])}, found["text"] or found["rest"] or ""


def _spoken(words: str, now: int) -> tuple[Mapping[str, str], str]:
    """Split words into the time that they begin with and the prompt of the job. now: milliseconds. Raises JobError."""
    found = spoken.read(words, now)
    if found is None:
        raise JobError(
            f"I did not understand when, in {words.strip()[:_QUOTED]!r}. Write the time first, then what to do, such "
            "as `/schedule in 10m Take the cake out` or `/schedule every monday 8:00 Sum up my inbox`."
        )
    return found
