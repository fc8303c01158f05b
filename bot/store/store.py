"""The store as one thing: opened, checked and closed together; each subject is an attribute of its own."""

import asyncio
import sqlite3
from pathlib import Path

from bot.clock import Clock
from bot.persistence.errors import StoreUnavailable
from bot.persistence.events import Ring
from bot.persistence.found import Salvage
from bot.store import rows
from bot.store.approvals import Approvals
from bot.store.claims import Compose, Stale
from bot.store.commands import Commands
from bot.store.database import Database, take_mark
from bot.store.history import History
from bot.store.inbox import Inbox
from bot.store.outbox import Deliveries
from bot.store.people import People
from bot.store.prune import prune
from bot.store.reads import Reads
from bot.store.recovery import Recovery
from bot.store.salvage import check
from bot.store.schedules import Schedules
from bot.store.settings import Settings
from bot.store.sqlite_errors import is_damage
from bot.store.stops import Stops
from bot.store.turns import Turns
from bot.store.writer import CommitProbe, Writer


class Store:
    """One method of its parts is one transaction; a returned call is on disk."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        compose: Compose,
        ring: Ring,
        probe: CommitProbe | None = None,
        stale: Stale = lambda place, used_at, at: False,
    ) -> None:
        """Take a state directory. compose: makes a transcript's user message of an accepted one. ring: see `Writer`.
        stale: when a session begins anew by itself.

        Raises StateLocked or OSError. Everything but `open` and `close` is unavailable until it is open.
        """
        self._directory = directory
        self.database = Database(directory)
        self._ended_well = take_mark(directory)
        self.writer = Writer(self.database, ring, probe)
        self._clock = clock
        # What the start-up check found and recovered, if anything.
        self.salvage: Salvage | None = None
        self.inbox = Inbox(self.database, self.writer, clock)
        self.history = History(self.database, self.writer, clock)
        self.people = People(self.database, self.writer, clock)
        self.turns = Turns(self.database, self.writer, clock, compose, stale)
        self.approvals = Approvals(self.database, self.writer, clock)
        self.deliveries = Deliveries(self.database, self.writer, clock)
        self.commands = Commands(self.database, self.writer, clock)
        self.stops = Stops(self.database, self.writer, clock)
        self.settings = Settings(self.database, self.writer, clock)
        self.recovery = Recovery(self.database, self.writer, clock)
        self.schedules = Schedules(self.database, self.writer, clock)
        self.reads = Reads(self.database, self.writer, clock)

    async def open(self) -> None:
        """Check the file, all of it unless it was closed in order, and open it.

        Raises StoreUnavailable when that may work later; StoreTooNew, OSError or sqlite3.Error when it will not.
        """
        work = asyncio.to_thread(check, self._directory, self._clock.now(), thorough=not self._ended_well)
        checking = asyncio.ensure_future(work)
        try:
            found = await asyncio.shield(checking)
            self.salvage = self.salvage or found
            await self.database.open()
        except asyncio.CancelledError:
            await asyncio.wait([checking])  # the directory is ours until the thread has ended
            raise
        except sqlite3.DatabaseError as error:
            if not self._ended_well or not is_damage(error):
                raise
            self._ended_well = False
            raise StoreUnavailable(f"the store is damaged ({error}); all of it is checked") from error
        self.writer.start()

    @property
    def failure(self) -> str | None:
        """Why the store cannot read or write, None while it can."""
        return self.database.failure or self.writer.failure

    async def try_write(self) -> bool:
        """Find out whether the store can write, and read, again."""
        try:
            await self.writer.write(rows.set_value, "store", "tried", str(self._clock.now()))
            await self.reads.last_event()
        except StoreUnavailable:
            return False
        return True

    async def prune(self) -> None:
        """Forget what is old, a small batch at a time."""
        while await self.writer.write(prune, self._clock.now()):
            await self._clock.sleep(0.05)

    async def close(self) -> None:
        """Commit what waits and release the state directory."""
        try:
            await self.writer.close()
        finally:
            await self.database.close()
