"""Forgets a person: what they wrote and what came of it, in the store, in their room and in what Hark keeps besides.

What they run is stopped first. Each step can be repeated, and the store says until the last one that it was begun, so
that a start after a crash goes on.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from pydantic_core import PydanticCustomError

from agent.removal import remove
from agent.tools.background import Background
from agent.tools.output import FOLDER as RESULTS
from bot.clock import Clock
from bot.config.values import check_person
from bot.persistence.errors import StoreUnavailable
from bot.runs.lanes import Lanes
from bot.runs.media import FOLDER as MEDIA
from bot.runs.media import folder_of, saved_as
from bot.runs.rooms import Rooms
from bot.sessions.service import EXPORTS
from bot.store.forgetting import Touched, Whom
from bot.store.store import Store
from channels.session_key import escaped, parse

log = structlog.get_logger()

# Copies of the store that Hark has made itself, requests that were written down, and indexes of rooms, made anew.
_COPIES = (
    "hark.db.v*",
    "hark.db.damaged-*",
    "hark.db.rescued-*",
    "hark.db.reading*",
    "payloads*.jsonl",
    "memory-*.db*",
)
# How often a reader that keeps old pages is waited for, and seconds between.
_TRIES, _PAUSE = 20, 0.05


class NotForgotten(Exception):
    """Nobody was forgotten; the text says why."""


@dataclass(eq=False, kw_only=True)
class Forget:
    """Forgets people."""

    store: Store
    clock: Clock
    rooms: Rooms
    # The commands that tools have started in the background.
    background: Background
    # The state directory.
    state: Path
    # Ends the runs of turns, and drops cached contexts of transcripts.
    lanes: Lanes
    drop_context: Callable[[str], None]
    # Brings memory files up to date; False if that must be tried again.
    file_memories: Callable[[], Awaitable[bool]]

    async def forget_person(self, who: str) -> str:
        """Forget a person, named as "channel:id"; returns what is to be said about it.

        Raises NotForgotten, and StoreUnavailable, after which the next start goes on.
        """
        try:
            check_person(who)
        except PydanticCustomError as error:
            raise NotForgotten(f"`{who}` is nobody. Allowed: {error.message()}.") from None
        channel, _, sender = who.partition(":")
        keys, known = await self.store.forgetting.session_keys(channel, sender)
        own = [key for key in keys if self._is_theirs(key, channel, sender)]
        if not known and not own:
            raise NotForgotten(f"Nothing is stored of {who}. `hark people` and `hark sessions list` show who is known.")
        rooms = frozenset(self.rooms.of(key).name for key in own)  # before they lose what an owner has
        whom, turns = await self.store.forgetting.begin(Whom(channel, sender, frozenset(own), rooms))
        for key in whom.sessions:
            self.background.stop(key)
        await self.lanes.ended(turns)
        self.rooms.people.shut_out(who, blocked=False)
        touched = await self.store.forgetting.rows(whom, saved_as)
        for transcript_id in touched.transcripts:
            self.drop_context(transcript_id)
        await asyncio.to_thread(self._delete_files, whom, touched)
        if not await self.file_memories():
            raise StoreUnavailable("a memory file cannot be written; the next start goes on")
        await self.store.search.clear()
        await self._wipe()
        await self.store.forgetting.end(who)
        log.info("a person was forgotten", sessions=len(whom.sessions), changed=len(touched.transcripts))
        return self._told(whom)

    async def go_on(self) -> None:
        """Forget those whom a crash has left half forgotten."""
        for who in await self.store.forgetting.begun():
            await self.forget_person(who)

    def _is_theirs(self, key: str, channel: str, sender: str) -> bool:
        """Whether nobody else writes in a session: direct ones, their own in a group, and what belongs to one."""
        with contextlib.suppress(ValueError):
            found = parse(key)
            if found.kind in ("group", "channel"):
                return found.channel == channel and found.id.endswith(f"/{escaped(sender)}")
            return f"{channel}:{sender}" in self.rooms.writers(found)
        return False

    def _delete_files(self, whom: Whom, touched: Touched) -> None:
        """Delete their rooms, their files in rooms of others, and copies of the store. Blocks. Raises OSError."""
        for name in filter(None, whom.rooms):
            self.rooms.forget(name)
            _remove(self.rooms.root / name)
        if "" in whom.rooms:  # the workspace stays, which other owners have, too
            _remove(self.rooms.root / RESULTS)
            for key in whom.sessions:
                _remove(self.rooms.root / folder_of(key))
        for key, file in touched.files:
            _remove(self.rooms.of(key).path / file)
        for key in touched.sessions:
            _remove(self.rooms.of(key).path / RESULTS)
        _remove(self.state / EXPORTS)
        for pattern in _COPIES:
            for path in self.state.glob(pattern):
                _remove(path)

    async def _wipe(self) -> None:
        for _ in range(_TRIES):
            if await self.store.forgetting.wipe():
                return
            await self.clock.sleep(_PAUSE)
        raise StoreUnavailable("old pages of the store are still being read; the next start goes on")

    def _told(self, whom: Whom) -> str:
        said = f"{whom.name} is forgotten: {len(whom.sessions)} sessions, their rows, room, files and search index."
        if whom.name in self.rooms.people.configured:
            said += " They are still an owner because `owners` in the configuration says so."
        if "" in whom.rooms:
            said += f" They shared the workspace: look there yourself, except in {MEDIA}/ of their sessions."
        return (
            f"{said} Copies of the store that Hark had made for a migration or of a damaged file are deleted, too;"
            " what `hark backup` or others have copied is not, nor log files, nor what the platform keeps."
        )


def _remove(path: Path) -> None:
    """Delete a file or a folder, if it is there; what a link leads to stays. Raises OSError."""
    if error := remove(path):
        raise error
