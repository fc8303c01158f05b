"""The tools `memory_search` and `memory_get`, which look into the memory of the room alone."""

from pydantic import Field

from agent.errors import ToolError
from agent.memory.base import ENDING, FILE, FOLDER, Memory, is_readable
from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Tool
from agent.tools.files import ReadParameters, ReadTool
from agent.tools.workspace import Workspace

# The most hits of a search, and characters shown of one.
MOST, SHOWN = 10, 600


class SearchParameters(Parameters):
    """Of `memory_search`."""

    query: str = Field(min_length=1, max_length=1000, description="A question, or the words that matter.")


class MemorySearchTool(Tool[SearchParameters]):
    """Searches the memory of the room."""

    name = "memory_search"
    description = (
        f"Search what was written down about people, decisions and earlier days ({FILE} and {FOLDER}/*{ENDING}). "
        "Each hit is a line with path, lines and score; memory_get shows what stands around it."
    )
    parameters = SearchParameters
    parallel_safe = True

    def __init__(self, memory: Memory, room: Workspace) -> None:
        self._memory, self._room = memory, room

    async def run(self, parameters: SearchParameters, context: CallContext) -> ToolOutput:
        """Return a line for each hit."""
        found = await self._memory.search(self._room, parameters.query, MOST)
        lines = [hit.line(SHOWN) for hit in found.hits]
        return ToolOutput(text="\n".join(lines) or "Nothing is remembered about that.", origins=found.origins)

    async def reaches_out(self, parameters: SearchParameters, context: CallContext) -> bool:
        """See Tool."""
        return self._memory.reaches_out


class GetParameters(ReadParameters):
    """Of `memory_get`."""

    path: str = Field(description=f"{FILE} or {FOLDER}/<name>{ENDING}.")


class MemoryGetTool(ReadTool):
    """Reads a file of the memory."""

    name = "memory_get"
    description = "Read a file of the memory. Long files come in pieces: go on with offset."
    parameters = GetParameters

    async def run(self, parameters: ReadParameters, context: CallContext) -> ToolOutput:
        """Return the lines asked for, see `read`."""
        if not is_readable(self._workspace.relative(parameters.path)):
            raise ToolError(f"{parameters.path}: not part of the memory, which is {FILE} and {FOLDER}/*{ENDING}.")
        return await super().run(parameters, context)
