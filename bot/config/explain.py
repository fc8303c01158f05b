"""Turns what pydantic refuses into sentences for people: what was found, what is allowed, the nearest name.

Never shows a secret: neither the value of a key that holds one, nor anything that looks like a key or token.
Called by `load` and by
`hark config get`.
"""

import difflib
import re
import types
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from bot.config.document import Position
from bot.config.errors import KeyPath
from bot.config.values import nearest
from bot.telemetry.redact import mask_text, mask_url
from channels.section import Section

_SECRET_KEY = re.compile(r"token$|secret|passw|keys?$|authorization|cookie", re.IGNORECASE)
_LONGEST = 60

_ALLOWED = {  # where pydantic's own words are not for people
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "path_type": "a path",
    "float_type": "a number",
    "missing": "a value; it is needed here",
}


def explain(error: ErrorDetails, place: Position | None, root: type[Section]) -> tuple[KeyPath, str]:
    """Path and sentence for one error; `place` is where its value stood, if it was written at all."""
    path = path_of(error)
    if place is not None and error["loc"][-1:] == ("[key]",):
        place = replace(place, written=str(path[-1]), is_text=True)
    if error["type"] == "conflict":
        return (*path, *error["ctx"]["at"]), error["ctx"]["text"]
    if error["type"] == "extra_forbidden":
        return path, unknown_key(str(path[-1]), known_keys(root, path[:-1]))
    allowed = _allowed(error)
    if error["type"] == "string_type" and place is not None and place.written not in ("a list", "a mapping"):
        allowed += " (put it in quotes)"
    text = f"found {shown(path, place)}; allowed: {allowed}" if place else f"missing; allowed: {allowed}"
    if error["type"] == "literal_error" and place is not None:
        text += nearest(place.written, re.findall(r"'([^']*)'", error["ctx"]["expected"]))
    return path, text


def path_of(error: ErrorDetails) -> KeyPath:
    """Where the value stands that was being validated."""
    return tuple(part for part in error["loc"] if part != "[key]")


def unknown_key(key: str, known: Iterable[str]) -> str:
    """The sentence for a key that does not exist, with the nearest one that does."""
    names = sorted(known)
    if near := difflib.get_close_matches(key, names, 1):
        return f"unknown key; nearest known name is `{near[0]}`"
    return f"unknown key; known here: {', '.join(names)}" if names else "unknown key; there are none below this one"


def known_keys(kind: Any, path: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that may stand at `path` below a section, or below another annotation that holds sections."""
    if get_origin(kind) in (Annotated, Union, types.UnionType):
        return next(filter(None, (known_keys(part, path) for part in get_args(kind))), ())
    if get_origin(kind) is dict:
        return known_keys(get_args(kind)[1], path[1:]) if path else ()
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return ()
    fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    return known_keys(fields.get(str(path[0])), path[1:]) if path else tuple(fields)


def shown(path: KeyPath, place: Position) -> str:
    """What was written, short and on one line, or that it is hidden."""
    if place.written in ("a list", "a mapping", "nothing") and not place.is_text:
        return place.written
    if is_secret(path):
        return "a hidden value"
    written = mask_text(mask_url(place.written)[0])
    short = written if len(written) <= _LONGEST else written[: _LONGEST - 3] + "..."
    return f"`{''.join(letter if letter.isprintable() else '?' for letter in short)}`"


def is_secret(path: KeyPath) -> bool:
    """Whether the value at `path` must not be shown."""
    return any(_SECRET_KEY.search(part) for part in path if isinstance(part, str))


def _allowed(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "not_allowed":
        return str(context["allowed"])
    if error["type"] == "literal_error":
        return ", ".join(re.findall(r"'([^']*)'", context["expected"]))
    return _ALLOWED.get(error["type"], error["msg"].removeprefix("Input should be ").partition(",")[0])
