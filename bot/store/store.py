"""The store as one thing: opened, checked and closed together; each subject is an attribute of its own."""

import asyncio
import os
from pathlib import Path

from bot.clock import Clock
from bot.store.commands import Commands
from bot.store.database import Database, lock_directory
from bot.store.errors import StoreUnavailable
from bot.store.inbox import Inbox
from bot.store.outbox import Deliveries
from bot.store.prune import prune
from bot.store.recovery import Recovery
from bot.store.salvage import Salvage, check
from bot.store.transcripts import Reads
from bot.store.turns import Compose, Turns
from bot.store.writer import CommitProbe, Writer


class Store:
    """One method of its parts is one transaction; a returned call is on disk."""

    def __init__(
        self, database: Database, writer: Writer, clock: Clock, compose: Compose, found: Salvage | None
    ) -> None:
        self._database = database
        self._writer = writer
        self._clock = clock
        self.salvage = found
        """What the start-up check found and recovered, if anything."""
        self.inbox = Inbox(database, writer, clock.now, clock.new_id)
        self.turns = Turns(writer, clock.now, clock.new_id, compose)
        self.deliveries = Deliveries(database, writer, clock.now)
        self.commands = Commands(writer, clock.now)
        self.recovery = Recovery(database, writer, clock.now)
        self.reads = Reads(database)

    @classmethod
    async def open(cls, directory: Path, clock: Clock, compose: Compose, probe: CommitProbe | None = None) -> "Store":
        """Open the store of a state directory. compose: makes a transcript's user message of an accepted one.

        Raises StateLocked, StoreTooNew, OSError or sqlite3.Error.
        """
        lock = lock_directory(directory)
        try:
            found = await asyncio.to_thread(check, directory, clock.now())
        except BaseException:
            os.close(lock)
            raise
        database = await Database.open(directory, lock)
        writer = Writer(database, probe)
        writer.start()
        return cls(database, writer, clock, compose, found)

    @property
    def failure(self) -> str | None:
        """Why the store cannot write, None while it can."""
        return self._writer.failure

    async def try_write(self) -> bool:
        """Find out whether the store can write again."""
        try:
            await self._writer.write(
                lambda db: db.execute(
                    "INSERT INTO kv (scope, key, value) VALUES ('store', 'tried', ?)"
                    " ON CONFLICT (scope, key) DO UPDATE SET value=excluded.value",
                    (str(self._clock.now()),),
                )
            )
        except StoreUnavailable:
            return False
        return True

    async def prune(self) -> None:
        """Forget what is old, a small batch at a time."""
        while await prune(self._writer, self._clock.now()):
            await self._clock.sleep(0.05)

    async def close(self) -> None:
        """Commit what waits and release the state directory."""
        await self._writer.close()
        await self._database.close()
