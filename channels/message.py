"""What comes in from a platform: one frozen value per message, made once by an adapter and never edited.

Adapters make these from the platform's payloads with the functions below, `bot/inbound` decides about them, and the
store keeps them as JSON. Nothing of a platform's own event goes further than the adapter that received it.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal


class ChatKind(StrEnum):
    """The kind of a conversation; the values are used in session keys and in the store."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"
    CONSOLE = "console"
    API = "api"


# The kinds of places where several people read the messages.
SEVERAL = (ChatKind.GROUP, ChatKind.CHANNEL, ChatKind.THREAD)


class InboundKind(StrEnum):
    """The kind of an inbound event. Each kind has its own form of event key."""

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


# The kinds that nobody wrote. They run in the background, so that people find a free place.
BACKGROUND = frozenset({InboundKind.WAKE, InboundKind.JOB, InboundKind.CHILD})
# The kinds that cause a turn and are shown to a model.
CLAIMED = BACKGROUND | {InboundKind.MESSAGE, InboundKind.API}
# The kinds that are answered without a model.
CARRIED_OUT = frozenset({InboundKind.COMMAND, InboundKind.BUTTON})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where messages are exchanged: one conversation of one account on one channel."""

    channel: str
    # The bot's own id on the platform, not its name in the configuration.
    account: str
    chat: str
    kind: ChatKind
    # Empty outside of threads.
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a message came from: its place, its sender, and the platform's id of it."""

    place: Place
    sender: str = ""
    # The name of the sender as the platform shows it: for people to read, never compared.
    sender_name: str = ""
    message_id: str = ""
    # The id of what contains the chat and may be allowed as a whole (a Discord server); empty where there is none.
    space: str = ""
    # The title of the chat as the platform shows it: for people to read, never compared.
    chat_name: str = ""
    # Whether another bot sent it.
    by_bot: bool = False
    # The ids of the roles that the sender has there.
    roles: tuple[str, ...] = ()
    # Whether the bot is not known to be in that chat, so that it can speak there only through `InboundMessage.respond`.
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message, as a reference: the turn that needs it downloads it."""

    # image, audio, video or file.
    kind: str
    # The platform's own reference.
    ref: str
    name: str = ""
    mime: str = ""
    # In bytes; 0 when unknown.
    size: int = 0
    # Whether it is a voice message: the sender's own words, unless the message passes them on.
    spoken: bool = False
    # Of a file of `InboundMessage.files` that is of another message: the id of who sent it, or "unknown".
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A message that another one quotes, replies to or forwards. The files of a forwarded one are the message's own."""

    # The name of its author as the platform shows it.
    author: str
    text: str
    # Whether the bot itself wrote it.
    by_me: bool = False
    attachments: tuple[Attachment, ...] = ()


# `answered`: the words are the answer to a question. `ask`: they decide nothing, so who wrote them is asked whether the
# request is to be denied with them as the reason.
ReplyDecision = Literal["once", "always", "denied", "answered", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReply:
    """What the words of a message do about a request or a question that its sender was asked."""

    # The whole id of the request.
    request_id: str
    decision: ReplyDecision
    # Of several calls the numbers, from 1, of those that alone are allowed; empty: it is about all of them.
    picked: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """One message or other event of a person, normalised."""

    origin: Origin
    # Unique per channel and account. A redelivered event has the same key; that of a message is `message_key`.
    event_key: str
    kind: InboundKind
    # With mentions as readable names and without a mention of the bot at its beginning. Of a button the command that it
    # sends, of a command the words as people type them.
    text: str
    # Milliseconds since the epoch, by the platform's clock.
    sent_at: int
    attachments: tuple[Attachment, ...] = ()
    # The platform's id of the message that this one replies to, or whose button was pressed.
    reply_to: str = ""
    # The text of that message, and its origin where the platform tells it.
    replied: Quoted | None = None
    replied_by: Origin | None = None
    forwarded: Quoted | None = None
    # The files of what was written before it and not to the bot, set by the store when a turn takes it.
    overheard: tuple[Attachment, ...] = ()
    # Of an edit, when the message was sent that it changes, by the platform's clock; 0: unknown.
    first_sent_at: int = 0
    # What a program tells the model beside its message, for this message alone.
    extra_context: str = ""
    # Where the text of an event, a beat or a job came from, as JSON; empty: it is the service's or an owner's.
    origins: str = ""
    # Whether it mentions the bot.
    mentioned: bool = False
    # Whether it mentions somebody else.
    names_others: bool = False
    # The same value in each message of a group (an album, a long paste); empty for a single message.
    part_of: str = ""
    # The platform's own handle for answering a command or a click, which expires; empty where there is none.
    respond: str = ""
    # Set by the store when it accepts words that are about a request; the message is a command then, and is carried out
    # without being parsed.
    decides: RequestReply | None = None
    # The level of thinking that this message asks for, as /think with words behind it does; empty: none.
    thinking: Literal["", "auto", "off", "low", "medium", "high", "x-high"] = ""
    # The name of the model that is to answer this message; empty: the one of its session or place.
    model: str = ""
    # The tools that the skill names which this message uses; no others may be called in its turn. None: all may.
    tools: tuple[str, ...] | None = None
    # Whether a person typed it in the terminal, which alone says so.
    typed: bool = False
    schema: int = 1

    @property
    def by_person(self) -> bool:
        """Whether a person wrote it on a platform or in the terminal, so that an answer to this place reaches them."""
        reached = self.origin.place.kind is not ChatKind.API and not self.origin.outside
        return self.kind not in BACKGROUND and reached

    @property
    def files(self) -> tuple[Attachment, ...]:
        """Its files, and behind them those that it refers to: of what it replies to, and of what was overheard."""
        if self.replied is None:
            return (*self.attachments, *self.overheard)
        by = (self.replied_by.sender if self.replied_by else "") or "unknown"
        replied = (replace(file, spoken=False, by=by) for file in self.replied.attachments)
        return (*self.attachments, *replied, *self.overheard)

    @property
    def by_hand(self) -> bool:
        """Whether its words may decide something: they came from a platform, or were typed in the terminal.

        Programs write over HTTP and in the terminal's session as well, and may be led by what they have read.
        """
        return self.typed or self.origin.place.kind not in (ChatKind.CONSOLE, ChatKind.API)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadEvent:
    """An event that the adapter could not read: it is kept raw, reported once and skipped."""

    channel: str
    account: str
    event_key: str
    raw: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMoved:
    """A conversation whose id changed, such as a Telegram group that became a supergroup."""

    channel: str
    account: str
    old_chat: str
    new_chat: str


Incoming = InboundMessage | UnreadEvent | ChatMoved


def id_order(message_id: str) -> tuple[int, str]:
    """The sort key that puts ids of messages of one conversation in the platform's order."""
    return len(message_id), message_id


def message_key(chat: str, message_id: str) -> str:
    """The event key of a message, by which edits and deletions find it."""
    return f"m:{chat}:{message_id}"
