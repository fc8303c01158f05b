"""What goes out: a block of a reply, the platform call that is planned of it and carried out, what became of that."""

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

# Folders above ours may be open to be passed, and not to be listed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Action(StrEnum):
    """What a delivery does on the platform. PREVIEW: a message that is edited until the words in it are final;
    a channel is asked to SEND it, and then to EDIT it."""

    SEND = "send"
    PREVIEW = "preview"
    EDIT = "edit"
    DELETE = "delete"
    REACT = "react"
    FILE = "file"


# Done twice they have done no more than once, so one whose outcome nobody knows is simply repeated.
IDEMPOTENT = frozenset({Action.EDIT, Action.DELETE, Action.REACT})


@dataclass(frozen=True, slots=True)
class ReplyBlock:
    """A piece of a reply, cut from the model's stream.

    text: Markdown to be rendered, fences closed. said: the exact slice of the model's own text it came from; the
    `said` of all blocks of an answer, joined, is that answer.
    """

    text: str
    said: str


@dataclass(frozen=True, slots=True)
class Button:
    """Below a message. label: what it says. sends: the command that a click on it is, at most 64 bytes of it: what the
    narrowest platform carries."""

    label: str
    sends: str


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file to be sent. path: on this machine, absolute; name: what people see; mime: empty when it is not known."""

    path: str
    name: str
    mime: str = ""

    def open(self) -> BufferedReader:
        """The file, for reading. Blocking. Between the look at it and this, commands may have put something else in its
        place: no link is followed on the way, and only a regular file is opened. Raises OSError."""
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


class DeliveryState(StrEnum):
    """States of a delivery (durability.md part 5). UNKNOWN is to be settled by its channel, UNCERTAIN never can be."""

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


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Certainly not sent: it is to be an ordinary message in this other conversation, that of the person it is for."""

    place: Place


SendResult = Sent | NotSent | Refused | Unknown | Moved | Elsewhere


def as_body(arguments: Mapping[str, object]) -> str:
    """The arguments of a call as the body of a delivery, the same text each time."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
