"""How the Anthropic stand-in signs thinking and knows its own blocks again.

A signature is a keyed hash of the text, so that a server started anew still knows what the API has issued.
The id of a tool call holds a digest of the thinking before it, so that missing blocks are noticed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Any

Json = dict[str, Any]

_KEY = b"stand-in"
_OUR_ID = re.compile(r"toolu_01([0-9a-f]{8})[0-9a-f]{12}")


def sign(thinking: str, hidden: str = "") -> str:
    """The signature of a thinking block; `hidden` is the reasoning behind a block whose text is omitted."""
    nonce = hashlib.sha256(hidden.encode()).hexdigest()[:16]
    mac = hmac.new(_KEY, f"{nonce}|{thinking}".encode(), "sha256").digest()
    return f"{nonce}{base64.b64encode(mac).decode()}"


def redact(thinking: str) -> str:
    """The data of a redacted thinking block."""
    return sign("redacted", thinking)


def genuine(block: Json) -> bool:
    """Whether a block is no thinking block or one that the API has issued, unchanged."""
    if block["type"] == "thinking":
        return _genuine(block["signature"], block["thinking"])
    return block["type"] != "redacted_thinking" or _genuine(block["data"], "redacted")


def _genuine(signature: str, text: str) -> bool:
    mac = hmac.new(_KEY, f"{signature[:16]}|{text}".encode(), "sha256").digest()
    return signature[16:] == base64.b64encode(mac).decode()


def mark_of(block: Json) -> str:
    """What identifies a thinking block: its signature or its data."""
    return str(block["signature"] if block["type"] == "thinking" else block["data"])


def tool_use_id(number: int, signatures: list[str]) -> str:
    """An id for a tool call that follows thinking blocks with these signatures in the same message."""
    return f"toolu_01{thinking_digest(signatures)}{number:012x}"


def thinking_digest(signatures: list[str]) -> str:
    return hashlib.sha256("|".join(signatures).encode()).hexdigest()[:8] if signatures else "0" * 8


def thinking_digest_of(call: str) -> str | None:
    """The digest in an id of ours, None for a foreign id."""
    match = _OUR_ID.fullmatch(call)
    return match and match[1]
