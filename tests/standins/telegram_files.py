"""Uploads of the Telegram stand-in (sendDocument, sendPhoto, sendVoice), with a caption and its entities."""

from typing import Any

from aiohttp.web import FileField

from tests.standins.telegram_ledger import Json, Refusal, Rule
from tests.standins.telegram_text import check_text, utf16_length

MAX_CAPTION = 1024
MAX_UPLOAD = {"document": 50 * 1024 * 1024, "photo": 10 * 1024 * 1024, "voice": 50 * 1024 * 1024}


def check_upload(params: Json, field: str, complain: Any) -> tuple[str, bytes]:
    """Name and content of an upload; raises Refusal for what the Bot API does not take."""
    upload = params.get(field)
    if not isinstance(upload, FileField):
        raise Refusal(400, f"Bad Request: there is no {field} in the request", rule=Rule.BAD_VALUE)
    content = upload.file.read()
    if not content:
        raise Refusal(400, "Bad Request: file must be non-empty", rule=Rule.BAD_VALUE)
    if len(content) > MAX_UPLOAD[field]:
        raise Refusal(413, "Request Entity Too Large", rule=Rule.BAD_VALUE)
    if field == "voice" and not content.startswith(b"OggS"):
        # the page allows other sounds, which then are no voice messages
        raise Refusal(400, "Bad Request: a voice message is Ogg with Opus", rule=Rule.BAD_VALUE)
    if params.get("caption"):
        if utf16_length(params["caption"]) > MAX_CAPTION:
            raise Refusal(400, "Bad Request: message caption is too long", rule=Rule.BAD_VALUE)
        check_text({"text": params["caption"], "entities": params.get("caption_entities", [])}, complain)
    return upload.filename, content


def too_tall(content: bytes) -> bool:
    """Whether a PNG has more than 10,000 pixels in width and height together."""
    sides = content[16:20], content[20:24]
    return content.startswith(b"\x89PNG") and sum(int.from_bytes(one, "big") for one in sides) > 10_000
