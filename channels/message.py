"""What comes in from a platform: one frozen value per message, made once by an adapter and never edited.

Adapters produce these, `bot/inbound` decides about them, the store keeps them as JSON. Nothing of a platform's own
event travels further than the adapter that received it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class ChatKind(StrEnum):
    """What sort of conversation a place is; the names are those of session keys and of the store."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"
    CONSOLE = "console"
    API = "api"


# Kinds of places where several people read what is said.
SEVERAL = (ChatKind.GROUP, ChatKind.CHANNEL, ChatKind.THREAD)


class InboundKind(StrEnum):
    """What an inbound event is. Each kind has its own form of event key."""

    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    COMMAND = "command"
    BUTTON = "button"
    EVENT = "event"
    WAKE = "wake"
    JOB = "job"
    CHILD = "child"
    API = "api"


# What nobody wrote: it runs in the background, so that people find a place.
BACKGROUND = frozenset({InboundKind.WAKE, InboundKind.JOB, InboundKind.CHILD})
# What causes a turn and is shown to a model; edits change what still waits.
CLAIMED = BACKGROUND | {InboundKind.MESSAGE, InboundKind.API}
# What people order: it is answered without a model.
CARRIED_OUT = frozenset({InboundKind.COMMAND, InboundKind.BUTTON})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where messages are exchanged: one conversation of one account on one channel.

    account: the bot's own id on the platform, not its name in the configuration. thread: empty where there is none.
    """

    channel: str
    account: str
    chat: str
    kind: ChatKind
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a message came from: its place, who sent it, and the platform's id of it.

    space: id of what the chat lies in, which may be let in as a whole (a Discord server); empty where there is none.
    chat_name: title of the chat as the platform shows it; like sender_name for people to read, never compared.
    by_bot: another bot sent it. roles: ids of the roles that the sender has there. outside: the bot is not known to be
    in that chat, and can speak there only by answering (`InboundMessage.respond`).
    """

    place: Place
    sender: str = ""
    sender_name: str = ""
    message_id: str = ""
    space: str = ""
    chat_name: str = ""
    by_bot: bool = False
    roles: tuple[str, ...] = ()
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message, as a reference: the turn that needs it downloads it.

    kind: image, audio, video or file. ref: the platform's own reference. size: bytes, 0 when unknown.
    """

    kind: str
    ref: str
    name: str = ""
    mime: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words of somebody else that a message brings along. author: the name shown; by_me: the bot itself wrote them."""

    author: str
    text: str
    by_me: bool = False


# `answered`: the words are the answer to a question. `ask`: they decide nothing, so who wrote them is asked whether the
# request is to be denied with them as the reason.
ReplyDecision = Literal["once", "always", "denied", "answered", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReply:
    """What the words of a message do about a request or a question that its sender was asked."""

    # The whole id of the request.
    request_id: str
    decision: ReplyDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """One message or other event of a person, normalised.

    event_key: unique per channel and account; a redelivered event carries the same key, and that of a message is
    `message_key`. sent_at: milliseconds since the epoch, by the platform's clock. text: with mentions as readable
    names, without a mention of the bot at its beginning; of a button what it sends, of a command as people type it.
    reply_to: platform id of the message this one replies to, or whose button was pressed. replied: what that says;
    replied_by: whose it is, where that is told. forwarded: what it passes on. mentioned: it names the bot;
    names_others: it names somebody else. part_of: what came in several messages carries the same value in each (an
    album, a long paste). respond: the platform's own handle under which it wants to be answered, for a while; empty
    where there is none.
    """

    origin: Origin
    event_key: str
    kind: InboundKind
    text: str
    sent_at: int
    attachments: tuple[Attachment, ...] = ()
    reply_to: str = ""
    replied: Quoted | None = None
    replied_by: Origin | None = None
    forwarded: Quoted | None = None
    mentioned: bool = False
    names_others: bool = False
    part_of: str = ""
    respond: str = ""
    # Set by the store when it accepts words that are about a request; the message is a command then, and is carried out
    # without being parsed.
    decides: RequestReply | None = None
    schema: int = 1

    @property
    def by_person(self) -> bool:
        """Whether somebody wrote it, on a platform or in the terminal: an answer to this place reaches a person."""
        reached = self.origin.place.kind is not ChatKind.API and not self.origin.outside
        return self.kind not in BACKGROUND and reached


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadEvent:
    """An event that the adapter could not read: kept raw, reported once, passed over."""

    channel: str
    account: str
    event_key: str
    raw: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMoved:
    """A conversation whose id changed (a Telegram group that became a supergroup); what belongs to it follows."""

    channel: str
    account: str
    old_chat: str
    new_chat: str


Incoming = InboundMessage | UnreadEvent | ChatMoved


def id_order(message_id: str) -> tuple[int, str]:
    """By which ids of messages of one conversation are in the order of the platform, where it has a history."""
    return len(message_id), message_id


def message_key(chat: str, message_id: str) -> str:
    """The event key of a message, under which edits and deletions find it, however it came to the service."""
    return f"m:{chat}:{message_id}"
