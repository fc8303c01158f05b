"""Markdown to the bodies of sendMessage: text and entities, never a parse mode, so that nothing can be rejected.

A body is JSON with the arguments of the call but the chat. Link previews are off: Telegram would fetch any address
that the model was made to write.

Where rich messages are wanted (Bot API 10.1: sendRichMessage, InputRichMessage), a block with a table, a task list or
mathematics is one, with its Markdown as it is, unless something in it would be fetched, call somebody or read
differently there. One that is refused goes out as entities.
"""

import json
import re

from channels.markdown.entities import Entity, Formatted
from channels.markdown.parse import parse
from channels.markdown.render import render
from channels.markdown.split import shows, split
from channels.outgoing import as_body
from channels.telegram.links import is_link
from channels.utf16 import units

MAX_UNITS = 4096
MAX_ENTITIES = 100
# The argument by which a body is known as one of sendRichMessage.
RICH = "rich_message"

_TASK = re.compile(r"^\s*(?:[-*+]|\d+[.)]) \[[ xX]\] ", re.MULTILINE)
_OTHERWISE = re.compile(r"!\[|<|==|\[[\^!]|\\[(\[]|tg:", re.IGNORECASE)


def bodies(markdown: str, rich: bool = False) -> list[str]:
    """The messages of a block, in order; none when it shows nothing. rich: whether one may be a rich message."""
    whole = render(markdown, lambda url, words: is_link(url))
    found = [_body(piece) for piece in split(whole, MAX_UNITS, MAX_ENTITIES) if shows(piece.text)]
    if rich and len(found) == 1 and _gains(markdown):
        return [as_body({RICH: {"markdown": markdown, "skip_entity_detection": True}})]
    return found


def plain_body(body: str) -> str | None:
    """A message in its next simpler form: a rich one with entities, one with entities as text alone, the targets of
    links behind their words; None when it is that already."""
    arguments = json.loads(body)
    if RICH in arguments:
        return bodies(arguments[RICH]["markdown"])[0]
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
    return as_body(arguments)


def _body(piece: Formatted) -> str:
    arguments: dict[str, object] = {"text": piece.text, "link_preview_options": {"is_disabled": True}}
    if piece.entities:
        arguments["entities"] = [_entity(piece.text, entity) for entity in piece.entities]
    return as_body(arguments)


def _gains(markdown: str) -> bool:
    """Whether a rich message would show more of it, and nothing else than meant."""
    tokens = [inner for token in parse(markdown)[0] for inner in (token, *(token.children or ()))]
    formula = any(token.type in ("code_inline", "fence") and not token.markup for token in tokens)
    table = any(token.type == "table_open" for token in tokens)
    return (table or formula or _TASK.search(markdown) is not None) and not _OTHERWISE.search(markdown)


def _entity(text: str, entity: Entity) -> dict[str, str | int]:
    """Telegram counts in UTF-16 units."""
    start, end, style = entity
    more = {"url": style.url, "language": style.language}
    shown = {"type": style.type.value, "offset": units(text[:start]), "length": units(text[start:end])}
    return shown | {name: value for name, value in more.items() if value}
