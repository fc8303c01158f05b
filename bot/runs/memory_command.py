"""The command /memory, which lists what the bot keeps in files about a conversation: MEMORY.md and the folder memory/.

They are those of the room of the session, which its tools read and write.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

from agent.tools.workspace import NotThere, Workspace, WorkspaceError
from bot import wording
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.runs.rooms import Rooms

_FILE, _FOLDER = "MEMORY.md", "memory"
# The most files that are listed, and the bytes of each in which its first line is looked for.
_MOST, _READ = 30, 4096


def build(rooms: Rooms) -> Command:
    """Make the command. rooms: the folders in which turns work."""

    async def show(call: Call, _: Arguments) -> Effect:
        lines = await asyncio.to_thread(lambda: list(_lines(rooms.inside(call.session_key).workspace)))
        return Say("\n".join(lines) or "I keep nothing in memory here yet.")

    return Command(name="memory", help="What I keep in memory here.", run=show, lenient=True)


def _lines(files: Workspace) -> Iterator[str]:
    """Yield a line for each file, those of the folder newest first: their names begin with the day. Blocking."""
    names = list[str]()
    with suppress(NotThere, WorkspaceError), files.descend((_FOLDER,)) as folder, os.scandir(folder) as entries:
        found = (one.name for one in entries if one.name.endswith(".md") and one.is_file(follow_symlinks=False))
        names = sorted(found, reverse=True)
    for path in (_FILE, *(f"{_FOLDER}/{name}" for name in names[:_MOST])):
        try:
            with files.open(path) as file:
                first = file.read(_READ).decode(errors="replace").strip().partition("\n")[0]
                size = file.seek(0, 2)
        except NotThere:
            continue
        except (WorkspaceError, OSError) as error:
            yield f"- {path}: {error}"
            continue
        said = wording.one_line(first.lstrip("# ")).replace("`", "'")
        yield f"- {path}, {size:,} bytes" + (f": `{said}`" if said else "")
    if len(names) > _MOST:
        yield f"- and {len(names) - _MOST} older files in {_FOLDER}/"
