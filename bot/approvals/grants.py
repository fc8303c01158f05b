"""What people have allowed for more than one call, as calls look it up: without waiting for the store."""

from collections.abc import Collection

from bot.clock import Clock
from bot.persistence.approvals import Granted
from bot.store.store import Store


class Grants:
    """What is allowed in this service; the rows of the store are read by `load`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._standing: tuple[Granted, ...] = ()

    async def load(self) -> None:
        """Read the rows again. Raises StoreUnavailable."""
        self._standing = tuple(await self._store.grants.standing())

    def of(self, session_key: str) -> Collection[str]:
        """Return what is allowed now in a session, as the names in `Ask.grants`."""
        now = self._clock.now()
        return {
            one.what
            for one in self._standing
            if one.session_key in ("", session_key) and (one.until is None or one.until > now)
        }

    async def rules(self) -> list[Granted]:
        """Return what is allowed, oldest first. Raises StoreUnavailable."""
        return list(await self._store.grants.standing())

    async def forget(self, what: str) -> bool:
        """Stop allowing something, at once; False if it was not allowed. Raises StoreUnavailable."""
        known = await self._store.grants.revoke(what)
        await self.load()
        return known
