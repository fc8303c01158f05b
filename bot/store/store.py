"""The store as a whole: opened, checked, pruned and closed together. Each subject is an attribute."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from bot.clock import Clock
from bot.persistence.errors import StoreUnavailable
from bot.persistence.events import Subscriber
from bot.persistence.recovery import Salvage
from bot.persistence.usage import Cost, no_price
from bot.store import rows
from bot.store.approvals import Approvals
from bot.store.balance import Balances
from bot.store.budget_waits import BudgetWaits
from bot.store.children import Children
from bot.store.claims import Compose, Stale
from bot.store.commands import Commands
from bot.store.compactions import Compactions
from bot.store.database import Database, is_damage, take_mark
from bot.store.exchanges import Exchanges
from bot.store.file_origins import FileOrigins
from bot.store.forgetting import Forgetting
from bot.store.forks import Forks
from bot.store.freezes import Freezes
from bot.store.grants import Grants
from bot.store.history import History
from bot.store.inbox import Inbox
from bot.store.mcp import McpServers
from bot.store.memories import Memories
from bot.store.outages import Outages
from bot.store.outbox import Deliveries
from bot.store.people import People
from bot.store.prune import prune
from bot.store.reads import Reads
from bot.store.recovery import Recovery
from bot.store.restarts import Restarts
from bot.store.retries import Retries
from bot.store.salvage import check
from bot.store.schedules import Schedules
from bot.store.search import SearchIndex
from bot.store.sending import Rule
from bot.store.sessions import Sessions
from bot.store.settings import Settings
from bot.store.skills import SkillRows
from bot.store.stops import Stops
from bot.store.turns import Turns
from bot.store.usage import UsageRows
from bot.store.writer import CommitProbe, Writer


class Store:
    """The store of one state directory. Each method of a subject is one transaction, on disk when the call returns."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        compose: Compose,
        subscriber: Subscriber,
        probe: CommitProbe | None = None,
        stale: Stale = lambda place, used_at, at: False,
        cost: Cost = no_price,
        denied: Sequence[Rule] = (),
    ) -> None:
        """Lock a state directory. Everything but `open` and `close` raises StoreUnavailable until the store is open.

        compose: makes the user message of a transcript. subscriber, probe: see `Writer`. stale: see `Stale`. cost:
        what model calls cost. denied: the rules about what is not sent. Raises StateLocked or OSError.
        """
        self._directory = directory
        self.database = Database(directory, cost, denied)
        self._ended_well = take_mark(directory)
        self.writer = Writer(self.database, subscriber, probe)
        self._clock = clock
        # The report of the check at the start, if the file was damaged.
        self.salvage: Salvage | None = None
        self.inbox = Inbox(self.database, self.writer, clock)
        self.history = History(self.database, self.writer, clock)
        self.people = People(self.database, self.writer, clock)
        self.turns = Turns(self.database, self.writer, clock, compose, stale)
        self.approvals = Approvals(self.database, self.writer, clock)
        self.grants = Grants(self.database, self.writer, clock)
        self.budget_waits = BudgetWaits(self.database, self.writer, clock)
        self.compactions = Compactions(self.database, self.writer, clock)
        self.outages = Outages(self.database, self.writer, clock)
        self.deliveries = Deliveries(self.database, self.writer, clock)
        self.commands = Commands(self.database, self.writer, clock)
        self.children = Children(self.database, self.writer, clock)
        self.freezes = Freezes(self.database, self.writer, clock)
        self.retries = Retries(self.database, self.writer, clock)
        self.stops = Stops(self.database, self.writer, clock)
        self.exchanges = Exchanges(self.database, self.writer, clock)
        self.forks = Forks(self.database, self.writer, clock)
        self.restarts = Restarts(self.database, self.writer, clock)
        self.settings = Settings(self.database, self.writer, clock)
        self.recovery = Recovery(self.database, self.writer, clock)
        self.schedules = Schedules(self.database, self.writer, clock)
        self.file_origins = FileOrigins(self.database, self.writer, clock)
        self.memories = Memories(self.database, self.writer, clock)
        self.mcp = McpServers(self.database, self.writer, clock)
        self.usage = UsageRows(self.database, self.writer, clock)
        self.balances = Balances(self.database, self.writer, clock)
        self.skills = SkillRows(self.database, self.writer, clock)
        self.sessions = Sessions(self.database, self.writer, clock)
        self.search = SearchIndex(directory)
        self.forgetting = Forgetting(self.database, self.writer, clock)
        self.reads = Reads(self.database, self.writer, clock)

    async def open(self) -> None:
        """Check the file, and open it. The check reads the whole file unless the store was closed in order.

        Raises StoreUnavailable if opening may work later; StoreTooNew, OSError or sqlite3.Error if it will not.
        """
        work = asyncio.to_thread(check, self._directory, self._clock.now(), thorough=not self._ended_well)
        checking = asyncio.ensure_future(work)
        try:
            found = await asyncio.shield(checking)
            self.salvage = self.salvage or found
            await self.database.open()
        except asyncio.CancelledError:
            await asyncio.wait([checking])  # the lock of the directory is held until the thread has ended
            raise
        except sqlite3.DatabaseError as error:
            if not self._ended_well or not is_damage(error):
                raise
            self._ended_well = False
            raise StoreUnavailable(f"the store is damaged ({error}); all of it is checked") from error
        self.writer.start()

    @property
    def failure(self) -> str | None:
        """Why the store cannot read or write; None while it can."""
        return self.database.failure or self.writer.failure

    async def try_write(self) -> bool:
        """Return whether the store can write and read, by trying both."""
        try:
            await self.writer.write(rows.set_value, "store", "tried", str(self._clock.now()))
            await self.reads.last_event()
        except StoreUnavailable:
            return False
        return True

    async def prune(self) -> None:
        """Delete old rows (`bot/store/prune.py`), with a pause after each batch."""
        while await self.writer.write(prune, self._clock.now()):
            await self._clock.sleep(0.05)

    async def close(self) -> None:
        """Commit the waiting changes and release the state directory."""
        try:
            await self.writer.close()
        finally:
            await self.database.close()
