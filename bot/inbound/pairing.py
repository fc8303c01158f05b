"""Pairing: a stranger is given a one-time code and tells it to an owner, who thereby knows whom they let in."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from bot import wording
from bot.inbound.people import People
from bot.outbox import Outbox
from bot.persistence.protocols import Store
from bot.persistence.values import Person, Settled, Standing
from channels.message import InboundMessage

# Without what is mistaken for something else when it is read aloud or copied: O and 0, I, L and 1.
_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_LENGTH = 8


def new_code(random: Random) -> str:
    """A code that nobody guesses."""
    return "".join(random.choices(_ALPHABET, k=_LENGTH))


def digest(code: str) -> str:
    """How a code is stored and looked up, however people type it."""
    return hashlib.sha256(code.strip().upper().encode("utf-8", "replace")).hexdigest()


@dataclass(eq=False)
class Pairing:
    """Codes of a service that runs. begin: is given each message that was accepted thereby."""

    store: Store
    people: People
    outbox: Outbox
    begin: Callable[[int, str, InboundMessage], None]

    async def pending(self) -> Sequence[Person]:
        """Who waits with a code that is still good. Raises StoreUnavailable."""
        return await self.store.people.pending()

    async def carry_out(self, action: str, code: str) -> str:
        """What an owner asks for in a chat (list, approve or deny), in words. Raises StoreUnavailable."""
        if action == "list":
            return "\n".join(f"- {wording.stranger(one)}" for one in await self.pending()) or wording.NOBODY_WAITS
        return wording.settled(await self.settle(code, "allowed" if action == "approve" else "blocked"))

    async def settle(self, code: str, standing: Standing) -> Settled | None:
        """Use a code, and answer what its person had written; None when it is wrong. Raises StoreUnavailable."""
        tell = partial(self.outbox.notice, f"paired:{digest(code)}", wording.welcome(standing == "owner"))
        found = await self.store.people.settle(digest(code), standing, tell)
        if found is None or found.used or standing == "blocked":
            return found
        self.people.let_in(found.person)
        self.outbox.send(found.said)
        if found.waiting is not None:
            self.begin(*found.waiting)
        return found
