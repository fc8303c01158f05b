"""The accounts of all channels with their sections of the configuration; channel and account id together name one."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import structlog

from channels.base import Channel, Sink, Surface
from channels.message import ChatKind, Place
from channels.registry import OWN
from channels.session_key import ParsedKey
from channels.settings import ChannelSection

log = structlog.get_logger()

# Seconds that an adapter of an extension may take to start.
STARTING = 10.0


@dataclass(frozen=True, slots=True)
class Account:
    """One account of the bot on a channel."""

    # The name of the channel; for a further account of the channel `<channel>:<account name>`.
    label: str
    channel: Surface
    section: ChannelSection

    @property
    def rules(self) -> str:
        """What the model is told about conversations on this account."""
        return "\n".join(text for text in (self.channel.capabilities.rules, self.section.added_prompt()) if text)

    async def start(self, sink: Sink) -> None:
        """Begin to receive; an adapter of an extension that fails keeps nothing else from starting."""
        own = self.label.partition(":")[0] in OWN
        try:
            async with asyncio.timeout(None if own else STARTING):
                await self.channel.start(sink)
        except Exception:
            if own:
                raise
            log.exception("the channel of an extension cannot start", channel=self.label)


class Accounts(list[Account]):
    """All accounts, in the order of the configuration."""

    # Accounts by channel and own id. A channel is cached only when all its accounts have learned their ids from the
    # platform.
    _known: dict[tuple[str, str], Account]

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        super().__init__(accounts)
        self._known = {}

    def exchange(self, gone: Sequence[Account], now: Sequence[Account]) -> None:
        """Take accounts away, and put those that a channel has now into their order."""
        self[:] = [one for one in self if one not in gone and one not in now]
        self += now
        self._known = {}
        self.__dict__.pop("rules", None)

    @cached_property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """The label of each account with what the model is told there, sorted."""
        return tuple(sorted((account.label, account.rules) for account in self))

    def of(self, place: Place) -> Account | None:
        """Return the account that a conversation belongs to; None until that account has learned its own id."""
        key = place.channel, place.account
        if key in self._known:
            return self._known[key]
        alike = [(one.channel.account, one) for one in self if one.channel.name == place.channel]
        found = next((one for own_id, one in alike if own_id == place.account), None)
        if found is not None and all(own_id for own_id, _ in alike):
            self._known[key] = found
        return found

    def like(self, place: Place) -> Account | None:
        """Return the account that a conversation belongs to; if that is not known, the first account of the channel."""
        known = self._known.get((place.channel, place.account)) or (self.of(place) if place.account else None)
        return known or next((one for one in self if one.channel.name == place.channel), None)

    def of_session(self, key: ParsedKey) -> Account | None:
        """Return the account that a session belongs to; None: the session belongs to no channel.

        A key without an account was made when the channel had only one; it means the first account of the channel.
        """
        if key.account:
            return self.like(Place(channel=key.channel, account=key.account, chat="", kind=ChatKind.DIRECT))
        return next((one for one in self if one.channel.name == key.channel), None)

    def delivering(self, place: Place) -> Channel | None:
        """Return the channel that delivers to a conversation; None where no channel does, as over HTTP."""
        account = self.like(place)
        return account.channel if account and isinstance(account.channel, Channel) else None


def is_of(channel: Surface, place: Place) -> bool:
    """Return whether a conversation belongs to the account of this adapter."""
    return (channel.name, channel.account) == (place.channel, place.account)


def twins(accounts: Sequence[Account]) -> dict[str, str]:
    """Return the labels of accounts that are the same bot as an earlier account, each with that account's label."""
    first: dict[tuple[str, str], str] = {}
    found = {}
    for one in accounts:
        label = first.setdefault((one.channel.name, one.channel.account), one.label)
        if label != one.label and one.channel.account:
            found[one.label] = label
    return found
