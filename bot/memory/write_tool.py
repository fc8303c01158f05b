"""The tool `memory_write`, which adds an entry to the memory file of the day in the room of its session.

What nobody has looked at who may say so becomes no memory by itself: what beats, jobs and groups write, and what is
written beside untrusted text, waits as a row that nothing reads, until an owner or the person of the room keeps it.
"""

from datetime import datetime

from pydantic import Field

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.origins import sources
from agent.tools.base import CallContext, Parameters, Sink, Tool
from bot.clock import Clock
from bot.memory.filing import Filing, entry_of
from bot.persistence.memories import NewMemory

MEMORY_WRITE = "memory_write"


class MemoryWriteParameters(Parameters):
    """Of `memory_write`."""

    text: str = Field(
        min_length=1,
        max_length=4000,
        pattern=r"\S",
        description="What to remember, to be understood alone.",
    )


class MemoryWriteTool(Tool[MemoryWriteParameters]):
    """Remembers something."""

    name = MEMORY_WRITE
    description = (
        "Remember something for later conversations here: it is added to memory/ with today's date. What beats, jobs "
        "and groups remember, and what comes from other people's text, waits until a person keeps it. For what "
        "should stand in every prompt, write MEMORY.md."
    )
    parameters = MemoryWriteParameters
    changes = True

    def __init__(self, filing: Filing, clock: Clock) -> None:
        self._filing, self._clock = filing, clock

    async def run(self, parameters: MemoryWriteParameters, context: CallContext) -> ToolOutput:
        """Store it, and write it into its file unless it waits. Raises ToolError if too much waits."""
        filing, clock = self._filing, self._clock
        room, doubts = filing.rooms.of(context.session_key).name, context.doubts()
        waits = context.background or bool(doubts) or room.startswith("groups/")
        today = datetime.fromtimestamp(clock.now() / 1000, clock.zone)
        new = NewMemory(
            pending=waits,
            room=room,
            path=f"memory/{today:%Y-%m-%d}.md",
            entry=entry_of(parameters.text, f"{today:%H:%M}", by_itself=context.background),
            origins=context.bears(),
            session_key=context.session_key,
            turn_id=context.turn_id,
            by_itself=context.background,
        )
        if not await filing.store.write(new):
            raise ToolError("Not remembered: too much waits here already until a person keeps or drops it.")
        if waits:
            filing.store.waits.set()
            why = f", because of: {sources(doubts)}" if doubts else ""
            return ToolOutput(text=f"Kept aside{why}. It is a memory once a person keeps it; nothing reads it before.")
        if not await filing.settle():
            return ToolOutput(text=f"Noted, and written to {new.path} as soon as that can be written.")
        return ToolOutput(text=f"Remembered in {new.path}.")

    async def sink(self, parameters: MemoryWriteParameters, context: CallContext) -> Sink:
        """See Tool: what is doubtful waits, so nobody need be asked before."""
        return "room"
