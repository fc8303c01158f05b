"""Rooms: in which folder the tools of a session work, and what of it nobody else sees.

It follows from the session's key, the configuration and who is let in, never from what somebody writes. Where owners
alone can write it is the workspace; all other rooms lie below that, so that owners reach them.

| session, behind `agent:main:` | room |
| --- | --- |
| `console:…` (the terminal, commands of this machine), `job:<id>` | the workspace |
| direct, of somebody who is an owner under each of their ids | the workspace |
| direct, of anybody else | `people/<channel>-<id>`; of a person with several ids `people/person-<name>` |
| `http:direct:<name>` | the workspace with `gateway.token`, else `people/http-<name>` |
| groups and channels, with their threads | `groups/<channel>-<id>`, for owners who write there, too |
| `main` | the workspace, but `groups/main` as soon as anybody but owners may write directly (`dm_scope: main`) |

Beats and children of a session have its room.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.images import Images
from agent.tools.base import Tool
from agent.tools.output import Overflow
from agent.tools.workspace import Workspace
from agent.workspace_files import create_room
from bot.people.accounts import Accounts
from bot.people.people import People
from channels.session_key import DmScope, ParsedKey, escaped, parse
from channels.settings import AccountSection

# Rooms whose furniture is kept; it is made anew when there are more.
MOST = 1000
_LONGEST = 128  # of the name of a folder; file systems take 255 bytes
_NAMED = ("http", "person")  # what stands before names that people choose, which are written small


@dataclass(frozen=True, slots=True)
class Room:
    """path: an absolute folder. owned: nobody but owners can write in its sessions. name: its path in the workspace,
    empty for the workspace itself."""

    path: Path
    owned: bool
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """What runs in a room work with. workspace: its files. overflow: keeps long results there; images: read there."""

    room: Room
    workspace: Workspace
    overflow: Overflow
    images: Images
    tools: Sequence[Tool[Any]]


@dataclass(eq=False, kw_only=True)
class Rooms:
    """root: the workspace, absolute. scope, links: as in `sessions` of the configuration; links: the ids of a person by
    their name. has_token: programs without the gateway's token get in nowhere. furnish: makes what is in a room;
    it is to be set before somebody enters one."""

    root: Path
    people: People
    accounts: Accounts
    scope: DmScope
    links: Mapping[str, Sequence[str]]
    has_token: bool
    furnish: Callable[[Room, Workspace], Furniture] = field(init=False)
    _kept: dict[str, Furniture] = field(default_factory=dict, init=False)
    _of: dict[str, Room] = field(default_factory=dict, init=False)  # by session, for what people were at this revision
    _revision: int = field(default=0, init=False)
    _made: set[str] = field(default_factory=set, init=False)
    # Two sessions of one room may begin at once, as those of one person with two accounts of the bot.
    _making: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def of(self, session_key: str) -> Room:
        """The room of a session, as things stand now. Raises ValueError for what is no session key."""
        if self._revision != self.people.revision or len(self._of) >= MOST:
            self._of, self._revision = {}, self.people.revision
        if session_key not in self._of:
            name = self._name(parse(session_key))
            self._of[session_key] = Room(self.root / name, not name, name)
        return self._of[session_key]

    def inside(self, session_key: str) -> Furniture:
        """What is in it; the folder may not be there yet."""
        room = self.of(session_key)
        if room.name not in self._kept:
            if len(self._kept) >= MOST:
                self._kept.clear()
                self._made.clear()
            way = tuple(filter(None, room.name.split("/")))
            self._kept[room.name] = self.furnish(room, Workspace(self.root, way))
        return self._kept[room.name]

    def overflow_of(self, session_key: str) -> Overflow:
        """What keeps the long results of a session."""
        return self.inside(session_key).overflow

    async def enter(self, session_key: str) -> Furniture:
        """The same, once the folder and its files are there. Raises OSError, or WorkspaceError where it cannot be made,
        as when a link lies in its place."""
        found = self.inside(session_key)
        name = found.room.name
        async with self._making:
            if name and name not in self._made:
                above = Workspace(self.root, (name.partition("/")[0],))
                await asyncio.to_thread(create_room, found.workspace, above)
                self._made.add(name)
        return found

    def writers(self, key: ParsedKey) -> Sequence[str]:
        """The ids (`<channel>:<id>`) of the one person who can write in a session; none where others can as well."""
        if key.kind != "direct" or key.channel == "http":
            return ()
        if key.channel:
            return (f"{key.channel}:{key.id}",)
        alone = () if key.id in self.links and ":" not in key.id else (key.id,)
        return (*self.links.get(key.id, ()), *alone)

    def _name(self, key: ParsedKey) -> str:
        if key.kind == "job" or key.channel == "console":
            return ""
        if key.kind == "main":
            return "groups/main" if self.scope == "main" and self._others_write() else ""
        if (key.channel == "http" and self.has_token) or self._is_owners(self.writers(key)):
            return ""
        _, _, channel, *rest = key.base.split(":")  # as they stand in the key, where no two are the same
        one = rest[-1] if not key.channel else rest[rest.index(key.kind) + 1]
        if not key.channel and ":" in key.id and key.id not in self.links:
            channel, one = map(escaped, key.id.split(":", 1))
        elif not key.channel:
            channel = "person"
        return f"{'people' if key.kind == 'direct' else 'groups'}/{_folder(channel, one)}"

    def _is_owners(self, ids: Sequence[str]) -> bool:
        return bool(ids) and all(map(self.people.owns, ids))

    def _others_write(self) -> bool:
        """Whether anybody but owners may write to some account directly."""
        for account in self.accounts:
            if not isinstance(account.section, AccountSection) or account.section.dm.policy == "disabled":
                continue
            dm, channel = account.section.dm, account.channel.name
            listed = all(self.people.owns(f"{channel}:{one}") for one in dm.allow_from)
            if dm.policy == "open" or not listed or (dm.policy == "pairing" and self.people.has_guests(channel)):
                return True
        return False


def _folder(channel: str, one: str) -> str:
    """The name of a folder, also where case does not count: of two rooms never the same.

    channel, one: as a session key has them, so that there are letters, digits and `%_.-~@=` in them alone. The first
    `-` ends the channel. Letters are written in one case, the others as `%` and their code; names in small letters
    have a `=` at their end, unless they are of a kind that always is.
    """
    letters = re.sub("%..", "", one)
    name = f"{channel.replace('-', '%2D')}-"
    if channel not in _NAMED and letters == letters.upper():
        name += one
    else:
        name += re.sub("%..|[A-Z]", lambda found: found[0] if found[0][1:] else f"%{ord(found[0]):02X}", one)
        name += "" if channel in _NAMED else "="
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[: _LONGEST - len(digest) - 1]}={digest}"
