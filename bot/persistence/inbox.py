"""Values that the inbox takes and returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.persistence.causes import Cause
from bot.persistence.deliveries import OwnerNotice
from channels.message import ChatMoved, InboundMessage, Place, UnreadEvent
from channels.outgoing import Delivery, Planned
from channels.settings import QueueDrop, QueueMode
from channels.sources import Source

# When a message that does not name the bot is for it, unless the session's `activation` decides: started: the bot began
# the thread; joined: the bot spoke in the thread; open: always; shut: never. If one part of a message is for the bot,
# all its parts are.
Follows = Literal["started", "joined", "open", "shut"]
# The state in which a message is accepted. held: until its sender is let in, or the history before it is read.
# overheard: it was written where the bot is, but not to the bot. steering: the run reads it before its next answer.
MessageState = Literal["waiting", "held", "overheard", "dropped", "steering"]

# A message that gathers waits at most this many delays after the first of its group.
GATHER_MOST = 5
# The number of overheard messages that are kept for a conversation.
OVERHEARD = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRule:
    """What becomes of a message that comes while others wait or are answered."""

    # What the configuration says; the session may say another mode.
    mode: QueueMode
    cap: int
    drop: QueueDrop
    # Whether the message may join or end only a run that its sender alone asked for.
    only_own: bool
    # Whether it may join a run at all; else it waits, so that hooks are asked about it.
    joins: bool = True
    # Makes what people at a place are told, by its source: how messages are dropped there, or that a newer message of
    # somebody else has ended their run.
    tells: Callable[[Source, Place, Literal[QueueDrop, "interrupt"]], tuple[Planned, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMessage:
    """A message as the inbound pipeline hands it to the store: let in, overheard, held or dropped by a stated rule."""

    message: InboundMessage
    # None if the message is overheard or dropped.
    session_key: str | None
    state: MessageState = "waiting"
    # Why it is held or dropped.
    reason: Cause | None = None
    # The id of a turn to be made with the message, so that a client can ask for it at once (HTTP).
    turn_id: str | None = None
    # The digest of the body of an HTTP request.
    digest: str | None = None
    # For how many milliseconds no run takes the message.
    delay: int = 0
    # The message waits for further ones of its sender in its conversation (debounce). Each further message delays all
    # of them, at most to GATHER_MOST delays after the first; a command or a message that does not gather ends the wait.
    # One run takes them together. With `delay` 0 the message was missed; one run takes all that a conversation missed.
    gathers: bool = False
    # Blocks that are planned in the conversation of the message unless it is a duplicate. Those of an edit are planned
    # only if the edited message is being answered.
    say: tuple[Planned, ...] = ()
    # Of an edit: what is planned if the answer to the edited message is the last that was said in its session.
    offer: tuple[Planned, ...] = ()
    # Set if the message does not name the bot. If it is not for the bot, it is overheard.
    follows: Follows | None = None
    # Of a held message: the digest of the pairing code that `say` tells the sender, unless too many codes are valid.
    code: str = ""
    # Planned instead of `say` while an earlier code of the sender is valid.
    kept: tuple[Planned, ...] = ()
    notice: OwnerNotice | None = None
    # Of an edit: how its message is stored if it was not for the bot before, which the edit has changed.
    anew: "AcceptedMessage | None" = None
    # The history before the message is not read yet: it is held until the history is released.
    behind: bool = False
    # None if the message waits for a turn of its own in any case.
    queue: QueueRule | None = None
    # As `behind`, if no turn of the session has taken a message of this thread before.
    asks_around: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """The history of a conversation has been read up to and including the message with the id `cursor`."""

    place: Place
    cursor: str


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """How far the history of a conversation has been read."""

    place: Place
    # See `Heard`; empty if the history was never read.
    cursor: str
    # Messages of the conversation are held until the history before them is read.
    held: bool
    # Messages to the bot may have been missed here while it was not connected.
    listed: bool


@dataclass(frozen=True, slots=True)
class AccountHistory:
    """What is known of the conversations of an account of the bot."""

    # When the account was seen for the first time, in milliseconds, and whether this is that time.
    first: int
    fresh: bool
    conversations: Sequence[ConversationHistory]


Accepted = AcceptedMessage | UnreadEvent | ChatMoved | Heard


@dataclass(frozen=True, slots=True)
class Fresh:
    """A message was stored."""

    # The position in the order of acceptance; 0 if no row was stored.
    seq: int
    # When a run may take the message, in milliseconds; 0: at once.
    ready_at: int = 0
    # The deliveries that were planned with it.
    said: tuple[Delivery, ...] = ()
    # The state in which it was stored, and why.
    state: MessageState = "waiting"
    reason: Cause | None = None
    # The time until `ready_at`, in milliseconds.
    wait: int = 0
    # A session in which another message has become ready.
    wake: str | None = None
    # The message as it was stored, if it answers a request and was stored as something else.
    became: InboundMessage | None = None
    # The id of the approval that the session waits for.
    waits_for: str | None = None
    # When it was stored, in milliseconds; 0 if it is no message of its own.
    at: int = 0
    # The turns that it has ended.
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A message with the same event key had been stored before. The fields are those of its row."""

    seq: int
    turn_id: str | None
    digest: str | None


# What the model is told in front of the first message of a turn: each edit or deletion with the former text of the
# message and the time at which that was sent (milliseconds); and events, among them what the bot itself wrote in this
# conversation from another one.
Changes = Sequence[tuple[InboundMessage, str, int]]
