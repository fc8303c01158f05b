"""Markdown to the bodies of sendMessage: text and entities, never a parse mode, so that nothing can be rejected.

A body is JSON with the arguments of the call but the chat. Link previews are off: Telegram would fetch any address
that the model was made to write.
"""

import json
import unicodedata

from channels.markdown.entities import Entity, Formatted
from channels.markdown.render import render
from channels.markdown.split import split

MAX_UNITS = 4096
MAX_ENTITIES = 100


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    return [_body(piece) for piece in split(render(markdown), MAX_UNITS, MAX_ENTITIES) if _shows(piece.text)]


def _body(piece: Formatted) -> str:
    arguments: dict[str, object] = {"text": piece.text, "link_preview_options": {"is_disabled": True}}
    if piece.entities:
        arguments["entities"] = [_entity(entity) for entity in piece.entities]
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _entity(entity: Entity) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"type": entity.type.value, "offset": entity.offset, "length": entity.length}
    if entity.url:
        fields["url"] = entity.url
    if entity.language:
        fields["language"] = entity.language
    return fields


def _shows(text: str) -> bool:
    """Whether there is a character to see: Telegram refuses a message of spaces, marks and format characters."""
    return any(unicodedata.category(char)[0] not in "ZCM" for char in text)
