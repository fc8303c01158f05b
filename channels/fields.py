"""How adapters read payloads: a value of the right kind, or `Unreadable`, and then the payload is kept as it came."""

import hashlib
import json
from typing import Any

from channels.message import UnreadEvent

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


def size_of(file: dict[str, Any], name: str) -> int:
    """How many bytes a file has; 0 when that is not told."""
    size = file.get(name)
    return max(size, 0) if isinstance(size, int) else 0


def kind_of(mime: str) -> str:
    """What sort of attachment a file of that type is."""
    family = mime.partition("/")[0]
    return family if family in _FAMILIES else "file"


def digest_of(text: str) -> str:
    """What tells texts apart, in 16 letters."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def edit_key(chat: str, message_id: str, stamp: object, text: str) -> str:
    """The event key of an edit: to the same text at the same moment it is the same edit."""
    return f"e:{chat}:{message_id}:{stamp}:{digest_of(text)}"


def unread_event(channel: str, account: str, payload: object, error: Exception, number: object = None) -> UnreadEvent:
    """The value for a payload that could not be read. number: the platform's own of it, if it has one."""
    raw = json.dumps(payload)
    return UnreadEvent(
        channel=channel,
        account=account,
        event_key=f"u:{digest_of(raw) if number is None else number}",
        raw=raw[:_RAW_LIMIT],
        error=f"{type(error).__name__}: {error}",
    )
