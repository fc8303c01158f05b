"""The command /subagents, which lists the sub-agents that are at work and stops them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from agent.tools.background import Background
from bot.approvals.requests import Requests
from bot.children.subagents import SubAgents
from bot.commands.registry import Answer, Arguments, Call, Command, Effect, Say
from bot.persistence.children import SessionView
from bot.persistence.turns import CommandKept, Stopped
from bot.speech import called
from channels.outgoing import Button, Planned
from channels.session_key import CHILD

# Sub-agents that have a button.
_OFFERED = 8


class SubagentsArguments(Arguments):
    """The arguments of /subagents."""

    action: str = Field(default="list", description="list, or stop.")
    which: str = Field(default="", description="Of stop: its id, or the beginning of it.")


@dataclass(frozen=True, slots=True)
class StopChild(Effect):
    """Ends the work of a sub-agent; the session that has started it is told with its next turn."""

    subagents: SubAgents
    requests: Requests
    background: Background
    child: SessionView

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist the stop; the run is cancelled afterwards."""
        key = self.child.session_key
        self.background.stop(key, f"{key}{CHILD}")

        def reply(stopped: Stopped) -> Sequence[Planned]:
            said = "is stopped" if stopped.turns else "had ended already"
            return answer.blocks(f"The sub-agent {_named(self.child)} {said}.")

        kept = await self.subagents.store.stops.stop(answer.call.seq, key, reply, await answer.chosen())
        self.requests.hurry()  # requests of the stopped turns are closed
        return kept


def build(subagents: SubAgents, requests: Requests, background: Background) -> Command:
    """Make the command. background: the commands that tools have started."""

    async def run(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, SubagentsArguments)
        here = "" if call.by_owner and call.asker.direct else call.session_key
        found = await subagents.store.children.open(here)
        if arguments.action.lower() == "list":
            if not found:
                return Say("No sub-agent is at work here.")
            buttons = [Button(f"Stop {_id(one)}", f"/subagents stop {_id(one)}") for one in found[:_OFFERED]]
            lines = "\n".join(f"- `{_id(one)}` {_named(one)}: {one.state}" for one in found)
            return Say(f"{lines}\n`/subagents stop ID` ends one.", tuple(buttons))
        wanted = arguments.which.strip("` ")
        meant = [one for one in found if wanted and _id(one).startswith(wanted)]
        if arguments.action.lower() != "stop" or len(meant) != 1:
            ids = ", ".join(f"`{_id(one)}`" for one in found) or "none"
            return Say(f"Say which one: `/subagents stop ID`. At work: {ids}.", mistake=True)
        return StopChild(subagents, requests, background, meant[0])

    helps = "Which sub-agents are at work; stop ID ends one."
    return Command(name="subagents", help=helps, run=run, arguments=SubagentsArguments)


def _id(one: SessionView) -> str:
    return one.session_key.rpartition(CHILD)[2]


def _named(one: SessionView) -> str:
    """Return what a model has called a sub-agent, as people are shown it."""
    return f"“{called(one.label)}”"
