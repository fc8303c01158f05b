"""Serves the memory of rooms: searches, what is recalled before a turn, and an index that is filled as files change."""

import asyncio
import contextlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import structlog

from agent.context import Context
from agent.memory import recall
from agent.memory.base import ENDING, FILE, FOLDER, MemoryEngine, MemoryUnavailable, Recollection
from agent.memory.tools import MemoryGetTool, MemorySearchTool
from agent.message import merged
from agent.tools.lineage import FileState, Lineage, Origins
from agent.tools.workspace import Workspace
from bot.clock import Clock
from bot.config.memory import Memory as Settings
from bot.memory import engine as engines
from bot.memory import ranking
from bot.memory.embeddings import BATCH, BATCH_SECONDS, QUESTION_SECONDS, Embedder, EmbeddingError, Nearness
from bot.memory.index import Found, Index
from bot.persistence.turns import BY_THEMSELVES, Turn
from bot.runs.rooms import Rooms

log = structlog.get_logger()

# Seconds that a message waits at most for what is remembered about it; the index is filled meanwhile all the same.
RECALL_SECONDS = 2.0
# Seconds for which an endpoint that has failed is left alone.
_REST = 60.0
# The most rooms whose files are watched: those used last.
_WATCHED = 200
# Milliseconds of `watchfiles`: between two looks, and until changes that follow each other are told.
_STEP, _DEBOUNCE = 250, 1000


