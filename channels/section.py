"""What sections of the configuration are made of: their base, the kinds of values, and how a rule refuses them.

A refused value raises an error whose message says what is allowed; `bot/config/explain` puts file, line and what was
found in front of it.
"""

import re
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

T = TypeVar("T")


def refused(allowed: str) -> PydanticCustomError:
    """The error of a value that is not allowed; `allowed` completes the sentence "allowed: ..."."""
    return PydanticCustomError("not_allowed", "{allowed}", {"allowed": allowed})


def conflict(text: str, at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """The error of keys that do not go together; `text` is the whole sentence.

    at: the key to point at, below what is being validated.
    """
    return PydanticCustomError("conflict", "{text}", {"text": text, "at": at})


class Section(BaseModel):
    """A mapping of the configuration file: frozen, closed to unknown keys, and free of nulls.

    A key that is written without a value counts as not written, so that a section whose lines are all commented out
    means its defaults.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: value for key, value in data.items() if value is not None or key not in known}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return itself: nothing changes a section, and pydantic copies each default that it sets."""
        return self


def setting(default: T, description: str, **limits: Any) -> T:
    """A key that may be left out: its default, and one line of what it is for. limits: those of pydantic's `Field`."""
    made: T = Field(default, description=description, **limits)
    return made


def _not_a_bool(value: object) -> object:
    if isinstance(value, bool):
        raise refused("a whole number")
    return value


def _id_to_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def looks_like(pattern: str, allowed: str) -> AfterValidator:
    """The rule that a text is as the whole pattern says; `allowed` as of `refused`.

    So of an id: a name would never match, and the person would be locked out without a word.
    """
    form = re.compile(pattern)

    def check(value: str) -> str:
        if not form.fullmatch(value):
            raise refused(allowed)
        return value

    return AfterValidator(check)


def _check_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(letter.isspace() for letter in value):
        raise refused("a URL that begins with http:// or https://")
    return value.rstrip("/")


# A whole number; `true` is not 1.
Whole = Annotated[int, BeforeValidator(_not_a_bool)]

# An id of a platform, kept as text whether it was written as a number or not.
Id = Annotated[
    str,
    BeforeValidator(_id_to_text),
    looks_like(r"\S+", "an id without spaces"),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}),
]

# An http or https URL, kept without a slash at its end.
Url = Annotated[str, AfterValidator(_check_url)]

# A secret, or none; an empty text (an unset variable with an empty default) is none.
Secret = Annotated[SecretStr | None, BeforeValidator(lambda value: None if value == "" else value)]
