"""What goes out: a block of a reply, the delivery that is planned for it, and the outcome of its platform call."""

import errno
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedReader
from pathlib import Path

from channels.message import Place
from channels.sources import Source

# O_PATH is enough for parent folders that may be entered but not listed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Action(StrEnum):
    """What a delivery does on the platform."""

    SEND = "send"
    # A message that is edited until its text is final; a channel is asked to SEND it, and then to EDIT it.
    PREVIEW = "preview"
    EDIT = "edit"
    DELETE = "delete"
    REACT = "react"
    FILE = "file"


# Repeating one of these is harmless, so it is repeated when its outcome is unknown.
IDEMPOTENT = frozenset({Action.EDIT, Action.DELETE, Action.REACT})


@dataclass(frozen=True, slots=True)
class Code:
    """A fenced block of code. mark, info: what opens it. content: its lines, without what stands around them."""

    mark: str
    info: str
    content: str

    def showing(self, content: str) -> str:
        """Return Markdown of the block with other content, such as a part of it."""
        return f"{self.mark}{self.info}\n{content.removesuffix(chr(10))}\n{self.mark}"


@dataclass(frozen=True, slots=True)
class ReplyBlock:
    """A piece of a reply, cut from the model's stream."""

    # Markdown to be rendered, with its code fences closed.
    text: str
    # The exact slice of the model's own text. The slices of all blocks of an answer, joined, are that answer.
    said: str
    # What the block is if it is better sent as a file.
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class Button:
    """A button below a message."""

    label: str
    # The command that a click sends: at most 64 bytes, which is what every platform carries.
    sends: str


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file to be sent."""

    # Absolute, on this machine.
    path: str
    # The name that people see.
    name: str
    # Empty when the type is not known.
    mime: str = ""
    # The words of a spoken answer, of which the file is made when it is to be sent.
    says: str = ""

    def open(self) -> BufferedReader:
        """Open the file for reading. Blocking. Raises OSError.

        Commands may have replaced the file since it was checked, so no link is followed and only a regular file opened.
        """
        *above, name = Path(self.path).parts
        way = os.open(above[0] if above else ".", _FOLDER)
        try:
            for part in above[1:]:
                below = os.open(part, _FOLDER, dir_fd=way)
                os.close(way)
                way = below
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=way)
        finally:
            os.close(way)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file")
        return os.fdopen(fd, "rb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A platform call to be made, and the words of the model that it shows.

    source: what it says or does, and piece: its number where that is several messages. Together they are unique, so
    that planning it again changes nothing. body: what the channel's own `render` made, kept so that
    a resend is the same; of a reaction its emoji, of a deletion nothing. nonce: 63 random bits, the same for every
    attempt. target: platform id of the message that is edited, deleted or reacted to. reply_to: platform id of the
    message that it is shown to answer. edits: id of the delivery that showed that message, where the platform's is
    not known yet. step: only of a piece of the model's answer. file: of the action that sends one;
    body is its caption, which may be empty. silent: without a sound, where the platform can. respond: the handle of the
    event that it answers (`InboundMessage.respond`); where it takes no more, an ordinary message is sent. unless:
    key of the source of a message of the same conversation that says the same; when that was sent, this one is not.
    """

    source: Source
    body: str
    nonce: int
    piece: int = 0
    said: str = ""
    step: int | None = None
    action: Action = Action.SEND
    target: str = ""
    edits: int = 0
    reply_to: str = ""
    buttons: tuple[Button, ...] = ()
    file: OutgoingFile | None = None
    silent: bool = False
    respond: str = ""
    unless: str = ""

    @property
    def unpaced(self) -> bool:
        """Whether the pace of messages does not hold it up: it is none, or strikes out what may be deleted by then."""
        return self.action in (Action.REACT, Action.DELETE) or (self.action is Action.EDIT and bool(self.unless))


class DeliveryState(StrEnum):
    """The state of a delivery. UNKNOWN is to be settled by its channel; UNCERTAIN can never be settled."""

    PLANNED = "planned"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    UNCERTAIN = "uncertain"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Planned):
    """One platform call as the ledger has it: what a channel is asked to carry out. Times in milliseconds.

    place: where the conversation is now. attempts: calls, this one too, that have or may have happened. longest: how
    long the wait until not_before was when it was asked for, so that a clock that is set back makes nobody wait longer.
    """

    delivery_id: int
    conv_id: int
    place: Place
    turn_id: str | None
    state: DeliveryState
    attempts: int
    not_before: int
    longest: int
    planned_at: int


@dataclass(frozen=True, slots=True)
class Sent:
    """The call was carried out."""

    # The platform's id of the message; empty where there is none.
    platform_id: str = ""
    # The manners (`channels.manners.Manner`) that the platform refused and that were given up.
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotSent:
    """The call was certainly not carried out and is to be retried."""

    # In seconds; None: when the channel reports that it can send.
    retry_after: float | None
    reason: str
    # The body to send from now on; None to keep it.
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The platform refused the call for good; a retry would not help."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request was written and its outcome was never told: the call may have been carried out."""

    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Certainly not sent: the conversation has another id."""

    new_chat: str


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Certainly not sent: it is to be sent as an ordinary message to this other conversation, that of its addressee."""

    place: Place


SendResult = Sent | NotSent | Refused | Unknown | Moved | Elsewhere


def as_body(arguments: Mapping[str, object]) -> str:
    """The arguments of a call as the body of a delivery; equal arguments give the same text."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