class Memories:
    """Searches the memories of all rooms, each in an index of its own."""

    def __init__(
        self, state: Path, rooms: Rooms, clock: Clock, settings: Settings, engine: MemoryEngine | None = None
    ) -> None:
        """state: the state directory. engine: of an extension, is asked in place of the indexes unless it fails."""
        self._state, self._rooms, self._clock, self._engine = state, rooms, clock, engine
        self._indexes: OrderedDict[str, Index] = OrderedDict()
        # How rooms looked in which nothing was remembered.
        self._nothing: dict[Path, tuple[object, ...]] = {}
        self._embedder: Embedder | None = None
        self._failed_at: float | None = None
        # Set when another room is to be watched, or the endpoint was changed.
        self._changed = asyncio.Event()
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Work by these settings from now on."""
        self._settings = settings
        self._embedder = Embedder(settings.embeddings) if settings.embeddings.base_url else None
        self._failed_at = None
        self._changed.set()

    @property
    def reaches_out(self) -> bool:
        """See Memory of the agent."""
        return self._embedder is not None or getattr(self._engine, "reaches_out", self._engine is not None)

    def tools(self, room: Workspace, lineage: Lineage) -> tuple[MemorySearchTool, MemoryGetTool]:
        """Return the tools of a room."""
        return MemorySearchTool(self, room), MemoryGetTool(room, lineage)

    async def search(
        self, room: Workspace, question: str, most: int, signs: tuple[object, ...] | None = None
    ) -> Recollection:
        """See Memory of the agent.

        signs: how the room looks; if nothing is there, nothing is recalled as long as it looks like this.
        """
        if self._engine is not None:
            try:
                hits, read = await engines.ask(self._engine, room, question, most)
                return Recollection(hits, await self._origins(read))
            except Exception as error:
                log.error("a memory engine has failed; Hark searches itself", said=f"{type(error).__name__}: {error}")
        index = self._index(room)
        near = await self._near(question)
        today = datetime.fromtimestamp(self._clock.now() / 1000, self._clock.zone).date()

        def find() -> tuple[Found, Recollection]:
            found = index.find(question, near)
            return found, Recollection(ranking.ranked(found, near.like if near else {}, today, most))

        found, ranked = await asyncio.to_thread(find)
        if near and near.outdated:
            self._changed.set()
        if signs is not None and not found.total and not found.has_days:
            self._nothing[room.root] = signs
        shown = {hit.path for hit in ranked.hits}
        states = {row.path: row.state for row in found.rows.values() if row.path in shown}
        return Recollection(ranked.hits, await self._origins([*states.values()]))

    async def _origins(self, states: Sequence[FileState]) -> Origins:
        """Return what files came from; one of which nothing is known was written by the operator, as with `read`."""
        known = await self._rooms.lineage.of(states) if states else ()
        return merged(origin for one in known for origin in one or ())

    async def recall(self, turn: Turn, context: Context) -> None:
        """Put what is remembered about the newest message of a turn behind it, in place of what stood there before.

        Whatever keeps it from being found, the turn goes on without.
        """
        if context.recalled is not None:
            context.recall(None)
        if self._settings.recall == "off" or turn.kind in BY_THEMSELVES:
            return
        root = self._rooms.of(turn.session_key).path
        signs = _signs(root)
        if self._nothing.get(root) == signs:
            return
        room = self._rooms.inside(turn.session_key).workspace
        try:
            async with asyncio.timeout(RECALL_SECONDS):
                found = await self.search(room, turn.messages[-1].text, recall.MOST, signs)
        except TimeoutError:
            log.info("nothing was recalled, for it took too long", turn=turn.turn_id)
            return
        except Exception as error:
            log.warning("nothing was recalled", turn=turn.turn_id, reason=str(error))
            return
        context.recall(recall.beside(found))

    async def serve(self) -> None:
        """Keep the indexes of rooms that were searched up to date as their files change, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            watched = {folder: index for index in self._indexes.values() for folder in _folders(index.room)}
            filling = asyncio.ensure_future(self._fill(list(self._indexes.values())))
            stop = asyncio.ensure_future(self._changed.wait())
            try:
                watching = asyncio.ensure_future(self._watch(watched)) if watched else None
                await asyncio.wait([stop, *([watching] if watching else ())], return_when=asyncio.FIRST_COMPLETED)
                if watching and watching.done() and (error := watching.exception()):
                    log.warning("memory is not watched, only looked at before each search", reason=str(error))
            finally:
                for task in filter(None, (filling, stop, watching)):
                    task.cancel()
                await asyncio.gather(*filter(None, (filling, stop, watching)), return_exceptions=True)

    async def _watch(self, watched: dict[Path, Index]) -> None:
        import watchfiles

        def concerns(_: watchfiles.Change, path: str) -> bool:
            return path.endswith((ENDING, f"/{FOLDER}"))

        async for changes in watchfiles.awatch(
            *watched, watch_filter=concerns, recursive=False, step=_STEP, debounce=_DEBOUNCE, poll_delay_ms=_DEBOUNCE
        ):
            found = {watched[folder] for _, path in changes for folder in Path(path).parents if folder in watched}
            await self._fill(list(found))
            if any(path.endswith(f"/{FOLDER}") for _, path in changes):
                self._changed.set()

    async def _fill(self, indexes: Sequence[Index]) -> None:
        """Read what has changed, and ask for the vectors that are missing."""
        for index in indexes:
            with contextlib.suppress(MemoryUnavailable):
                await asyncio.to_thread(index.refresh)
                last = 0
                while (embedder := self._ready()) is not None:
                    missing = await asyncio.to_thread(index.without_vector, embedder.model, last, BATCH)
                    if not missing:
                        break
                    try:
                        made = await embedder.vectors([text for _, _, text in missing], BATCH_SECONDS)
                    except EmbeddingError as error:
                        self._failed(error)
                        break
                    last, digests = missing[-1][0], [digest for _, digest, _ in missing]
                    rows = [(digest, *one.stored) for digest, one in zip(digests, made, strict=True)]
                    await asyncio.to_thread(index.keep, embedder.model, rows)

    async def _near(self, question: str) -> Nearness | None:
        """Return what finds pieces by their meaning; None: nothing is configured, or it does not answer."""
        if (embedder := self._ready()) is None:
            return None
        try:
            (vector,) = await embedder.vectors([question], QUESTION_SECONDS)
        except EmbeddingError as error:
            self._failed(error)
            return None
        return Nearness(embedder.model, vector)

    def _ready(self) -> Embedder | None:
        if self._failed_at is not None:
            if self._clock.monotonic() < self._failed_at + _REST:
                return None
            self._failed_at = None
            self._changed.set()  # what was written meanwhile has no vectors
        return self._embedder

    def _failed(self, error: EmbeddingError) -> None:
        self._failed_at = self._clock.monotonic()
        log.warning("the endpoint of memory.embeddings failed; words alone count for a while", reason=str(error))

    def _index(self, room: Workspace) -> Index:
        name = room.whole(())
        if name not in self._indexes:
            self._indexes[name] = Index(self._state, room)
            self._changed.set()
            if len(self._indexes) > _WATCHED:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(name)
        return self._indexes[name]

    async def close(self) -> None:
        """Close what is open, and read no more files."""
        for index in self._indexes.values():
            index.close()
        if self._embedder is not None:
            await self._embedder.close()


def _folders(room: Workspace) -> list[Path]:
    return [one for one in (room.root, room.root / FOLDER) if one.is_dir() and not one.is_symlink()]


def _signs(root: Path) -> tuple[object, ...]:
    """Return how the file and the folder of a memory look; the folder changes when a file comes into it."""
    found: list[object] = []
    for name in (FILE, FOLDER):
        try:
            one = os.lstat(root / name)
            found += (one.st_mtime_ns, one.st_ctime_ns, one.st_size, one.st_ino)
        except OSError:
            found.append(None)
    return tuple(found)
