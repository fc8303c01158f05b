"""Brings memory files up to date with their rows: a row that is kept stands in its file once, one that goes is gone.

Whether a file has an entry is seen by its lines, so doing it again after a crash changes nothing. The rows are read
while no other file of the workspace is written, so of two that file at once the later one knows what the earlier did.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from textwrap import indent

import structlog

from agent.errors import ToolError
from agent.message import merged
from agent.tools.files import marked
from agent.tools.workspace import Workspace
from bot.persistence.errors import StoreUnavailable
from bot.persistence.memories import Memory
from bot.runs.rooms import Rooms
from bot.store.memories import Memories

log = structlog.get_logger()


class _AsItIs(ToolError):
    """The file is as it must be."""


@dataclass(frozen=True, slots=True)
class Filing:
    """Writes memory files."""

    store: Memories
    rooms: Rooms

    async def settle(self) -> bool:
        """Bring all files up to date that are behind; False if that must be tried again."""
        try:
            done = all([await self._file(room, path) for room, path in await self.store.behind()])
        except StoreUnavailable:
            done = False
        if not done:
            self.store.waits.set()
        return done

    async def _file(self, room: str, path: str) -> bool:
        workspace = Workspace(self.rooms.root, tuple(filter(None, room.split("/"))))
        loop, found = asyncio.get_running_loop(), list[Memory]()

        def change(before: bytes | None, _: bytes) -> bytes:
            found[:] = asyncio.run_coroutine_threadsafe(self.store.of_file(room, path), loop).result()
            old = (before or b"").decode("utf-8", "surrogateescape")
            new = _changed(old, found)
            if new == old:
                raise _AsItIs
            after, whole = new.encode("utf-8", "surrogateescape"), not _without(old, found).strip()
            # a file that is nothing but memories bears what they bear, and no more what is taken back
            told = [each for each in found if each.stays and (whole or each.state == "keeping")]
            bears = merged(one for each in told for one in each.origins)
            name = workspace.whole(workspace.relative(path))
            self.rooms.lineage.rewritten(name, before, after, bears, keeps=not whole, otherwise=())
            return after

        try:
            with suppress(_AsItIs):
                await workspace.write(path, b"", "append", change)
        except (ToolError, OSError) as error:
            log.warning("a memory file cannot be written", room=room, path=path, reason=str(error))
            return False
        await self.store.filed(found)
        return True


def entry_of(text: str, time: str, *, by_itself: bool) -> str:
    """Return the lines of a memory file that a memory is: an item of a list. time: of the day.

    by_itself: nobody reads along where it was written, so the lines are marked.
    """
    lines = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    entry = f"- {time} {indent(lines, '  ').lstrip()}\n"
    return marked(b"", entry.encode()).decode() if by_itself else entry


def _changed(text: str, memories: Sequence[Memory]) -> str:
    """Return the content of a file as it must be."""
    stay = {one.entry for one in memories if one.stays}
    gone = [one for one in memories if one.state == "taking" and one.entry not in stay]
    text = _without(text, gone)
    for one in memories:
        if one.state == "keeping" and not _in_file(one.entry)(text):
            text += "\n" * (not text.endswith("\n") and text != "") + one.entry
    return text


def _without(text: str, memories: Sequence[Memory]) -> str:
    for one in memories:
        if found := _in_file(one.entry)(text):
            text = text[: found.start()] + text[found.end() :]
    return text


def _in_file(entry: str) -> Callable[[str], re.Match[str] | None]:
    """Return what finds an entry in a file, but not a longer one that begins with it."""
    return re.compile(rf"^{re.escape(entry.rstrip())}(?:\n(?!  )|\Z)", re.MULTILINE).search
