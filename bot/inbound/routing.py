"""What becomes of one message from a platform, decided purely: access, gate, command, place of the answer, session."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot import wording
from bot.commands.registry import Askers, Registry
from bot.config.model import Queue
from bot.inbound import queueing
from bot.inbound.gate import gate, of_another
from bot.inbound.pairing import digest
from bot.people.access import LOCAL, refusal
from bot.people.conversations import Conversations, group_of
from bot.people.people import People, chat_of
from bot.persistence.causes import Cause
from bot.persistence.deliveries import OwnerNotice
from bot.persistence.inbox import AcceptedMessage
from bot.replies.reactions import acknowledge
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, Quoted, message_key
from channels.outgoing import Button, Planned
from channels.settings import AccountSection
from channels.sources import Source, sentence

# Milliseconds within which the next part of a message comes (an album, a long paste).
PARTS_DELAY = 500
# Milliseconds after which a message can no longer be made one to the bot by an edit.
NAMED_WITHIN = 24 * 3_600_000
# Bytes kept of the one message that is kept of an unknown sender.
STRANGER_LIMIT = 4096
# What the button sends with which people begin, and a question behind it; what a link brings along there is one word.
_STARTED = re.compile(r"/start\s+(?![\w-]{1,64}\s*$)(.*\S)\s*", re.DOTALL | re.IGNORECASE)


@dataclass(eq=False, slots=True, kw_only=True)
class Routing:
    """Decides by configuration and people.

    askers: tells who writes; who may decide requests is let in for that. queue: what the configuration says about
    messages that come one after the other.
    new_code: makes a code for a stranger. notice: makes deliveries of source, text and the name of the channel.
    to_owner: the same for an owner, of source and text. joins: whether messages may join runs.
    """

    people: People
    conversations: Conversations
    registry: Registry
    askers: Askers
    queue: Queue
    new_code: Callable[[], str]
    notice: Callable[[Source, str, str], tuple[Planned, ...]]
    to_owner: Callable[[Source, str], OwnerNotice]
    joins: bool = True

    def decide(self, message: InboundMessage) -> AcceptedMessage:
        """What is stored of it, and in which state."""
        place = message.origin.place
        if message.kind is InboundKind.MESSAGE and (asked := _STARTED.fullmatch(message.text)):
            message = replace(message, text=asked[1])
        account = None if self.people.is_blocked(message.origin) else self.conversations.section(place)
        group = group_of(account, self.people, message)
        asker = self.askers.of(message)
        is_owner, command = asker.is_owner, self.registry.find(message.text, asker)
        let_in = "order" if is_owner else self.people.let_in_by(message.origin)
        decides = command is not None and command[0].name == "approve" and asker.is_approver
        reason = refusal(message, account, group, is_owner=is_owner or decides, let_in_by=let_in)
        if reason is not None and reason is not Cause.PAIRING:
            kept = _bounded(message, reason)
            dropped = AcceptedMessage(message=kept, session_key=None, state="dropped", reason=reason)
            return self._told(dropped, message, account) if reason is Cause.GROUP and is_owner and account else dropped
        if reason is Cause.PAIRING and message.kind in (InboundKind.EDIT, InboundKind.DELETE):  # of what is held
            return AcceptedMessage(message=_bounded(message, reason), session_key=None, state="held")
        passes = gate(message, account, group, command is not None) if account and group else not of_another(message)
        if passes is False:
            return AcceptedMessage(message=message, session_key=None, state="overheard")
        if message.replied is not None:
            message = self._veiled(message)
        asks = message.kind is InboundKind.MESSAGE
        # What is probably a command that was mistyped: what follows is said, and no model asked.
        near = asks and message.text.startswith("/") and self.registry.nearest(message.text, asker) is not None
        if asks and (command or near):
            message = replace(message, kind=InboundKind.COMMAND)
        elif asks and account and passes != "shut" and not place.thread and account.opens_thread(message):
            lifted = replace(place, thread=message.origin.message_id)
            message = replace(message, origin=replace(message.origin, place=lifted))
        follows = None if passes is True else passes
        queue = self.queue.there(account)
        delay = _patience(message, queue.debounce_ms)
        key, say = self.conversations.session_key(message.origin, account), self._said(message, account)
        reason = reason or (Cause.OUTSIDE if message.origin.outside else None)
        accepted = AcceptedMessage(
            message=message, session_key=key, reason=reason, follows=follows, delay=delay, gathers=delay > 0, say=say
        )
        if message.kind in (InboundKind.MESSAGE, InboundKind.EDIT):
            accepted = replace(accepted, queue=queueing.rule(queue, self.notice, is_owner=is_owner, joins=self.joins))
        if message.kind is InboundKind.EDIT:
            accepted = replace(accepted, offer=self._offer(message), anew=self._anew(message))
        return self._held(accepted) if reason is Cause.PAIRING else accepted

    def _anew(self, edit: InboundMessage) -> AcceptedMessage | None:
        """What becomes of a message in a group that names the bot since it was edited; None: it does not.

        One that was sent long ago may have named it before, and its row may be gone.
        """
        origin = edit.origin
        if origin.place.kind is ChatKind.DIRECT or not 0 <= edit.sent_at - edit.first_sent_at < NAMED_WITHIN:
            return None
        key = message_key(origin.place.chat, origin.message_id)
        anew = self.decide(replace(edit, kind=InboundKind.MESSAGE, event_key=key))
        named = anew.state == "waiting" and anew.follows is None
        return replace(anew, delay=0, gathers=False) if named else None

    def _said(self, message: InboundMessage, account: AccountSection | None) -> tuple[Planned, ...]:
        """What is planned with it: a sign that it was seen; to an edit, what becomes of it if it comes too late."""
        origin = message.origin
        if message.kind is InboundKind.EDIT:
            source = sentence("edit", *chat_of(origin.place), origin.message_id)
            return self.notice(source, wording.EDITED_MEANWHILE, origin.place.channel)
        return acknowledge(message, account.ack) if account else ()

    def _offer(self, edited: InboundMessage) -> tuple[Planned, ...]:
        """The offer to answer an edited question anew; it is planned where there is an answer to take back."""
        origin = edited.origin
        source = sentence("reanswer", *chat_of(origin.place), origin.message_id)
        *first, last = self.notice(source, wording.EDITED_AFTERWARDS, origin.place.channel)
        button = Button("Answer the edited question", f"/reanswer {origin.message_id}")
        return (*first, replace(last, buttons=(button,)))

    def answers_in(self, place: Place, space: str) -> bool:
        """Whether anybody can be answered there. space: what it lies in, as of `Origin`."""
        account = self.conversations.section(place)
        if account is None or place.kind is ChatKind.DIRECT:
            return account is not None and account.dm.policy != "disabled"
        return account.groups.of(*self.people.chats(*chat_of(place)), space) is not None

    def may_show(self, origin: Origin) -> bool:
        """Whether a model may be shown what its sender says there: somebody who is let in, or the bot itself.

        Of other bots it may: they are not answered by that.
        """
        if origin.sender == origin.place.account:
            return True
        asks = _asking(replace(origin, by_bot=False))
        account, is_owner = self.conversations.section(origin.place), self.people.is_owner(asks)
        group = group_of(account, self.people, asks)
        let_in = self.people.let_in_by(origin)
        return refusal(asks, account, group, is_owner=is_owner, let_in_by=let_in) is None

    def _veiled(self, message: InboundMessage) -> InboundMessage:
        """A reply, without the words that it replies to where they are of somebody who is not let in."""
        origin, replied = message.origin, message.replied
        by = message.replied_by or replace(origin, sender="", roles=())
        if replied is None or replied.by_me or origin.place.kind is ChatKind.DIRECT or self.may_show(by):
            return message
        return replace(message, replied=Quoted(author="", text=wording.NOT_SHOWN), replied_by=None)

    def _held(self, accepted: AcceptedMessage) -> AcceptedMessage:
        message, code = _bounded(accepted.message, Cause.PAIRING), self.new_code()
        texts = {sentence("code", digest(code)): wording.pairing_code(code), sentence("kept"): wording.KEPT}
        told = [self.notice(name, text, message.origin.place.channel) for name, text in texts.items()]
        say, kept = ((replace(first, respond=message.respond), *rest) for first, *rest in told)
        held = replace(accepted, message=message, state="held", reason=Cause.PAIRING, delay=0, gathers=False)
        return replace(held, code=digest(code), say=say, kept=kept)

    def _told(self, dropped: AcceptedMessage, message: InboundMessage, account: AccountSection) -> AcceptedMessage:
        """An owner who names the bot in a group that is not let in is told how to let it in, once for each group."""
        origin, found = message.origin, self.conversations.accounts.of(message.origin.place)
        named = message.mentioned or message.kind is InboundKind.COMMAND
        if found is None or not named or account.groups.policy != "allowlist":
            return dropped
        key = f"{dropped.message.event_key}:{origin.sender}"
        source = sentence("group", origin.place.channel, origin.place.account, key)
        notice = self.to_owner(source, wording.group_not_let_in(origin, found.label))
        notice = replace(notice, owners=((origin.place.channel, origin.sender),))
        return replace(dropped, message=replace(dropped.message, event_key=key), notice=notice)


def _asking(origin: Origin) -> InboundMessage:
    return InboundMessage(origin=origin, event_key="", kind=InboundKind.MESSAGE, text="", sent_at=0)


def _patience(message: InboundMessage, debounce: int) -> int:
    """Milliseconds for which a message waits for more by its sender; 0 for what ends such a wait.

    debounce: for plain words, and for files without any. The parts of one message wait for each other in any case.
    """
    if message.kind is not InboundKind.MESSAGE or message.origin.place.kind in LOCAL:
        return 0
    whole = message.attachments and message.text  # else the words for its files may follow
    return max(0 if whole else debounce, PARTS_DELAY if message.part_of else 0)


def _bounded(message: InboundMessage, reason: Cause) -> InboundMessage:
    """What is kept of a stranger: at most 4 KB of text, no attachments, nothing that it brings along; of those who are
    dropped one message per sender, of a strange group one in all (by its key)."""
    origin = message.origin
    key = f"x:{origin.place.chat if reason is Cause.GROUP else origin.sender}"
    return InboundMessage(
        origin=replace(origin, sender_name=origin.sender_name[:64], chat_name=origin.chat_name[:64], roles=()),
        event_key=message.event_key if reason is Cause.PAIRING else key,
        kind=message.kind,
        text=message.text.encode()[:STRANGER_LIMIT].decode(errors="ignore"),
        sent_at=message.sent_at,
        respond=message.respond,
    )
