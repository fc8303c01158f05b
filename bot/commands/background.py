"""/schedule and /heartbeat, for owners: what the bot does unasked."""

import re
from typing import Literal

from pydantic import Field

from bot.background.control import Control
from bot.background.jobs import JobError, Jobs
from bot.commands.registry import Arguments, Call, Command, Effect, Say

# Five fields of a crontab and perhaps a zone, in any quotes that keyboards make; or five words.
_CRON = re.compile(
    r"[\"'“”„‘’](?P<quoted>[^\"'“”„‘’]*)[\"'“”„‘’]\s*(?P<text>.*)|(?P<bare>(?:\S+\s+){5})(?P<rest>.*)", re.S
)


class ScheduleArguments(Arguments):
    """Of /schedule."""

    action: Literal["list", "at", "every", "cron", "pause", "resume", "run", "delete", "history"] = Field(
        default="list", description="at TIME TEXT, every 2h TEXT, cron “0 9 * * 1-5” TEXT; or what to do with a job."
    )
    details: str = Field(default="", description="The time and what to do then; or the id of a job.")


class HeartbeatArguments(Arguments):
    """Of /heartbeat."""

    action: Literal["status", "on", "off", "now"] = Field(default="status", description="status, on, off or now.")


def build(jobs: Jobs, control: Control) -> tuple[Command, ...]:
    """The commands of what runs by itself."""

    async def schedule(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ScheduleArguments)
        try:
            match arguments.action:
                case "at" | "every" | "cron" as form:
                    when, zone, prompt = _read(arguments.details, is_cron=form == "cron")
                    key, origin = f"{call.seq}:{call.message.event_key}", call.message.origin
                    return Say(await jobs.add(key, origin, prompt, {form: when, "zone": zone}))
                case order:
                    return Say(await jobs.carry_out(order, arguments.details))
        except JobError as error:
            return Say(str(error), mistake=True)

    async def heartbeat(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, HeartbeatArguments)
        return Say(await control.carry_out(arguments.action))

    plans = "Reminders and jobs: list; at TIME, every 2h or cron “0 9 * * 1-5”, and what to do; pause, resume, … ID."
    beats = "Whether and when I look by myself what needs attention."
    return (
        Command(name="schedule", help=plans, run=schedule, arguments=ScheduleArguments, owner_only=True),
        Command(name="heartbeat", help=beats, run=heartbeat, arguments=HeartbeatArguments, owner_only=True),
    )


def _read(details: str, *, is_cron: bool) -> tuple[str, str, str]:
    """The time, its zone and the prompt of a job, as people type them. Raises JobError."""
    if not is_cron:
        when, _, prompt = details.partition(" ")
        return when, "", prompt
    found = _CRON.fullmatch(details)
    if found is None:
        raise JobError('Write five fields in quotes, then what to do: /schedule cron "0 9 * * 1-5" Say good morning.')
    fields = (found["quoted"] or found["bare"]).split()
    return " ".join(fields[:5]), " ".join(fields[5:]), found["text"] or found["rest"] or ""
