"""The `schedule` tool: reminders and jobs, for owners, in conversations where nobody else writes."""

from typing import Literal

from pydantic import Field

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Sink, Tool
from bot.background.jobs import JobError, Jobs
from bot.config.values import SCHEDULE
from bot.persistence.turns import Turn


class ScheduleParameters(Parameters):
    """Of `schedule`."""

    action: Literal["add", "list", "pause", "resume", "run", "delete", "history"] = "add"
    at: str = Field(default="", description="Once: ISO 8601 date and time, with zone.")
    every: str = Field(default="", description="30m, 2h, 1d …")
    cron: str = Field(default="", description="Five fields.")
    zone: str = Field(default="", description="IANA name, of at and cron; else this machine's.")
    prompt: str = Field(default="", description="What to do or say then. Complete: who does it may not see this chat.")
    name: str = ""
    id: str = Field(default="", description="Of the job, for all but add and list.")
    session: Literal["own", "current"] = Field(default="own", description="current: with this conversation's history.")


class ScheduleTool(Tool[ScheduleParameters]):
    """Of one run."""

    name = SCHEDULE
    description = (
        "Reminders and jobs: at a time, every so often, or by cron, you are asked the prompt, and your answer is sent"
        " here. Add takes prompt and one of at, every, cron."
    )
    parameters = ScheduleParameters
    changes = True
    owner_only = True

    def __init__(self, jobs: Jobs, turn: Turn) -> None:
        self._jobs = jobs
        self._turn = turn

    async def sink(self, parameters: ScheduleParameters, context: CallContext) -> Sink:
        """See Tool."""
        return "look" if parameters.action in ("list", "history") else "schedule"

    async def run(self, parameters: ScheduleParameters, context: CallContext) -> ToolOutput:
        """What was done, with times. Raises ToolError."""
        asked = parameters
        if context.background and asked.action == "add":
            raise ToolError("Nobody is here to ask for that: only a person can order a job.")
        try:
            if asked.action != "add":
                here = self._jobs.limit(self._turn.session_key, self._turn.place, by_owners=True)
                done = await self._jobs.carry_out(asked.action, asked.id or asked.name, here)
                return ToolOutput(text=done, origins=await self._jobs.origins())
            text = await self._jobs.add(
                f"{context.turn_id}:{context.call_id}",
                self._turn.messages[-1].origin,
                asked.prompt,
                asked.model_dump(include={"at", "every", "cron", "zone"}),
                name=asked.name,
                own=asked.session == "own",
                origins=context.bears(),
            )
        except JobError as error:
            raise ToolError(str(error)) from None
        return ToolOutput(text=text)
