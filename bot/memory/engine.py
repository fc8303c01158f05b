"""Asks the memory engine of an extension where something stands, and reads it there."""

import asyncio
from collections.abc import Sequence

from agent.memory.base import Cited, Hit, MemoryEngine, is_readable
from agent.tools.lineage import FileState, state_of
from agent.tools.workspace import Workspace, WorkspaceError

# The seconds of one search.
_SECONDS = 5.0


async def ask(
    engine: MemoryEngine, room: Workspace, question: str, most: int
) -> tuple[Sequence[Hit], Sequence[FileState]]:
    """Return what an engine has found, and the states of the files that it stands in. Raises what the engine raises."""
    async with asyncio.timeout(_SECONDS):
        cited = await engine.search(room.root, question, most)
    return await asyncio.to_thread(_read, room, cited[:most])


def _read(room: Workspace, cited: Sequence[Cited]) -> tuple[Sequence[Hit], Sequence[FileState]]:
    hits: list[Hit] = []
    states: dict[str, FileState] = {}
    for one in cited:
        try:
            parts = room.relative(one.path)
            if not is_readable(parts):
                continue
            with room.open(one.path) as file:
                content = file.read()
                states["/".join(parts)] = state_of(room, parts, file, content)
        except WorkspaceError:
            continue  # it is gone
        lines = content.decode(errors="replace").split("\n")[max(one.first, 1) - 1 : one.last]
        if text := "\n".join(lines).strip():
            score = min(max(float(one.score), 0.0), 1.0)
            hits.append(Hit("/".join(parts), max(one.first, 1), max(one.first, 1) + len(lines) - 1, score, text))
    return hits, [*states.values()]
