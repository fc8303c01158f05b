"""Markdown to the bodies of sendMessage: text and entities, never a parse mode, so that nothing can be rejected.

A body is JSON with the arguments of the call but the chat. Link previews are off: Telegram would fetch any address
that the model was made to write.
"""

import json

from channels.markdown.entities import Entity, Formatted
from channels.markdown.render import render
from channels.markdown.split import shows, split
from channels.telegram.links import is_link

MAX_UNITS = 4096
MAX_ENTITIES = 100


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    whole = render(markdown, lambda url, words: is_link(url))
    return [_body(piece) for piece in split(whole, MAX_UNITS, MAX_ENTITIES) if shows(piece.text)]


def plain_body(body: str) -> str | None:
    """A message without its entities, the targets of links behind their words; None when it has no entities."""
    arguments = json.loads(body)
    entities = arguments.pop("entities", None)
    if not entities:
        return None
    text = arguments["text"].encode("utf-16-le")
    for entity in sorted(entities, key=lambda entity: entity["offset"] + entity["length"], reverse=True):
        end = 2 * (entity["offset"] + entity["length"])
        if "url" in entity:
            text = text[:end] + f" ({entity['url']})".encode("utf-16-le") + text[end:]
    if len(text) <= 2 * MAX_UNITS:
        arguments["text"] = text.decode("utf-16-le")
    return _json(arguments)


def _body(piece: Formatted) -> str:
    arguments: dict[str, object] = {"text": piece.text, "link_preview_options": {"is_disabled": True}}
    if piece.entities:
        arguments["entities"] = [_entity(entity) for entity in piece.entities]
    return _json(arguments)


def _json(arguments: dict[str, object]) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _entity(entity: Entity) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"type": entity.type.value, "offset": entity.offset, "length": entity.length}
    if entity.url:
        fields["url"] = entity.url
    if entity.language:
        fields["language"] = entity.language
    return fields
