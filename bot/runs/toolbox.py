"""The tools of a turn: all that are made for its run, and which of them it has."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from agent.tools.base import RunContext, Tool, ToolFactory
from bot.people.access import is_trusted
from bot.persistence.turns import Turn
from bot.runs.messaging import Messaging, Send
from bot.runs.permissions import Offer, Permissions
from bot.runs.rooms import Furniture


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Brings together the tools of the room, those that are made for each run, and what a turn may have of them."""

    # Make the tools that come from outside this package, and close them with the run.
    factories: Sequence[ToolFactory]
    # Makes the `message` tool.
    messaging: Messaging
    # Makes the `schedule` tool.
    scheduling: Callable[[Turn], Tool[Any]]
    # Decides which of all these tools a turn has.
    permissions: Permissions

    async def open(
        self, turn: Turn, inside: Furniture, made: AsyncExitStack, send: Send
    ) -> tuple[Offer, Mapping[str, Tool[Any]]]:
        """What a turn is offered, and all its tools by name, which are closed with `made`.

        inside: what is in the room of its session. send: plans what the `message` tool sends. Raises what a factory
        raises.
        """
        trusted = all(map(is_trusted, turn.messages))
        run = RunContext(
            turn_id=turn.turn_id, session_key=turn.session_key, trusted=trusted, workspace=inside.workspace
        )
        found: list[Tool[Any]] = [*inside.tools]
        for make in self.factories:
            found += await made.enter_async_context(make(run))
        found += (*self.messaging.tools(turn, trusted, send), self.scheduling(turn))
        return self.permissions.offer(turn, inside.room, found), {tool.name: tool for tool in found}
