"""Turns what pydantic refuses into sentences for people: what was found, what is allowed, the nearest name.

Never shows a secret: neither the value of a key that holds one, nor anything that looks like a key or token.
Called by `load` and by `hark config get`.
"""

import difflib
import re
import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from bot.config.document import Place
from bot.config.errors import KeyPath
from bot.telemetry.redact import mask_url
from channels.section import Section

_SECRET_KEY = re.compile(r"token$|secret|passw|keys?$|authorization|cookie", re.IGNORECASE)
_SECRET_LOOK = re.compile(r"(?=[\w:+=-]*\d)[\w:+=-]{24,}")
_USER_INFO = re.compile(r"//[^/@\s]+@")
_LONGEST = 60

_ALLOWED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "path_type": "a path",
}
_BOUNDS = {"ge": "at least {}", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}


def explain(error: ErrorDetails, place: Place | None, root: type[Section]) -> tuple[KeyPath, str]:
    """Path and sentence for one error; `place` is where its value stood, if it was written at all."""
    path = path_of(error)
    if error["type"] == "conflict":
        return (*path, *error["ctx"]["at"]), error["ctx"]["text"]
    if error["type"] == "extra_forbidden":
        return path, unknown_key(str(path[-1]), known_keys(root, path[:-1]))
    allowed = _allowed(error)
    if error["type"] == "string_type" and place is not None and place.written not in ("a list", "a mapping"):
        allowed += " (put it in quotes)"
    text = f"found {shown(path, place)}; allowed: {allowed}" if place else f"missing; allowed: {allowed}"
    if error["type"] == "literal_error" and place is not None:
        nearest = difflib.get_close_matches(place.written, re.findall(r"'([^']*)'", error["ctx"]["expected"]), 1)
        text += f"; nearest is `{nearest[0]}`" if nearest else ""
    return path, text


def path_of(error: ErrorDetails) -> KeyPath:
    """Where the value stands that was being validated."""
    return tuple(part for part in error["loc"] if part != "[key]")


def errors_of(root: type[Section], tree: object) -> tuple[ErrorDetails, ...]:
    """What is wrong with `tree` as a `root`, nothing when it is right."""
    try:
        root.model_validate(tree)
    except ValidationError as error:
        return tuple(error.errors(include_url=False, include_input=False))
    return ()


def unknown_key(key: str, known: Iterable[str]) -> str:
    """The sentence for a key that does not exist, with the nearest one that does."""
    names = sorted(known)
    nearest = difflib.get_close_matches(key, names, 1, cutoff=0.6)
    if nearest:
        return f"unknown key; nearest known name is `{nearest[0]}`"
    return f"unknown key; known here: {', '.join(names)}" if names else "unknown key; there are none below this one"


def known_keys(root: type[Section], path: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that may stand at `path` below `root`; none where a value or a free mapping is."""
    section: type[Section] | None = root
    free_mapping = False
    for part in path:
        if free_mapping:
            free_mapping = False
            continue
        field = None if section is None else fields_of(section).get(str(part))
        section, free_mapping = (None, False) if field is None else _section_in(field.annotation)
    return () if section is None or free_mapping else tuple(fields_of(section))


def fields_of(section: type[Section]) -> dict[str, FieldInfo]:
    """The fields of a section by the name they have in the file."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def shown(path: KeyPath, place: Place) -> str:
    """What was written, short and on one line, or that it is hidden."""
    if place.written in ("a list", "a mapping", "nothing") and not place.is_text:
        return place.written
    if is_secret(path):
        return "a hidden value"
    written = _SECRET_LOOK.sub("...", _USER_INFO.sub("//...@", mask_url(place.written)[0]))
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
    for name, words in _BOUNDS.items():
        if name in context:
            return "a number, " + words.format(_number(context[name]))
    return _ALLOWED.get(error["type"], error["msg"])


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def _section_in(annotation: Any) -> tuple[type[Section] | None, bool]:
    """The section inside an annotation, and whether it is the value type of a free mapping."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _section_in(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return next((found for part in get_args(annotation) if (found := _section_in(part))[0]), (None, False))
    if origin is dict:
        return _section_in(get_args(annotation)[1])[0], True
    return (annotation, False) if isinstance(annotation, type) and issubclass(annotation, Section) else (None, False)
