"""What becomes of one message from a platform, decided purely: access, gate, command, place of the answer, session."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from bot import wording
from bot.accounts import Accounts
from bot.commands.registry import Registry
from bot.inbound.access import GROUP, LOCAL, PAIRING, refusal
from bot.inbound.gate import gate
from bot.inbound.pairing import digest
from bot.inbound.people import People, chat_of
from bot.persistence.values import AcceptedMessage
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Action, Planned
from channels.session_key import DmScope, session_key
from channels.settings import AccountSection, Acknowledgement, Group

# Milliseconds within which the next part of a message comes (an album, a long paste).
PARTS_DELAY = 500
# Bytes kept of the one message that is kept of an unknown sender.
STRANGER_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Decides by configuration and people. links, scope: of session keys. several: channels with more than one account.

    approvers: "channel:id" of each; they are let in to decide. debounce: milliseconds for which one waits for more of
    its sender.
    new_code: makes a code for a stranger. notice: makes deliveries of source, text and the name of the channel.
    """

    accounts: Accounts
    people: People
    registry: Registry
    scope: DmScope
    links: Mapping[str, str]
    several: Collection[str]
    approvers: Collection[str]
    debounce: int
    new_code: Callable[[], str]
    notice: Callable[[str, str, str], tuple[Planned, ...]]

    def decide(self, message: InboundMessage) -> AcceptedMessage:
        """What is stored of it, and in which state."""
        place = message.origin.place
        account = self._section(place)
        group = group_of(account, self.people, message)
        is_owner, is_paired = self.people.is_owner(message), self.people.is_paired(message.origin)
        command = self.registry.find(message.text, is_owner)
        decides = command is not None and command[0].name == "approve" and _name_of(message.origin) in self.approvers
        reason = refusal(message, account, group, is_owner=is_owner or decides, is_paired=is_paired)
        if reason is not None and reason != PAIRING:
            return AcceptedMessage(message=_bounded(message, reason), session_key=None, state="dropped", reason=reason)
        if reason == PAIRING and message.kind in (InboundKind.EDIT, InboundKind.DELETE):  # of what is held
            return AcceptedMessage(message=_bounded(message, reason), session_key=None, state="held")
        passes = gate(message, account, group, command is not None) if account and group else True
        if passes is False:
            return AcceptedMessage(message=message, session_key=None, state="overheard")
        if message.kind is InboundKind.MESSAGE and command is not None:
            message = replace(message, kind=InboundKind.COMMAND)
        elif message.kind is InboundKind.MESSAGE and account and not place.thread and account.opens_thread(message):
            lifted = replace(place, thread=message.origin.message_id)
            message = replace(message, origin=replace(message.origin, place=lifted))
        follows = None if passes is True else passes
        delay = _patience(message, self.debounce)
        key, say = self._session_key(message.origin, account), self._said(message, account)
        accepted = AcceptedMessage(
            message=message, session_key=key, follows=follows, delay=delay, gathers=delay > 0, say=say
        )
        return self._held(accepted) if reason == PAIRING else accepted

    def _said(self, message: InboundMessage, account: AccountSection | None) -> tuple[Planned, ...]:
        """What is planned with it: a sign that it was seen; to an edit, what becomes of it if it comes too late."""
        origin = message.origin
        if message.kind is InboundKind.EDIT:
            source = f"edit:{origin.place.channel}:{origin.place.account}:{origin.place.chat}:{origin.message_id}"
            return self.notice(source, wording.EDITED_MEANWHILE, origin.place.channel)
        return acknowledge(message, account.ack) if account else ()

    def session_of(self, origin: Origin) -> str:
        """The session of what is said there; empty where each person has one of their own and nobody is named."""
        account = self._section(origin.place)
        several = account is not None and account.groups.session == "person" and not origin.sender
        return "" if several and origin.place.kind is not ChatKind.DIRECT else self._session_key(origin, account)

    def _section(self, place: Place) -> AccountSection | None:
        found = self.accounts.of(place)
        return found.section if found and isinstance(found.section, AccountSection) else None

    def _session_key(self, origin: Origin, account: AccountSection | None) -> str:
        """A chat that has moved goes on with the session that it began with."""
        if origin.place.kind is not ChatKind.DIRECT:
            chat = self.people.chats(*chat_of(origin.place))[-1]
            origin = replace(origin, place=replace(origin.place, chat=chat))
        with_account = origin.place.channel in self.several
        shared = account.groups.session if account else "thread"
        return session_key(origin, self.scope, self.links, with_account=with_account, groups=shared)

    def _held(self, accepted: AcceptedMessage) -> AcceptedMessage:
        message, code = _bounded(accepted.message, PAIRING), self.new_code()
        origin = message.origin
        first, *rest = self.notice(f"code:{digest(code)}", wording.pairing_code(code), origin.place.channel)
        say = (replace(first, respond=message.respond), *rest)
        held = replace(accepted, message=message, state="held", reason=PAIRING, delay=0, gathers=False)
        return replace(held, code=digest(code), say=say)


def _name_of(origin: Origin) -> str:
    return f"{origin.place.channel}:{origin.sender}"


def _patience(message: InboundMessage, debounce: int) -> int:
    """Milliseconds for which a message waits for more by its sender; 0 for what ends such a wait.

    debounce: for plain words. The parts of one message wait for each other in any case.
    """
    if message.kind is not InboundKind.MESSAGE or message.origin.place.kind in LOCAL:
        return 0
    return max(0 if message.attachments else debounce, PARTS_DELAY if message.part_of else 0)


def acknowledge(message: InboundMessage, wanted: Acknowledgement) -> tuple[Planned, ...]:
    """The reaction that says "seen, I am on it", planned with a message and taken away when its turn ends; none where
    it is not wanted or cannot be."""
    place = message.origin.place
    direct = place.kind is ChatKind.DIRECT
    in_scope = {"direct": direct, "mention": not direct and message.mentioned, "all": True}[wanted.scope]
    target = message.origin.message_id
    if not wanted.emoji or not in_scope or not target or message.kind is not InboundKind.MESSAGE:
        return ()
    source = f"ack:{place.channel}:{place.account}:{message.event_key}"  # the end of a turn finds it by that
    return (Planned(source=source, body=wanted.emoji, nonce=0, action=Action.REACT, target=target),)


def group_of(account: AccountSection | None, people: People, message: InboundMessage) -> Group | None:
    """What holds where a message was said; None in direct messages, and where the bot is not to answer."""
    origin = message.origin
    if account is None or origin.place.kind is ChatKind.DIRECT:
        return None
    return account.groups.of(*people.chats(*chat_of(origin.place)), origin.space)


def _bounded(message: InboundMessage, reason: str) -> InboundMessage:
    """What is kept of a stranger: at most 4 KB of text, no attachments, nothing that it brings along; of those who are
    dropped one message per sender, of a strange group one in all (by its key)."""
    origin = message.origin
    key = f"x:{origin.place.chat if reason == GROUP else origin.sender}"
    return InboundMessage(
        origin=replace(origin, sender_name=origin.sender_name[:64], chat_name=origin.chat_name[:64], roles=()),
        event_key=message.event_key if reason == PAIRING else key,
        kind=message.kind,
        text=message.text.encode()[:STRANGER_LIMIT].decode(errors="ignore"),
        sent_at=message.sent_at,
        respond=message.respond,
    )
