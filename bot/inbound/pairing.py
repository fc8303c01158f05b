"""Pairing: a stranger is given a one-time code and tells it to an owner, who thereby knows whom they let in.

Owners take that back as well, and shut people out: at once, also for what runs and what waits.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from pydantic_core import PydanticCustomError

from agent.tools.background import Background
from bot import wording
from bot.clock import Clock
from bot.config.values import check_person
from bot.outbox import Outbox
from bot.people.access import OWNER
from bot.people.accounts import Accounts
from bot.people.people import People
from bot.persistence.deliveries import OwnerNotice
from bot.persistence.errors import StoreUnavailable
from bot.persistence.people import Person, Settled, Standing
from bot.store.store import Store
from channels.message import InboundMessage
from channels.settings import AccountSection
from channels.sources import sentence

# What an owner orders about somebody, and what they are then; None: what a stranger is.
Order = Literal["revoke", "block", "owner", "allow"]
_STANDINGS: dict[Order, Literal["owner", "blocked", "allowed"] | None] = {
    "revoke": None,
    "block": "blocked",
    "owner": "owner",
    "allow": "allowed",
}
# Who orders at the command line.
LOCALLY = f"console:{OWNER}"

# Without what is mistaken for something else when it is read aloud or copied: O and 0, I, L and 1.
_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_LENGTH = 8


def new_code(random: Random) -> str:
    """Return a new code, which nobody can guess."""
    return "".join(random.choices(_ALPHABET, k=_LENGTH))


def digest(code: str) -> str:
    """Return the digest by which a code is stored and found, however people type it."""
    return hashlib.sha256(code.strip().upper().encode("utf-8", "replace")).hexdigest()


class NotChanged(Exception):
    """Nothing was changed about somebody; the text says why."""


@dataclass(eq=False)
class Pairing:
    """Says in a service that runs who may write to it: uses codes, and carries out what owners say of people."""

    store: Store
    clock: Clock
    people: People
    outbox: Outbox
    accounts: Accounts
    # The commands in the background, which end in the sessions of somebody who is no owner any more.
    background: Background
    # Ends the runs of these turns; what is left of a turn is claimed again.
    interrupt: Callable[[Collection[str]], None]
    # Is given each message that is accepted when its sender is let in: its place in the inbox, its session and itself.
    # To be set before anybody is let in.
    begin: Callable[[int, str, InboundMessage], None] = field(init=False)

    async def pending(self) -> Sequence[Person]:
        """Return the strangers whose codes can still be used, oldest first. Raises StoreUnavailable."""
        return await self.store.people.pending()

    async def everybody(self) -> list[Person]:
        """Return who is let in, shut out or waits; first those of the configuration. Raises StoreUnavailable."""
        owners = (owner.partition(":") for owner in self.people.configured)
        found = [Person(channel, "", sender, "owner") for channel, _, sender in owners]
        for one in self.accounts:
            if isinstance(one.section, AccountSection):
                account = one.label.partition(":")[2]
                found += [Person(one.channel.name, account, sender, "allowed") for sender in one.section.dm.allow_from]
        found = [replace(one, by=wording.CONFIGURATION) for one in found]
        return [*found, *(await self.store.people.known())[0]]

    async def tell(self) -> None:
        """Tell an owner which strangers have got a code since the last time; at most once an hour. Raises
        StoreUnavailable."""

        def asks(found: Sequence[Person]) -> OwnerNotice:
            text = wording.ask_to_write(found, someone=bool(self.people.owners))
            return self.outbox.to_owner(sentence("asks", self.clock.now()), text, both=True)

        if told := await self.store.people.tell(asks):
            self.outbox.send(told)

    async def settle(self, code: str, standing: Standing, by: str = LOCALLY) -> Settled | None:
        """Use a code: let its person in and have what they wrote answered, or shut them out.

        standing: what they become. by: who says so, as "channel:id". Returns None if there is no such code. Raises
        StoreUnavailable.
        """
        asker = await self.store.people.asker(digest(code))
        if asker is None:
            return None
        words = wording.welcome(standing == "owner")
        welcome = self.outbox.notice(sentence("paired", digest(code)), words, asker.channel)
        found = await self.store.people.settle(digest(code), standing, welcome, by)
        if found is not None and not found.used and standing != "blocked":
            self._let_in(found)
        return found

    async def stand(self, who: str, order: Order, by: str = LOCALLY) -> str:
        """Change what somebody may do, on all accounts of their channel; returns a sentence that says what was done.

        who: "channel:id". by: who orders it, in the same form. Rights are taken away in memory first: what is accepted
        from then on is decided by that, and what was accepted before is found by the transaction. Raises NotChanged,
        StoreUnavailable.
        """
        try:
            check_person(who)
        except PydanticCustomError as error:
            raise NotChanged(f"`{who}` is nobody. Allowed: {error.message()}.") from None
        if who in self.people.configured:
            raise NotChanged(f"{who} is an owner because `owners` in the configuration says so; change it there.")
        owned, (channel, _, sender) = self.people.owns(who), who.partition(":")
        if order == "allow" and owned:
            raise NotChanged(f"{who} is an owner, and may write to me already.")
        lets_in = order in ("owner", "allow")
        take_back = self.people.shut_out(who, blocked=order == "block") if not lets_in else lambda: None
        words = wording.welcome(owner=order == "owner")
        welcome = self.outbox.notice(sentence("stands", who, self.clock.now()), words, channel)
        try:
            found = await self.store.people.stand(channel, sender, _STANDINGS[order], welcome, by)
        except StoreUnavailable:
            take_back()
            raise
        if found is None:
            raise NotChanged(f"Nothing is stored of {who}. `hark people` and `/people` list everybody.")
        if lets_in:
            self._let_in(found)
        self.interrupt(found.turns)
        for session_key in found.sessions if owned else ():
            self.background.stop(session_key)
        return wording.stands(found)

    def _let_in(self, found: Settled) -> None:
        self.people.let_in(found.person)
        self.outbox.send(found.said)
        for one in found.waiting:
            self.begin(*one)
