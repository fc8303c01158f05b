"""What goes out: a block of a reply, the call that a channel is asked to make, and what became of it."""

from dataclasses import dataclass
from enum import StrEnum

from channels.message import Place


class Action(StrEnum):
    """What a delivery does on the platform. Sends are the only ones that are not idempotent."""

    SEND = "send"
    PREVIEW = "preview"
    EDIT = "edit"
    DELETE = "delete"
    REACT = "react"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class ReplyBlock:
    """A piece of a reply, cut from the model's stream.

    text: Markdown to be rendered, fences closed. said: the exact slice of the model's own text it came from; the
    `said` of all blocks of an answer, joined, is that answer.
    """

    text: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One platform call. body: what the channel's own `render` made, kept in the store so that a resend is the same.

    nonce: 63 random bits, the same for every attempt. attempts: sends of it, this one too, that have or may have
    happened. source, said, planned_at: of the ledger, for a surface that shows the run live and must know which piece
    of it this is; most channels need none of them.
    """

    delivery_id: int
    place: Place
    action: Action
    body: str
    nonce: int
    attempts: int = 1
    source: str = ""
    said: str = ""
    planned_at: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """The platform has it. platform_id: its id there, empty where there is none."""

    platform_id: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Not sent; is to be tried again after retry_after seconds (None: when the channel says it is ready).

    body: what to send instead from now on, None for the same.
    """

    retry_after: float | None
    reason: str
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The platform refused for good; trying again would not help."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request was written, and no answer came that says what became of it: it may have been sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Certainly not sent: the conversation has another id now."""

    new_chat: str


SendResult = Sent | NotSent | Refused | Unknown | Moved
