"""How adapters read payloads: a value of the right kind, or `Unreadable`, and then the payload is kept as it came.

And the values that all of them make alike.
"""

import hashlib
import json
from typing import Any

from channels.message import Attachment, InboundKind, InboundMessage, Origin, UnreadEvent
from channels.utf16 import whole

_RAW_LIMIT = 16_384
_FAMILIES = ("image", "audio", "video")


class Unreadable(ValueError):
    """A payload is not as the platform documents it; says what is wrong."""


def an_object(value: object, name: str) -> dict[str, Any]:
    """The value, which must be an object. Raises Unreadable, as all of these."""
    if not isinstance(value, dict):
        raise Unreadable(f"{name} is no object")
    return value


def objects(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects; none when it is not there."""
    value = fields.get(name) or []
    if not isinstance(value, list):
        raise Unreadable(f"{name} is no list")
    return [an_object(one, name) for one in value]


def string(fields: dict[str, Any], name: str) -> str:
    """A text."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise Unreadable(f"{name} is no text")
    return value


def file_of(ref: str, name: object, mime: str, size: object, kind: str = "") -> Attachment:
    """A file that came with a message. name, size: where they are told. kind: else what its type says."""
    family = mime.partition("/")[0]
    kind = kind or (family if family in _FAMILIES else "file")
    told = max(size, 0) if isinstance(size, int) else 0
    return Attachment(kind=kind, ref=ref, name=whole(str(name or "")), mime=mime, size=told)


def digest_of(text: str) -> str:
    """What tells texts apart, in 16 letters."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def edit_key(chat: str, message_id: str, stamp: object, text: str) -> str:
    """The event key of an edit: to the same text at the same moment it is the same edit."""
    return f"e:{chat}:{message_id}:{stamp}:{digest_of(text)}"


def interaction(
    kind: InboundKind, number: str, origin: Origin, text: str, sent_at: int, respond: str, reply_to: str = ""
) -> InboundMessage:
    """What people order: a command, or a click on a button of the message `reply_to`. number: the platform's own of it;
    the others as of `InboundMessage`."""
    key, text = f"{'c' if kind is InboundKind.COMMAND else 'b'}:{number}", whole(text)
    return InboundMessage(
        origin=origin, event_key=key, kind=kind, text=text, sent_at=sent_at, respond=respond, reply_to=reply_to
    )


def deletion(origin: Origin, sent_at: int) -> InboundMessage:
    """The event that the message of this origin was deleted."""
    key = f"d:{origin.place.chat}:{origin.message_id}"
    return InboundMessage(origin=origin, event_key=key, kind=InboundKind.DELETE, text="", sent_at=sent_at)


def unread_of(channel: str, account: str, payload: object, error: Exception, number: object = None) -> UnreadEvent:
    """The value for a payload that could not be read. number: the platform's own of it, if it has one."""
    raw = json.dumps(payload)
    key, wrong = f"u:{digest_of(raw) if number is None else number}", f"{type(error).__name__}: {error}"
    return UnreadEvent(channel=channel, account=account, event_key=key, raw=raw[:_RAW_LIMIT], error=wrong)
