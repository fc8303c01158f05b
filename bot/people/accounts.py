"""The accounts of all channels, each with its section of the configuration. The key is always (channel, account)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from channels.base import Channel, Surface
from channels.message import ChatKind, Place
from channels.session_key import ParsedKey
from channels.settings import ChannelSection


@dataclass(frozen=True, slots=True)
class Account:
    """One account. label: the channel's name, and for a further account `<channel>:<its name>`."""

    label: str
    channel: Surface
    section: ChannelSection

    @property
    def rules(self) -> str:
        """What the model is told about conversations there."""
        return "\n".join(text for text in (self.channel.capabilities.rules, self.section.added_prompt()) if text)


class Accounts(tuple[Account, ...]):
    """All of them, in the order of the configuration."""

    # By the name of the channel and the account's own id, once all accounts of the channel know theirs.
    _known: dict[tuple[str, str], Account]

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        self._known = {}

    @cached_property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """The label of each account, and what the model is told there; sorted."""
        return tuple(sorted((account.label, account.rules) for account in self))

    def of(self, place: Place) -> Account | None:
        """The account whose conversation it is; None until that account knows its own id."""
        key = place.channel, place.account
        if key in self._known:
            return self._known[key]
        alike = [(one.channel.account, one) for one in self if one.channel.name == place.channel]
        found = next((one for own_id, one in alike if own_id == place.account), None)
        if found is not None and all(own_id for own_id, _ in alike):
            self._known[key] = found
        return found

    def like(self, place: Place) -> Account | None:
        """The account whose conversation it is; the first of the channel where none is named or known to be."""
        known = self._known.get((place.channel, place.account)) or (self.of(place) if place.account else None)
        return known or next((one for one in self if one.channel.name == place.channel), None)

    def of_session(self, key: ParsedKey) -> Account | None:
        """The account that a session is of, None where it is of no channel. A key that names no account means the only
        one of its channel; that of a channel which has several by now, the first."""
        if key.account:
            return self.like(Place(channel=key.channel, account=key.account, chat="", kind=ChatKind.DIRECT))
        return next((one for one in self if one.channel.name == key.channel), None)

    def delivering(self, place: Place) -> Channel | None:
        """The channel of that account, where there is one beside the service itself."""
        account = self.like(place)
        return account.channel if account and isinstance(account.channel, Channel) else None


def is_of(channel: Surface, place: Place) -> bool:
    """Whether a conversation belongs to the account of this adapter."""
    return (channel.name, channel.account) == (place.channel, place.account)


def twins(accounts: Sequence[Account]) -> dict[str, str]:
    """Accounts that turned out to be the bot of another one, by label, with the label of that."""
    first: dict[tuple[str, str], str] = {}
    found = {}
    for one in accounts:
        label = first.setdefault((one.channel.name, one.channel.account), one.label)
        if label != one.label and one.channel.account:
            found[one.label] = label
    return found
