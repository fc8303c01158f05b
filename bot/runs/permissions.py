"""Decides which tools a turn has, which of them its senders may call, and why not the others.

The configuration has layers (service, channel, account, group, person), each of which takes tools away. People who are
no owners have the profile guest and the tools that the layers name besides. Which tools the model is offered depends on
the session alone, so that they stay the same for a whole transcript (promise 7 of the design). Whether a tool may be
called also depends on who wrote the turn, and from where; of several senders, each must be allowed to.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.message import ToolSpec
from agent.tools.base import Tool
from agent.tools.conversation import STAY_SILENT
from agent.tools.registry import GUEST, NAMES, PROFILES, Policy, Rule, matches, rules
from agent.tools.schema import spec
from bot.config.tools import Tools
from bot.config.values import SCHEDULE
from bot.people.access import is_trusted
from bot.people.accounts import Account, Accounts
from bot.people.people import People, chat_of
from bot.persistence.settings import ChildRules
from bot.persistence.turns import Turn, TurnKind
from bot.runs.rooms import Room, Rooms
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.session_key import ParsedKey, begins_anew, console_key, parse
from channels.settings import AccountSection, ChannelSection, ToolLists

# Reasons why a turn has no tool or its senders may not call the tool; shown after its name by `/tools` and the model.
UNTRUSTED = "only for callers that have the gateway's token"
NOT_OWNED = "only where nobody but owners of this bot writes"
NO_OWNER = "only owners of this bot may use it"
AWAITED = "whoever asks here waits for an answer"
UNASKED = "what runs by itself orders nothing more"
UNNAMED = "the skill that was asked for does not name it in its allowed-tools"
NOT_OF_PARENT = "a sub-agent has no tool that the conversation which started it did not have"
FOR_GUESTS = (
    "not in the profile guest, which holds for people who are no owners; whoever runs this bot can widen it with "
    "tools.by_sender"
)

# Lists of tools, each with its key in the configuration.
_Lists = Iterable[tuple[str, ToolLists]]


# The most offers that are cached; with one more the cache is emptied.
MOST = 1000


@dataclass(frozen=True, slots=True)
class Offer:
    """Which tools a turn has, by their names."""

    # The tools that the model is offered, in their order.
    names: tuple[str, ...]
    # What the model is told about these tools.
    specs: tuple[ToolSpec, ...]
    # Tools that are not offered or may not be called, with the reasons.
    refused: Mapping[str, str]
    # Tools that may be called only to look, see `CallContext.as_guest`.
    as_guest: Collection[str]
    # Whether nobody but owners wrote the turn.
    by_owners: bool


def narrowed(offer: Offer, rules: ChildRules) -> Offer:
    """Return what of an offer a sub-agent has: no more than the turn that started it, and nothing but that to look."""
    names = tuple(name for name in offer.names if name in rules.tools and name != STAY_SILENT)
    return Offer(
        names,
        tuple(one for one in offer.specs if one.name in names),
        {**dict.fromkeys((name for name in offer.names if name not in names), NOT_OF_PARENT), **offer.refused},
        frozenset((*offer.as_guest, *rules.as_guest)),
        offer.by_owners and rules.by_owners,
    )


@dataclass(frozen=True, slots=True)
class _Asker:
    """A person who wrote a turn, and what they may do with tools."""

    # The rules for the person and for the account where they write.
    rules: Policy
    is_owner: bool
    # Patterns of the tools that a guest has in full; None: the person is no guest.
    more: Collection[str] | None
    # Why a guest may not use other tools.
    because: str = FOR_GUESTS

    def is_guest_for(self, tool: Tool[Any]) -> bool:
        """Return whether the person may use a tool only as a guest."""
        return self.more is not None and not matches(tool.name, self.more, tool.group)

    def why_not(self, tool: Tool[Any]) -> str:
        """Return why the person may not use a tool at all; empty: they may."""
        if rule := self.rules.why_not(tool.name, tool.group):
            return _by(rule)
        if tool.owner_only and not self.is_owner:
            return NO_OWNER
        return self.because if self.is_guest_for(tool) and not matches(tool.name, GUEST) else ""


@dataclass(eq=False, slots=True, kw_only=True)
class Permissions:
    """Decides by the configuration and by who people are."""

    tools: Tools
    # The plain section of each channel, by its name.
    channels: Mapping[str, ChannelSection]
    accounts: Accounts
    people: People
    rooms: Rooms
    # The cached offers, by everything that decides about an offer.
    _kept: dict[tuple[object, ...], Offer] = field(default_factory=dict, init=False, repr=False)

    def offer(self, turn: Turn, room: Room, found: Sequence[Tool[Any]]) -> Offer:
        """Return which tools a turn has.

        room: the room of its session. found: all tools, in their order. The offer is cached by what decides about it:
        who people are, which accounts know their ids, the session and its room, the tools, where the turn answers, and
        who wrote it from where.
        """
        asking = [
            (one.origin.place, one.origin.sender, one.origin.space, one.origin.by_bot, one.kind, one.tools)
            for one in turn.messages
        ]
        places = dict.fromkeys((turn.place, *(place for place, *_ in asking)))
        accounts = (self.accounts.of_session(parse(turn.session_key)), *map(self.accounts.like, places))
        case = (
            self.people.revision,
            *(account and account.label for account in accounts),
            turn.session_key,
            room,
            turn.kind,
            turn.place,
            *asking,
            *(
                (one.name, one.description, one.parameters, one.schema, one.off, one.owner_only, one.trusted_only)
                for one in found
            ),
        )
        if case not in self._kept:
            if len(self._kept) >= MOST:
                self._kept.clear()
            self._kept[case] = self._decided(turn, room, found)
        return self._kept[case]

    def trusts(self, turn: Turn) -> Callable[[str, str], bool]:
        """Return the function of `OriginRules.trusts` for a turn in which not only owners ask.

        It trusts the people to whom `tools.by_sender` gives as much by name as to those who ask.
        """

        def named(channel: str, sender: str) -> ToolLists | None:
            return self.tools.by_sender.get(f"{channel}:{sender}")

        guests = [one.origin for one in turn.messages if not self.people.is_owner(one)]
        given = [named(one.place.channel, one.sender) for one in guests]
        return lambda channel, sender: (
            self.people.owns(f"{channel}:{sender}") or all(one == named(channel, sender) for one in given)
        )

    def _decided(self, turn: Turn, room: Room, found: Sequence[Tool[Any]]) -> Offer:
        key = parse(turn.session_key)
        there = Policy((*self._everywhere(), *self._in_session(turn, key)))
        alone = self._alone(turn, key, room)
        askers = [self._asker(message, room) for message in turn.messages]
        trusted = all(map(is_trusted, turn.messages))
        narrowed = [one.tools for one in turn.messages if one.tools is not None]
        by_program = key.channel == "http" or (key.channel == "console" and key.base != console_key())
        offered: list[Tool[Any]] = []
        refused: dict[str, str] = {}
        for tool in found:
            if rule := there.why_not(tool.name, tool.group):
                why = _by(rule)
            elif tool.off:
                why = tool.off
            elif tool.trusted_only and not trusted and key.channel == "http":
                why = UNTRUSTED
            elif tool.owner_only and not (key.kind == "main" or (room.owned and not by_program)):
                why = NOT_OWNED
            elif tool.name == STAY_SILENT and by_program:
                why = AWAITED
            elif tool.name == SCHEDULE and begins_anew(turn.session_key):
                why = UNASKED
            elif not (why := alone.why_not(tool) if alone else ""):
                offered.append(tool)
                why = next(filter(None, (asker.why_not(tool) for asker in askers)), "")
                why = why or (UNTRUSTED if tool.trusted_only and not trusted else "")
                why = why or ("" if all(matches(tool.name, one) for one in narrowed) else UNNAMED)
            if why:
                refused[tool.name] = why
        for name in NAMES:  # tools that were not made at all
            if name not in {tool.name for tool in found} and (rule := there.why_not(name)):
                refused[name] = _by(rule)
        usable = (tool for tool in offered if tool.name not in refused)
        as_guest = frozenset(tool.name for tool in usable if any(asker.is_guest_for(tool) for asker in askers))
        own = [one for one in turn.messages if one.kind is not InboundKind.WAKE or not room.owned]
        by_owners = all(map(self.people.is_owner, own))
        return Offer(tuple(tool.name for tool in offered), tuple(map(spec, offered)), refused, as_guest, by_owners)

    def _alone(self, turn: Turn, key: ParsedKey, room: Room) -> _Asker | None:
        """Return the one guest who can write in a session, by its key; None: owners or several people can."""
        writers = self.rooms.writers(key)
        if room.owned or not writers:
            return None
        origins = []
        for channel, _, sender in (writer.partition(":") for writer in writers):
            place = Place(channel=channel, account=key.account, chat="", kind=ChatKind.DIRECT)
            origins.append(Origin(place=place, sender=sender))
        lists = [one for origin in origins for one in self._of_sender(origin)]
        return _Asker(Policy(), False, _named_in(lists))

    def _asker(self, message: InboundMessage, room: Room) -> _Asker:
        origin, is_owner = message.origin, self.people.is_owner(message)
        by_itself = message.kind is InboundKind.WAKE and room.owned  # a beat whose tasks only owners write
        lists = list(self._of_sender(origin))
        where = self.accounts.like(origin.place)
        group = self._of_group(where, origin) if where else ()
        may_all = is_owner or by_itself
        if may_all and self.tools.profile != "guest":
            return _Asker(Policy(_rules(lists)), is_owner, None)
        because = _by("tools.profile: guest") if may_all else FOR_GUESTS
        return _Asker(Policy(_rules(lists)), is_owner, _named_in((*lists, *group)), because)

    def _everywhere(self) -> Iterable[Rule]:
        tools = self.tools
        if tools.profile != "guest":  # for the profile guest, the lists of channels and people may add tools
            yield Rule(f"tools.profile: {tools.profile}", PROFILES[tools.profile], only=True)
        yield from rules("tools", tools.allow, tools.deny)
        if tools.exec.security == "deny":
            yield Rule("tools.exec.security: deny", ("group:runtime",), only=False)

    def _in_session(self, turn: Turn, key: ParsedKey) -> Iterable[Rule]:
        """Yield the rules of the account that a session belongs to, and of the group that its turn answers in."""
        yield from _rules(self._of_account(self.accounts.of_session(key)))
        is_beat = turn.kind is TurnKind.BEAT
        if is_beat and key.kind in ("direct", "main"):
            return  # the beat only answers there
        account = self.accounts.like(turn.place)
        if account is not None and turn.place.kind in (ChatKind.GROUP, ChatKind.CHANNEL):
            origin, section = turn.messages[0].origin, account.section
            if isinstance(section, AccountSection) and section.groups.of(*self._ids(origin)) is None:
                yield Rule(f"{_place(account)}.groups", (), only=True)  # the group was removed later
            yield from _rules(self._of_group(account, origin))
        elif is_beat:  # a group's beat that answers elsewhere: the group's rules are not known here
            yield Rule("heartbeat.target", (), only=True)

    def _of_account(self, account: Account | None) -> _Lists:
        if account is None or not isinstance(account.section, AccountSection):
            return
        plain = self.channels.get(account.channel.name)
        if isinstance(plain, AccountSection):
            yield f"channels.{account.channel.name}.tools", plain.tools
        yield f"{_place(account)}.tools", account.section.tools

    def _of_group(self, account: Account, origin: Origin) -> _Lists:
        if isinstance(account.section, AccountSection) and origin.place.kind is not ChatKind.DIRECT:
            for one in self._ids(origin):
                if one in account.section.groups.allow:
                    yield f"{_place(account)}.groups.allow.{one}.tools", account.section.groups.allow[one].tools

    def _of_sender(self, origin: Origin) -> _Lists:
        """Yield the lists for a person, and for the account where they write, as sessions can span several channels."""
        channel = origin.place.channel
        for who in (f"{channel}:{origin.sender}", f"{channel}:*"):
            if who in self.tools.by_sender:
                yield f"tools.by_sender.{who}", self.tools.by_sender[who]
        yield from self._of_account(self.accounts.like(origin.place))

    def _ids(self, origin: Origin) -> Sequence[str]:
        """Return all ids by which the configuration may name a group: present and former ids, and its space."""
        return (*self.people.chats(*chat_of(origin.place)), origin.space)


def _place(account: Account) -> str:
    channel, _, name = account.label.partition(":")
    return f"channels.{channel}.accounts.{name}" if name else f"channels.{channel}"


def _rules(lists: _Lists) -> Iterable[Rule]:
    return (rule for key, one in lists for rule in rules(key, one.allow, one.deny))


def _named_in(lists: _Lists) -> Collection[str]:
    """Return the patterns of the tools that guests have in full because lists name them."""
    return {
        pattern for _, one in lists for pattern in (*(one.allow or ()), *(PROFILES[one.profile] if one.profile else ()))
    }


def _by(rule: str) -> str:
    return f"not allowed by `{rule}`"
