"""What people and programs do with sessions and their transcripts: the one implementation below chat, CLI and HTTP."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from bot.clock import Clock
from bot.config.model import PruneTranscripts
from bot.persistence.errors import StoreUnavailable
from bot.persistence.sessions import Hit, Line, TranscriptView
from bot.sessions import foreign
from bot.sessions.foreign import NotImported
from bot.sessions.formats import ENDINGS, Format, written
from bot.store.sessions import BATCH
from bot.store.store import Store
from channels.session_key import parse

log = structlog.get_logger()

# Seconds between two looks for lines that are not in the index yet.
FILL_EVERY = 10.0
# The most batches that a search reads itself before it looks, so that it finds what was said just now.
_CATCH_UP = 25
# Seconds between batches of the index, so that nobody waits long for the disk.
_PAUSE = 0.05
MOST_HITS, _MOST_LOOKED = 20, 1000
# The most bytes of a file that is imported.
MOST_BYTES = 64 * 1024 * 1024
# The folder of files that are sent, and for how many seconds they are kept.
EXPORTS = "exports"
_KEEP = 2 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Exported:
    """A transcript as a file."""

    # What the file is called.
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What has become of a file that was imported."""

    session: str
    transcript: str
    # The number of lines that are new, and of lines of the file that could not be read.
    added: int
    skipped: int


@dataclass(eq=False, kw_only=True)
class Sessions:
    """Lists, shows, searches, exports, imports and prunes transcripts. All methods raise StoreUnavailable."""

    store: Store
    clock: Clock
    # The state directory.
    state: Path
    # Takes secrets out of a text.
    clean: Callable[[str], str]
    pruning: PruneTranscripts

    async def listed(self, session: str | None = None, limit: int = -1) -> Sequence[TranscriptView]:
        """Return the transcripts of a session, or of all, see the store."""
        return await self.store.sessions.listed(session, limit)

    async def show(self, name: str, session: str | None = None) -> tuple[str, str, Sequence[Line]]:
        """Return session, id and all lines of a transcript, see `named` of the store. Raises NoSuchTranscript."""
        key, transcript = await self.store.sessions.named(name, session)
        lines: list[Line] = []
        while found := await self.store.sessions.lines(transcript, lines[-1].seq if lines else 0):
            lines += found
            if len(found) < BATCH:
                break
        return key, transcript, lines

    async def search(
        self, words: str, limit: int = MOST_HITS, shown: Callable[[str], bool] | None = None
    ) -> Sequence[Hit]:
        """Return the newest lines in which all words stand. shown: whether lines of a session may be shown.

        With it the newest `_MOST_LOOKED` lines are looked at.
        """
        for _ in range(_CATCH_UP):
            if not await self.store.search.fill():
                break
        if shown is None:
            return await self.store.search.find(words, limit)
        found = await self.store.search.find(words, _MOST_LOOKED)
        return [one for one in found if shown(one.session)][:limit]

    async def export(self, name: str, form: Format) -> Exported:
        """Return a transcript as a file. Raises NoSuchTranscript."""
        key, transcript, lines = await self.show(name)
        begun = next(one.created_at for one in await self.listed(key) if one.transcript == transcript)

        def make() -> str:
            return self.clean(written(key, transcript, begun, lines, form))

        return Exported(f"hark-{transcript[:14]}{ENDINGS[form]}", await asyncio.to_thread(make))

    async def export_file(self, name: str, form: Format) -> Path:
        """Write a transcript to a file in the state directory, from where it is sent. Raises NoSuchTranscript."""
        exported = await self.export(name, form)
        folder = self.state / EXPORTS / self.clock.new_id()

        def write() -> Path:
            folder.mkdir(parents=True, mode=0o700)
            with open(os.open(folder / exported.name, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
                file.write(exported.text.encode())
            return folder / exported.name

        return await asyncio.to_thread(write)

    async def take_in(self, text: str, name: str, session: str = "", keys: Mapping[str, str] | None = None) -> TakenIn:
        """Import a transcript; it is not made the current one of its session. name: of the file.

        session: the key of its session; empty: what the file says. keys: see `foreign.read`. Raises NotImported.
        """
        if session:
            try:
                parse(session)
            except ValueError as error:
                raise NotImported(f"{error}; `hark sessions list` shows some.") from None
        found = await asyncio.to_thread(foreign.read, text, name, session, self.clock.now(), self.clean, keys or {})
        added = 0
        for begin in range(0, len(found.lines), BATCH):
            added += await self.store.sessions.take_in(found, begin)
        return TakenIn(found.session, found.transcript, added, found.skipped)

    async def take_in_file(self, path: Path, session: str = "") -> TakenIn:
        """Import a file of this machine, see `take_in`. Raises NotImported."""
        try:
            text, keys = await asyncio.to_thread(_load, path)
        except OSError as error:
            raise NotImported(f"{path} cannot be read: {error.strerror or error}.") from None
        return await self.take_in(text, path.name, session, keys)

    async def prune(self, older_than: timedelta | None, keep: int | None) -> int:
        """Delete transcripts that nobody has used for so long, or beyond the newest `keep` of each session.

        None: not by that. Current ones and those of open turns stay. Returns how many go.
        """
        before = None if older_than is None else self.clock.now() - int(older_than.total_seconds() * 1000)
        marked = await self.store.sessions.mark_old(before, keep)
        while await self.store.sessions.drop_marked():  # whoever else writes gets in between
            pass
        return marked

    async def tidy(self) -> None:
        """Prune as configured, go on with what was being pruned, and delete files that were sent long ago."""
        await self.prune(self.pruning.max_age, self.pruning.max_transcripts)
        await asyncio.to_thread(_delete_old, self.state / EXPORTS, self.clock.now() / 1000 - _KEEP)

    async def serve(self) -> None:
        """Fill the search index with what is said, until cancelled."""
        told, read = "", -1
        while True:
            await self.clock.sleep(FILL_EVERY)
            try:
                newest = await self.store.reads.last_event()
                if newest == read:  # whatever else adds or deletes lines has them read by the next search
                    continue
                while await self.store.search.fill():
                    await self.clock.sleep(_PAUSE)
                told, read = "", newest
            except StoreUnavailable as error:
                if str(error) != told:
                    told = str(error)
                    log.warning("the search index is not filled", reason=told)


def _load(path: Path) -> tuple[str, Mapping[str, str]]:
    """Return the text of a file, and OpenClaw's session keys by session id if it lies beside its sessions.json.

    Raises OSError or NotImported.
    """
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise NotImported(f"{path} is no file of at most {MOST_BYTES // 1024**2} MB.")
    keys: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, RecursionError):
        named: Any = json.loads(path.with_name("sessions.json").read_text(encoding="utf-8"))
        if isinstance(named, dict):
            found = ((key, one.get("sessionId")) for key, one in named.items() if isinstance(one, dict))
            keys = {name: key for key, name in found if isinstance(name, str)}
    return path.read_text(encoding="utf-8", errors="replace"), keys


def _delete_old(folder: Path, before: float) -> None:
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
                path.parent.rmdir()
