"""The command /memory: what waits, what was written when, where and why, and the files; it keeps and takes back.

Owners decide about the workspace and about groups, everybody else about their own room, and all of them in a direct
chat: what waits is shown nowhere else.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from agent.tools.workspace import NotThere, Workspace, WorkspaceError
from bot import wording
from bot.approvals.words import prose
from bot.clock import Clock
from bot.commands.registry import Answer, Arguments, Call, Command, Effect, Say
from bot.memory import words
from bot.memory.filing import Filing
from bot.persistence.memories import Memory
from bot.persistence.turns import CommandKept
from channels.message import SEVERAL, InboundKind
from channels.outgoing import Planned
from channels.sources import sentence

_FILE, _FOLDER = "MEMORY.md", "memory"
# The most files that are listed, and the bytes of each in which its first line is looked for.
_MOST, _READ = 30, 4096
# The most memories that are listed of those that wait, and of those that were written.
_WAITING, _WRITTEN = 20, 30
_NOTHING = "I keep nothing in memory here yet."
_HOW = "`/memory drop NUMBER` takes one back, `/memory drop SOURCE` all that came from there, such as example.com."


class MemoryArguments(Arguments):
    """The arguments of /memory."""

    action: Literal["list", "keep", "drop"] = Field(
        default="list", description="list; keep what waits; drop what waits or was written."
    )
    what: str = Field(default="", description="The number of a memory, or a source: all that came from there.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Show(Effect):
    """Shows what waits, each with its buttons, and what was written."""

    head: str
    waiting: Sequence[Memory]
    clock: Clock

    async def persist(self, answer: Answer) -> CommandKept:
        """Answer with several messages."""
        seq = answer.call.seq
        blocks = [*answer.blocks(self.head)]
        for one in self.waiting:
            text = words.waiting(one, self.clock.stamp(one.written_at))
            shown = answer.blocks(text, words.buttons(one), source=sentence("cmd", seq, "memory", one.memory_id))
            blocks += shown
        return await answer.say(seq, blocks, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide(Effect):
    """Keeps memories that wait, or takes memories back."""

    filing: Filing
    ids: Sequence[int]
    keep: bool

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist it with its answer; the files follow, after a crash at the next start."""

        def tell(count: int) -> Sequence[Planned]:
            if not count:
                return answer.blocks("That was decided before.", private=True)
            said = f"{count} {'memory is' if count == 1 else 'memories are'} {'kept' if self.keep else 'gone'}."
            return () if answer.call.message.kind is InboundKind.BUTTON else answer.blocks(said)

        seq, chosen = answer.call.seq, await answer.chosen()
        kept = await self.filing.store.decide(seq, self.ids, self.keep, chosen, tell)
        await self.filing.settle()
        return kept


def build(filing: Filing, clock: Clock) -> Command:
    """Make the command."""
    rooms = filing.rooms

    async def run(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, MemoryArguments)
        room = rooms.of(call.session_key).name
        files = await asyncio.to_thread(lambda: list(_lines(rooms.inside(call.session_key).workspace)))
        if call.message.origin.place.kind in SEVERAL:
            return Say("\n".join(files) or _NOTHING)
        if not call.by_owner and not room.startswith("people/"):  # several people write there
            return Say("Only owners of this bot decide about that.", mistake=True)
        found = await filing.store.of_room(None if call.by_owner else room)
        if arguments.action == "list":
            waiting = [one for one in found if one.state == "pending"]
            written = [_written(one, clock) for one in reversed(found) if one.stays][:_WRITTEN]
            count = f"{len(waiting)} wait for you, and nothing reads them before." if waiting else ""
            text = "\n\n".join(filter(None, ("\n".join(files), "\n".join((*written, _HOW)) if written else "", count)))
            return Show(head=text or _NOTHING, waiting=waiting[:_WAITING], clock=clock)
        meant = _meant(found, arguments.what)
        if not meant or (arguments.action == "keep" and len(meant) > 1):
            return Say(f"Say which by its number. `/memory` lists them. {_HOW}", mistake=True)
        return Decide(filing=filing, ids=meant, keep=arguments.action == "keep")

    help_ = "What I keep in memory here, and what waits for you."
    return Command(name="memory", help=help_, run=run, arguments=MemoryArguments, guests="direct", decides=True)


def _meant(found: Sequence[Memory], what: str) -> Sequence[int]:
    """Return the numbers of the memories that are meant by a number or a source."""
    if what.isascii() and what.isdecimal():
        return [one.memory_id for one in found if one.memory_id == int(what)]
    return [one.memory_id for one in found if what.strip().casefold() in words.names(one)]


def _written(one: Memory, clock: Clock) -> str:
    first = wording.one_line(one.entry.partition("\n")[0].removeprefix("- ")).replace("`", "'")
    place = "/".join(filter(None, (one.room, one.path)))
    return f"- {one.memory_id}: `{first}` in {place}, {clock.stamp(one.written_at)}, {prose(words.of(one))}"


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
