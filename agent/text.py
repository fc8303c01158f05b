"""Well-formed text: what comes in over JSON can hold half a surrogate pair, which no UTF-8 store takes."""

import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone halves replaced; most texts come back as they are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cleaned(value: T) -> T:
    """A frozen value whose texts are all well-formed, those of what it holds too; itself where they are already."""
    texts, left = [], [cast(Any, value)]
    while left:
        one = left.pop()
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, tuple):
            left += one
        elif is_dataclass(one):
            left += [getattr(one, field.name) for field in fields(one)]
    whole = "\n".join(texts)
    return value if whole.isascii() or well_formed(whole) == whole else _mended(value)


def _mended(value: T) -> T:
    found: Any = value
    if isinstance(found, str):
        found = well_formed(found)
    elif isinstance(found, tuple):
        found = tuple(map(_mended, found))
    elif is_dataclass(found):
        found = replace(found, **{field.name: _mended(getattr(found, field.name)) for field in fields(found)})  # type: ignore[type-var]
    return cast(T, found)


def visible(text: str) -> bool:
    """Whether a person would see anything of it: more than white space, controls and invisible format characters."""
    return any(not char.isspace() and unicodedata.category(char) not in ("Cc", "Cf") for char in text)
