"""Rooms: the folder in which the tools of a session work, which other people's sessions cannot see.

The room depends on the session's key, the configuration and who is let in, never on what somebody writes. Sessions in
which only owners can write have the workspace; all other rooms are folders below it, so that owners can reach them.

| session, behind `agent:main:` | room |
| --- | --- |
| `console:…` (the terminal, commands of this machine), `job:<id>` | the workspace |
| `job:<id>@<conversation>` | that of the conversation, in which others than owners read what the job says |
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
from bot.runs.guest_disk import GuestDisk
from bot.runs.lineage import KnownFiles
from bot.skills.shelf import Shelf
from channels.message import SEVERAL, Place
from channels.session_key import DmScope, ParsedKey, escaped, parse, read_in
from channels.settings import AccountSection

# The most rooms whose furniture is cached, and sessions whose room is; with more the cache is emptied.
MOST = 1000
_LONGEST = 128  # the most bytes of a folder's name; file systems allow 255
_NAMED = ("http", "person")  # channels of names that people choose; these folders are always in small letters


@dataclass(frozen=True, slots=True)
class Room:
    """The folder in which the tools of a session work."""

    # Absolute.
    path: Path
    # Whether nobody but owners can write in its sessions.
    owned: bool
    # The path below the workspace; empty for the workspace itself.
    name: str

    def sees_all(self, place: Place, *, by_owners: bool) -> bool:
        """Return whether words of every conversation may be shown in a session of the room that answers in a place.

        Owners alone read them then: they ask, nobody else writes in the session, and its answers go to no group.
        """
        return by_owners and self.owned and place.kind not in SEVERAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """What the runs in a room work with."""

    room: Room
    # The files of the room.
    workspace: Workspace
    # Saves long results in the room.
    overflow: Overflow
    # Loads images from the room.
    images: Images
    tools: Sequence[Tool[Any]]


@dataclass(eq=False, kw_only=True)
class Rooms:
    """Finds the room of each session, and makes its folder and furniture when it is first used."""

    # The workspace, absolute.
    root: Path
    people: People
    accounts: Accounts
    # `sessions.dm_scope` of the configuration.
    scope: DmScope
    # The ids of each person with several, by the name of the person.
    links: Mapping[str, Sequence[str]]
    # Whether the gateway has a token, without which programs are refused.
    has_token: bool
    # Makes the furniture of a room; must be set before a room is entered.
    furnish: Callable[[Room, Workspace], Furniture] = field(init=False)
    # Knows what the files of the workspace were made from; must be set before a room is entered.
    lineage: KnownFiles = field(init=False)
    # The skills that lie in the workspace; must be set before a turn begins.
    skills: Shelf = field(init=False)
    # Bounds what guests write; None: nothing does.
    disk: GuestDisk | None = field(default=None, init=False)
    _kept: dict[str, Furniture] = field(default_factory=dict, init=False)
    _of: dict[str, Room] = field(default_factory=dict, init=False)  # rooms by session, valid for `_revision` of people
    _revision: int = field(default=0, init=False)
    _made: set[str] = field(default_factory=set, init=False)
    # Two sessions of a room may begin at once, such as those of one person on two accounts of the bot.
    _making: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def refurnish(self, furnish: Callable[[Room, Workspace], Furniture]) -> None:
        """Furnish all rooms anew; a run that is in one keeps what it has."""
        self.furnish = furnish
        self._kept.clear()

    def of(self, session_key: str) -> Room:
        """Return the present room of a session. Raises ValueError for what is no session key."""
        if self._revision != self.people.revision or len(self._of) >= MOST:
            self._of, self._revision = {}, self.people.revision
        if session_key not in self._of:
            name = self._name(parse(session_key))
            self._of[session_key] = Room(self.root / name, not name, name)
        return self._of[session_key]

    def sees(self, session_key: str, place: Place, other: str, *, by_owners: bool) -> bool:
        """Return whether words of another session may be shown in a session that answers in a place.

        Where `Room.sees_all` does not hold, a conversation sees itself alone, with its threads and sub-agents.
        """
        here = self.of(session_key)
        if other == session_key or here.sees_all(place, by_owners=by_owners):
            return True
        try:
            return not here.owned and self.of(other) == here
        except ValueError:  # of a file that was imported
            return False

    def inside(self, session_key: str) -> Furniture:
        """Return the furniture of the room of a session; its folder may not exist yet."""
        room = self.of(session_key)
        if room.name not in self._kept:
            if len(self._kept) >= MOST:
                self._kept.clear()
                self._made.clear()
            way = tuple(filter(None, room.name.split("/")))
            workspace = Workspace(self.root, way)
            if not room.owned and self.disk is not None:
                workspace.guard = self.disk.guard(room.name)
            self._kept[room.name] = self.furnish(room, workspace)
        return self._kept[room.name]

    def overflow_of(self, session_key: str) -> Overflow:
        """Return what saves the long results of a session."""
        return self.inside(session_key).overflow

    async def enter(self, session_key: str) -> Furniture:
        """Return the furniture of the room of a session, once its folder and first files exist.

        Raises OSError, or WorkspaceError where the folder cannot be made, such as when a link is in its place.
        """
        found = self.inside(session_key)
        name = found.room.name
        async with self._making:
            if name and name not in self._made:
                above = Workspace(self.root, (name.partition("/")[0],))
                await asyncio.to_thread(create_room, found.workspace, above)
                self._made.add(name)
        return found

    def forget(self, name: str) -> None:
        """Forget that the folder of a room, which is about to be deleted, exists."""
        self._kept.pop(name, None)
        self._made.discard(name)

    def writers(self, key: ParsedKey) -> Sequence[str]:
        """Return the ids (`<channel>:<id>`) of the only person who can write in a session; empty if several can."""
        if key.kind != "direct" or key.channel == "http":
            return ()
        if key.channel:
            return (f"{key.channel}:{key.id}",)
        alone = () if key.id in self.links and ":" not in key.id else (key.id,)
        return (*self.links.get(key.id, ()), *alone)

    def _name(self, key: ParsedKey) -> str:
        if key.kind == "job" and (conversation := read_in(key)):
            try:
                return self._name(parse(conversation))
            except ValueError:  # too long to stand in a key
                return f"groups/{_folder('job', key.base.rpartition(':')[2])}"
        if key.kind == "job" or key.channel == "console":
            return ""
        if key.kind == "main":
            return "groups/main" if self.scope == "main" and self._others_write() else ""
        if (key.channel == "http" and self.has_token) or self._is_owners(self.writers(key)):
            return ""
        _, _, channel, *rest = key.base.split(":")  # as the key has them, escaped, so that no two ids are equal
        one = rest[-1] if not key.channel else rest[rest.index(key.kind) + 1]
        if not key.channel and ":" in key.id and key.id not in self.links:
            channel, one = map(escaped, key.id.split(":", 1))
        elif not key.channel:
            channel = "person"
        return f"{'people' if key.kind == 'direct' else 'groups'}/{_folder(channel, one)}"

    def _is_owners(self, ids: Sequence[str]) -> bool:
        return bool(ids) and all(map(self.people.owns, ids))

    def _others_write(self) -> bool:
        """Return whether anybody but owners may send direct messages to any account."""
        for account in self.accounts:
            if not isinstance(account.section, AccountSection) or account.section.dm.policy == "disabled":
                continue
            dm, channel = account.section.dm, account.channel.name
            listed = all(self.people.owns(f"{channel}:{one}") for one in dm.allow_from)
            if dm.policy == "open" or not listed or (dm.policy == "pairing" and self.people.has_guests(channel)):
                return True
        return False


def channel_of(room: Room) -> str:
    """Return the channel of a room as its name has it; empty for the workspace, `person` for somebody on several."""
    return room.name.partition("/")[2].partition("-")[0]


def of_one_person(links: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the names of all workspaces of a person with several ids, by the name of each. links: see `Rooms`."""
    found = dict[str, tuple[str, ...]]()
    for person, ids in links.items():
        each = (one.partition(":") for one in ids)
        rooms = [_folder(escaped(channel), escaped(one)) for channel, _, one in each]
        names = tuple(f"people/{room}" for room in (_folder("person", escaped(person)), *rooms))
        found |= dict.fromkeys(names, names)
    return found


def _folder(channel: str, one: str) -> str:
    """Return the name of a folder, which differs for any two rooms even where the file system ignores case.

    channel, one: as the session key has them, with letters, digits and `%_.-~@=` only. The first `-` ends the channel.
    An id without small letters stays as it is; in any other id capital letters become `%` and their code, and `=` is
    added at the end. For channels in `_NAMED` capital letters are always replaced and no `=` is added. A name that is
    too long ends with a hash of all of it.
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
