"""The accounts of all channels, each with its section of the configuration. The key is always (channel, account)."""

from collections.abc import Sequence
from dataclasses import dataclass

from channels.base import Channel, Surface
from channels.message import Place
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

    def of(self, place: Place) -> Account | None:
        """The account whose conversation it is; None until that account knows its own id."""
        return next((one for one in self if is_of(one.channel, place)), None)

    def like(self, place: Place) -> Account | None:
        """The account whose conversation it is; one of the same channel where none is known to be."""
        return self.of(place) or next((one for one in self if one.channel.name == place.channel), None)

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
