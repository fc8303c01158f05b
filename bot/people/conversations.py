"""The conversations that the bot may take part in: their sessions and names, where it may speak, which settings of a
group hold there, and when a session begins anew.

A conversation is a place on an account together with who is spoken to there (`Origin`).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo

from agent.errors import ToolError
from agent.message import Provenance
from bot.config.model import Expiry, Reset
from bot.people.access import LOCAL, refusal
from bot.people.accounts import Account, Accounts
from bot.people.people import People, chat_of
from bot.store.reads import Reads
from channels.actions import nearest
from channels.base import Channel
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.session_key import DmScope, session_key
from channels.settings import AccountSection, Group

_DAY = timedelta(days=1)
NAME_CHANNEL = "Name the channel as well, as in `<channel>:#general`."


@dataclass(eq=False, slots=True, kw_only=True)
class Conversations:
    """Answers questions about conversations by the configuration, the people and the messages received so far."""

    reads: Reads
    accounts: Accounts
    people: People
    # Which direct messages share a session, and the names that stand for several ids of one person.
    scope: DmScope
    links: Mapping[str, str]
    # Channels with more than one account; their session keys contain the account.
    several: Collection[str]

    def section(self, place: Place) -> AccountSection | None:
        """Return the section of the account that a place belongs to; None for places on no platform."""
        found = self.accounts.of(place)
        return found.section if found and isinstance(found.section, AccountSection) else None

    def session_of(self, origin: Origin) -> str:
        """Return the session of a conversation; empty in groups with a session per person if no sender is named."""
        account = self.section(origin.place)
        several = account is not None and account.groups.session == "person" and not origin.sender
        return "" if several and origin.place.kind is not ChatKind.DIRECT else self.session_key(origin, account)

    def session_key(self, origin: Origin, account: AccountSection | None) -> str:
        """Return the session key of a conversation. A chat whose id has changed keeps its first session.

        account: the section of the account of the conversation; None for conversations on no platform.
        """
        if origin.place.kind is not ChatKind.DIRECT:
            chat = self.people.chats(*chat_of(origin.place))[-1]
            origin = replace(origin, place=replace(origin.place, chat=chat))
        elif account is not None and not account.direct_threads:
            origin = replace(origin, place=replace(origin.place, thread=""))
        with_account = origin.place.channel in self.several
        shared = account.groups.session if account else "thread"
        return session_key(origin, self.scope, self.links, with_account=with_account, groups=shared)

    def labelled(self, to: str) -> tuple[Account | None, str]:
        """Split the name of a conversation into the account whose label it begins with, or None, and the rest."""
        found = [one for one in self.accounts if to.startswith(f"{one.label}:")]
        account = max(found, key=lambda one: len(one.label), default=None)
        return account, to.removeprefix(f"{account.label}:") if account else to

    def model_there(self, message: InboundMessage) -> str:
        """Return the model that the configuration names for the place of a message: its group, else its account."""
        account = self.accounts.like(message.origin.place)
        section = account.section if account else None
        if not isinstance(section, AccountSection):
            return ""
        if not any(group.model for group in section.groups.allow.values()):
            return section.model or ""
        group = group_of(section, self.people, message)
        return (group.model if group else None) or section.model or ""

    async def find(self, channel: Channel, wanted: str) -> Origin:
        """Return the conversation with an id or name: first among those where people wrote, else from the channel.

        Raises ToolError when there is none or the bot may not speak there, ActionFailed when the channel cannot tell.
        """
        heard = await self.reads.directory(channel.name, channel.account)
        known = [one for one in heard if self.may_speak(one)]
        found: Origin | Sequence[str] = nearest(wanted, _directory(known))
        if not isinstance(found, Origin):
            near = found
            found = await channel.find(wanted)
            if not isinstance(found, Origin):
                names = ", ".join(dict.fromkeys((*near, *found))) or "none"
                unknown = ToolError(f"There is no conversation {wanted!r} that is known. Near it: {names}.")
                if near or found:
                    unknown.origins = (Provenance("person", f"people on {channel.name}"),)
                raise unknown
            chat = found.place.chat
            found = replace(next((one for one in known if one.place.chat == chat), found), place=found.place)
        if not self.may_speak(found):
            raise ToolError(f"{wanted!r} is not let in by the configuration, or not known to be.")
        return found

    async def named(self, to: str) -> Origin:
        """Return the conversation with a name that begins with the label of its account. Raises what `find` raises."""
        account, wanted = self.labelled(to)
        if account is None or not isinstance(account.channel, Channel):
            raise ToolError(NAME_CHANNEL)
        return await self.find(account.channel, wanted)

    def may_speak(self, origin: Origin) -> bool:
        """Return whether the bot may speak in a conversation; a direct message is judged by its sender."""
        account = self.accounts.of(origin.place)
        if account is None or not isinstance(account.section, AccountSection):
            return account is not None or origin.place.kind in LOCAL
        if origin.place.kind is not ChatKind.DIRECT:
            chats = self.people.chats(*chat_of(origin.place))
            return account.section.groups.of(*chats, origin.space) is not None
        asks = InboundMessage(origin=origin, event_key="", kind=InboundKind.MESSAGE, text="", sent_at=0)
        is_owner, let_in = self.people.is_owner(asks), self.people.let_in_by(origin)
        if self.people.is_blocked(origin):
            return False
        return refusal(asks, account.section, None, is_owner=is_owner, let_in_by=let_in) is None

    def reaches(self, origin: Origin) -> bool:
        """Return whether messages to a conversation can arrive.

        Also True while an account of the channel does not know its own id, because the place may belong to it and the
        message waits. False when the account of the place is no longer configured.
        """
        place = origin.place
        if place.kind in LOCAL or self.accounts.of(place) is not None:
            return self.may_speak(origin)
        return any(one.channel.name == place.channel and not one.channel.account for one in self.accounts)


def _directory(known: Sequence[Origin]) -> dict[str, Origin]:
    """Return conversations by name and by id. An id wins over an equal name, so nobody can take over an id by a name.

    Conversations that share a name are listed with their ids added.
    """
    chats = {one.place.chat: replace(one, place=replace(one.place, thread="")) for one in reversed(known)}
    named = [(one.sender_name if one.place.kind is ChatKind.DIRECT else one.chat_name, one) for one in chats.values()]
    count = Counter(name.casefold() for name, _ in named)
    shown = {
        name if count[name.casefold()] == 1 else f"{name} (id {one.place.chat})": one for name, one in named if name
    }
    return shown | chats


def group_of(account: AccountSection | None, people: People, message: InboundMessage) -> Group | None:
    """Return the settings of the group in which a message was said.

    None in direct messages, and in groups where the bot must not answer.
    """
    origin = message.origin
    if account is None or origin.place.kind is ChatKind.DIRECT:
        return None
    return account.groups.of(*people.chats(*chat_of(origin.place)), origin.space)


def is_stale(reset: Reset, zone: tzinfo | None, place: Place, used_at: int, at: int) -> bool:
    """Return whether `sessions.reset` makes a session begin anew with a message, with daylight saving time respected.

    at: when the message came. used_at: when the session was last used; both in milliseconds since the epoch. zone: the
    time zone of `daily_at`; None: the time zone of this machine.
    """
    rules = _rules(reset, place)
    if rules.idle and at - used_at > rules.idle.total_seconds() * 1000:
        return True
    return rules.daily_at is not None and used_at < _last_end(rules, zone, at)


def _rules(reset: Reset, place: Place) -> Expiry:
    """Return the rule for a place: the rule of its channel, else of its kind of chat, else the general rule."""
    kind = "thread" if place.thread else place.kind.value if place.kind not in LOCAL else "direct"
    return reset.by_channel.get(place.channel) or reset.by_type.get(kind) or reset


def _last_end(rules: Expiry, zone: tzinfo | None, at: int) -> int:
    """Return the last moment up to `at` at which the local time was `daily_at`, in milliseconds since the epoch.

    On a day whose switch to summer time skips `daily_at`, the moment that it would have been counts.
    """
    assert rules.daily_at is not None
    end = time(*divmod(rules.daily_at, 60))
    today = datetime.fromtimestamp(at / 1000, zone).date()
    ends = (datetime.combine(day, end, zone).timestamp() * 1000 for day in (today, today - _DAY))
    return max(int(moment) for moment in ends if moment <= at)
