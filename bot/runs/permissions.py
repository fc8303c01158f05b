"""Which tools a turn has, which of them those who wrote it may call, and why not the others.

The layers of the configuration, each of which only takes away: the service, the channel, the account, the group, the
person. What the model is offered follows from the session alone, so that it stays the same for a whole transcript
(promise 7 of the design); what follows from who writes, and from where, is decided at the call.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.tools.base import Tool
from agent.tools.policy import PROFILES, Policy, Rule, rules
from agent.tools.registry import NAMES
from agent.tools.stay_silent import STAY_SILENT
from bot.accounts import Account, Accounts
from bot.config.tools import Tools
from bot.config.values import SCHEDULE
from bot.inbound.access import is_trusted
from bot.inbound.people import People, chat_of
from bot.persistence.values import Turn, TurnKind
from channels.message import ChatKind, Origin, Place
from channels.session_key import ParsedKey, begins_anew, parse
from channels.settings import AccountSection, ChannelSection, ToolLists

# Why a tool is not there, or not for those who ask; `/tools` and the model say it behind its name.
UNTRUSTED = "only for callers that have the gateway's token"
NOT_OWNED = "only where nobody but owners of this bot writes"
NO_OWNER = "only owners of this bot may use it"
AWAITED = "whoever asks here waits for an answer"
UNASKED = "what runs by itself orders nothing more"


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a turn. refused: why others are not among them, and which of them may not be called, by name."""

    tools: Sequence[Tool[Any]]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What the configuration and the people say. channels: the plain section of each by its name."""

    tools: Tools
    channels: Mapping[str, ChannelSection]
    accounts: Accounts
    people: People

    def offer(self, turn: Turn, found: Sequence[Tool[Any]]) -> Offer:
        """Which of all tools a turn has, in their order."""
        key = parse(turn.session_key)
        there = Policy((*self._everywhere(), *self._in_session(turn, key)))
        at_call = Policy(rule for message in turn.messages for rule in self._of_sender(message.origin))
        trusted, by_owners = (all(map(by, turn.messages)) for by in (is_trusted, self.people.is_owner))
        offered: list[Tool[Any]] = []
        refused: dict[str, str] = {}
        for tool in found:
            if rule := there.why_not(tool.name):
                why = _by(rule)
            elif tool.trusted_only and not trusted and key.channel == "http":
                why = UNTRUSTED
            elif tool.owner_only and not self._is_owned(key):
                why = NOT_OWNED
            elif tool.name == STAY_SILENT and key.channel == "http":
                why = AWAITED
            elif tool.name == SCHEDULE and begins_anew(turn.session_key):
                why = UNASKED
            else:
                offered.append(tool)
                rule = at_call.why_not(tool.name)
                why = _by(rule) if rule else NO_OWNER if tool.owner_only and not by_owners else ""
                why = why or (UNTRUSTED if tool.trusted_only and not trusted else "")
            if why:
                refused[tool.name] = why
        for name in NAMES:  # some are not even made
            if name not in {tool.name for tool in found} and (rule := there.why_not(name)):
                refused[name] = _by(rule)
        return Offer(offered, refused)

    def _everywhere(self) -> Iterable[Rule]:
        tools = self.tools
        yield Rule(f"tools.profile: {tools.profile}", PROFILES[tools.profile], only=True)
        yield from rules("tools", tools.allow, tools.deny)
        if tools.exec.security == "deny":
            yield Rule("tools.exec.security: deny", ("group:runtime",), only=False)

    def _in_session(self, turn: Turn, key: ParsedKey) -> Iterable[Rule]:
        """Of the channel that a session is of, if it is of one, and of the group that its turn answers in."""
        if key.channel:
            own = Place(channel=key.channel, account=key.account, chat="", kind=ChatKind.DIRECT)
            yield from self._of_account(self.accounts.like(own))
        is_beat = turn.kind is TurnKind.BEAT
        if is_beat and key.kind in ("direct", "main"):
            return  # it only answers there
        account = self.accounts.like(turn.place)
        if account is not None and turn.place.kind in (ChatKind.GROUP, ChatKind.CHANNEL):
            yield from self._of_group(account, turn.messages[0].origin)
        elif is_beat:  # a group's, whose rules are not to be had here
            yield Rule("heartbeat.target", (), only=True)

    def _of_account(self, account: Account | None) -> Iterable[Rule]:
        if account is None or not isinstance(account.section, AccountSection):
            return
        plain = self.channels.get(account.channel.name)
        if isinstance(plain, AccountSection):
            yield from _rules(f"channels.{account.channel.name}", plain.tools)
        yield from _rules(_place(account), account.section.tools)

    def _of_group(self, account: Account, origin: Origin) -> Iterable[Rule]:
        """In one that is not let in any more what was accepted before is answered without tools."""
        if not isinstance(account.section, AccountSection):
            return
        groups, ids = account.section.groups, (*self.people.chats(*chat_of(origin.place)), origin.space)
        if groups.of(*ids) is None:
            yield Rule(f"{_place(account)}.groups", (), only=True)
        for one in ids:
            if one in groups.allow:
                yield from _rules(f"{_place(account)}.groups.allow.{one}", groups.allow[one].tools)

    def _of_sender(self, origin: Origin) -> Iterable[Rule]:
        """Of a person, and of where they write, for a session may be shared by several channels."""
        channel = origin.place.channel
        for who in (f"{channel}:{origin.sender}", f"{channel}:*"):
            if who in self.tools.by_sender:
                lists = self.tools.by_sender[who]
                yield from rules(f"tools.by_sender.{who}", lists.allow, lists.deny)
        yield from self._of_account(self.accounts.like(origin.place))

    def _is_owned(self, key: ParsedKey) -> bool:
        """Whether only owners write in a session, as in their direct ones, the terminal and what jobs do; or several
        people share it, and the call decides."""
        person = f"{key.channel}:{key.id}" if key.channel else key.id
        owned: Collection[str] = [":".join(owner) for owner in self.people.owners]
        return ":" not in person or key.channel == "console" or person in owned


def _place(account: Account) -> str:
    channel, _, name = account.label.partition(":")
    return f"channels.{channel}.accounts.{name}" if name else f"channels.{channel}"


def _rules(key: str, lists: ToolLists) -> Iterable[Rule]:
    return rules(f"{key}.tools", lists.allow, lists.deny)


def _by(rule: str) -> str:
    return f"not allowed by `{rule}`"
