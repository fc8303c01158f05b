"""What the inbox is given to keep, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.persistence.causes import Cause
from bot.persistence.deliveries import OwnerNotice
from channels.message import ChatMoved, InboundMessage, Place, UnreadEvent
from channels.outgoing import Delivery, Planned

# Whether a message that does not name the bot is for it, unless something is set for its session: where the bot began
# the thread, or where it spoke in it, or always, or never. A message is, too, where another part of it is.
Follows = Literal["started", "joined", "open", "shut"]
# What becomes of a message as it is accepted. Held: until its sender is let in, or what was said before it is read.
# Overheard: said where the bot is, and not to it.
MessageState = Literal["waiting", "held", "overheard", "dropped"]

# How many delays behind the first a message that gathers waits at the most.
GATHER_MOST = 5
# Lines kept of what was said in a conversation and not to the bot.
OVERHEARD = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMessage:
    """A message that the inbound pipeline let in, only overheard, or dropped by a stated rule."""

    message: InboundMessage
    # None for one that is overheard or dropped.
    session_key: str | None
    state: MessageState = "waiting"
    # Why it is held or dropped.
    reason: Cause | None = None
    # Where somebody must be able to ask for the turn by its id from the start (HTTP); the turn is made with it.
    turn_id: str | None = None
    # Digest of the body of an HTTP request.
    digest: str | None = None
    # Milliseconds for which no run takes it.
    delay: int = 0
    # It waits for more of its sender in its conversation. Each further message moves the moment for all that wait, at
    # most to GATHER_MOST delays behind the first, and one run takes them together; anything else that they write there
    # ends the wait. Without a delay it was missed: one run takes all messages of its conversation that were.
    gathers: bool = False
    # Planned with it in its own conversation, unless it was there already; with an edit, only if the message that it
    # changes is just being answered.
    say: tuple[Planned, ...] = ()
    # Set where it does not name the bot. What is not for the bot is overheard.
    follows: Follows | None = None
    # Of one that is held: digest of the code that its sender is given by `say`, unless too many codes are out.
    code: str = ""
    # Said instead of `say` while that code is good.
    kept: tuple[Planned, ...] = ()
    notice: OwnerNotice | None = None
    # What was said before it is not read yet: no run takes it until it is released.
    behind: bool = False
    # The same, where no turn of its session has taken anything of its thread yet.
    asks_around: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """Up to this message of the platform's history nothing of a conversation is missing."""

    place: Place
    cursor: str


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """A conversation as far as it was heard."""

    place: Place
    # See `Heard`; empty where there is none.
    cursor: str
    # Messages wait there until what was said before them is read.
    held: bool
    # Something may have been said to the bot there while it did not listen.
    listed: bool


@dataclass(frozen=True, slots=True)
class AccountHistory:
    """What is known of the conversations of an account of the bot."""

    # When the account was heard of for the first time, in milliseconds, and whether that is now.
    first: int
    fresh: bool
    conversations: Sequence[ConversationHistory]


Accepted = AcceptedMessage | UnreadEvent | ChatMoved | Heard


@dataclass(frozen=True, slots=True)
class Fresh:
    """A message was stored."""

    # Its place in the order of acceptance.
    seq: int
    # From when on a run takes it, in milliseconds; 0: at once.
    ready_at: int = 0
    # What was planned with it.
    said: tuple[Delivery, ...] = ()
    # What became of it, and why.
    state: MessageState = "waiting"
    reason: Cause | None = None
    # How long ready_at is from now, in milliseconds.
    wait: int = 0
    # The session in which something else has become ready by it.
    wake: str | None = None
    # As what it was stored, where it answers what was asked.
    became: InboundMessage | None = None
    # The approval that the turn before it waits for.
    waits_for: str | None = None
    # When it was stored, in milliseconds; of a message of which a turn or a command is made.
    at: int = 0


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The event key of a message was there already. turn_id and digest are those of the row that is there."""

    seq: int
    turn_id: str | None
    digest: str | None


# What the model is told in front of the message that begins a turn: edits and deletions of messages that it had seen,
# each with what that message said and when it was sent (milliseconds); as events, what it wrote there itself from
# another conversation.
Changes = Sequence[tuple[InboundMessage, str, int]]
