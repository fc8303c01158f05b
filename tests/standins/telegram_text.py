"""Rules of the Bot API for text and MessageEntity ("sendMessage", "MessageEntity", "Formatting options").

What Telegram answers with an error is a `Refusal`. What it repairs in silence, so that a person would see
other formatting than was meant, is accepted and reported.
"""

from itertools import combinations

from tests.standins import telegram_links as links
from tests.standins.telegram_fields import Complain
from tests.standins.telegram_ledger import Json, Refusal, Rule

MAX_TEXT = 4096  # UTF-16 code units, after entities parsing
MAX_BYTES = 1 << 15
MAX_ENTITIES = 100
MAX_CALLBACK_DATA = 64  # bytes

FREE = {"bold", "italic", "underline", "strikethrough", "spoiler"}
MONOSPACE = {"pre", "code"}
QUOTES = {"blockquote", "expandable_blockquote"}
NEEDS = {
    "text_link": "url",
    "date_time": "unix_time",
}
FOUND_BY_SERVER = {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
KNOWN = FREE | MONOSPACE | QUOTES | NEEDS.keys() | FOUND_BY_SERVER


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, the unit of every offset and limit of Telegram."""
    return len(text.encode("utf-16-le")) // 2


def check_text(params: Json, complain: Complain) -> None:
    """Refuse or report a text, its entities and its keyboard."""
    text = params.get("text", "")
    if not text:
        raise _bad("message text is empty")
    if len(text.encode()) > MAX_BYTES:
        raise _bad("text is too long")
    entities = params.get("entities", [])
    _check_entities(text, entities, complain)
    if not text.strip():
        raise _bad("text must be non-empty")
    if utf16_length(text.strip()) > MAX_TEXT:
        raise _bad("message is too long")
    _check_keyboard(params.get("reply_markup"))


def _check_entities(text: str, entities: list[Json], complain: Complain) -> None:
    inside = _boundaries(text)
    for entity in entities:
        _check_fields(entity)
    for entity in entities:
        _check_target(entity, complain)
    for entity in entities:
        _check_place(entity, inside)
        if entity["length"] == 0:
            complain(Rule.FORMATTING, f"empty entity {entity}")
    if len(entities) > MAX_ENTITIES:
        complain(Rule.FORMATTING, f"{len(entities)} entities, the rest after {MAX_ENTITIES} is ignored")
    styled = [entity for entity in entities if entity["type"] not in FOUND_BY_SERVER]
    for first, second in combinations(styled, 2):
        problem = _nesting_problem(first, second)
        if problem:
            complain(Rule.FORMATTING, f"{problem}: {first} and {second}")


def _check_fields(entity: Json) -> None:
    for name in ("offset", "length", "type"):
        if name not in entity:
            raise _bad(f"can't parse MessageEntity: can't find field \"{name}\"")
    kind = entity["type"]
    if kind not in KNOWN:
        raise _bad("can't parse MessageEntity: unsupported type specified")
    if NEEDS.get(kind, "type") not in entity:
        raise _bad(f"can't parse MessageEntity: can't find field \"{NEEDS[kind]}\"")


def _check_target(entity: Json, complain: Complain) -> None:
    if entity["type"] != "text_link":
        return
    target = links.cleaned(entity["url"])
    try:
        links.checked(target)
    except links.BadTarget as why:
        raise _bad(f"entity URL '{target}' is invalid: {why}") from None
    other = links.misread(target)
    if other is not None:
        complain(Rule.FORMATTING, f"the link to {target!r} becomes {other}")


def _check_place(entity: Json, inside: list[bool]) -> None:
    start, length = entity["offset"], entity["length"]
    if start < 0:
        raise _bad(f"receive an entity with incorrect offset {start}")
    if length < 0:
        raise _bad(f"receive an entity with incorrect length {length}")
    end = start + length
    if end >= len(inside):
        raise _bad(f"entity beginning at UTF-16 offset {start} ends after the end of the text at UTF-16 offset {end}")
    if not inside[start]:
        raise _bad(f"entity begins in a middle of a UTF-16 symbol at UTF-16 offset {start}")
    if not inside[end]:
        raise _bad(
            f"entity beginning at UTF-16 offset {start} ends in a middle of a UTF-16 symbol at UTF-16 offset {end}"
        )


def _boundaries(text: str) -> list[bool]:
    """For each UTF-16 offset, the end included, whether a character begins there."""
    marks: list[bool] = []
    for char in text:
        marks.extend((True, False) if ord(char) > 0xFFFF else (True,))
    return [*marks, True]


def _nesting_problem(first: Json, second: Json) -> str:
    """The rules of "Formatting options" for two entities with common characters.

    Its last line says that all other entities cannot contain each other. In fact a block quotation holds
    links and code, so only a quotation in a quotation counts.
    """
    low, high = sorted((first, second), key=lambda entity: (entity["offset"], -entity["length"]))
    low_end, high_end = low["offset"] + low["length"], high["offset"] + high["length"]
    if high["offset"] >= low_end or high["length"] == 0:
        return ""
    if high_end > low_end:
        return "entities overlap without one being inside the other"
    kinds = {low["type"], high["type"]}
    if kinds <= QUOTES:
        return "nested block quotations"
    if kinds & QUOTES:
        return ""
    if kinds & MONOSPACE:
        return "pre and code share no text with other entities"
    if not kinds & FREE:
        return "entities of these types cannot contain each other"
    return ""


def _check_keyboard(markup: object) -> None:
    if markup is None:
        return
    if not isinstance(markup, dict):
        raise Refusal(400, "Bad Request: object expected as reply markup", rule=Rule.BAD_VALUE)
    for row in markup.get("inline_keyboard", []):
        for button in row:
            data = button.get("callback_data")
            if data is not None and not 1 <= len(data.encode()) <= MAX_CALLBACK_DATA:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID", rule=Rule.BAD_VALUE)


def _bad(what: str) -> Refusal:
    return Refusal(400, f"Bad Request: {what}", rule=Rule.FORMATTING)
