"""The tool `task_list`, which shows people how far work of several steps has got, in one message that is edited.

The message and its edits are deliveries beside the answer: they are silent and no words of the model. Their sources are
named after the turn and the call, so that a turn has one list, also after a crash.
"""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Tool
from bot.outbox import Outbox
from bot.persistence.deliveries import ToldOf
from bot.persistence.turns import BY_THEMSELVES, Turn
from bot.runs.messaging import PATIENCE, Send
from bot.speech import spoken
from channels.outgoing import Action
from channels.sources import side_message

TASK_LIST = "task_list"
_SHOWN = {"open": "☐ {}", "doing": "▶ **{}**", "done": "☑ {}", "dropped": "☒ ~~{}~~"}


class Task(Parameters):
    """One step of the work."""

    text: str = Field(min_length=1, max_length=200, description="In a few words.")
    state: Literal["open", "doing", "done", "dropped"] = "open"


class TaskListParameters(Parameters):
    """Of `task_list`."""

    tasks: tuple[Task, ...] = Field(min_length=1, max_length=20, description="All of them, each time.")


class TaskListTool(Tool[TaskListParameters]):
    """Shows the steps of the work of one turn, and which of them are done."""

    name = TASK_LIST
    description = (
        "Show people the steps of longer work and how far you are: one message, changed with each call. "
        "For work of three steps or more; say nothing of it in the answer."
    )
    parameters = TaskListParameters

    def __init__(self, turn: Turn, outbox: Outbox, send: Send) -> None:
        self._turn, self._outbox, self._send = turn, outbox, send

    async def run(self, parameters: TaskListParameters, context: CallContext) -> ToolOutput:
        """Show the list, or change it. Raises ToolError if it does not fit into one message."""
        turn, outbox = self._turn, self._outbox
        if turn.kind in BY_THEMSELVES:
            return ToolOutput(text="Nobody waits for this work, so it is not shown.")
        shown = side_message(turn.turn_id, 0, "tasks")
        text = "\n".join(f"- {_SHOWN[one.state].format(' '.join(one.text.split()))}" for one in parameters.tasks)
        blocks = outbox.notice(shown, spoken(text), turn.place.channel, ours=False)
        if len(blocks) != 1:
            raise ToolError("That does not fit into one message: use fewer words.")
        block = replace(blocks[0], said="", silent=True)
        fate = await outbox.outcome(shown, PATIENCE)
        if fate.ids:
            source = shown.also(context.call_id)
            block = replace(block, source=source, action=Action.EDIT, target=fate.ids[0])
        await self._send(turn.place, (block,), ToldOf("", ()), 0)
        return ToolOutput(text="Shown.")
