"""The kinds of values a configuration holds: durations, ids, people, URLs, secrets.

Each is an annotated type for the sections of `model` and `channels`. A refused value raises an error whose
message says what is allowed; `explain` puts file, line and what was found in front of it.
"""

import re
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

PLATFORMS = ("telegram", "discord", "slack", "console", "http")

_SHORTEST_TOKEN = 16
_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s)?")
_DURATION_PATTERN = r"^(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?$"


def refused(allowed: str) -> PydanticCustomError:
    """The error of a value that is not allowed; `allowed` completes the sentence "allowed: ..."."""
    return PydanticCustomError("not_allowed", "{allowed}", {"allowed": allowed})


def parse_duration(text: str) -> timedelta:
    """Read `30m`, `1h30m`, `2d`, `45s` or `1.5s`; ValueError for anything else, a bare number included."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(text)
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(span: timedelta) -> str:
    """Write a duration the way `parse_duration` reads it: `24h`, `1h30m`, `45s`."""
    rest = span.total_seconds()
    text = ""
    for unit, size in (("h", 3600), ("m", 60)):
        count, rest = divmod(rest, size)
        text += f"{int(count)}{unit}" if count else ""
    return text + (f"{rest:g}s" if rest or not text else "")


def _to_seconds(value: object) -> object:
    allowed = "a number of seconds, or a duration such as 45s, 30m or 1h30m"
    if isinstance(value, bool):
        raise refused(allowed)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
        try:
            return parse_duration(value).total_seconds()
        except ValueError:
            raise refused(allowed) from None
    return value


def _to_span(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    try:
        return parse_duration(value if isinstance(value, str) else "")
    except ValueError:
        raise refused("a duration with its unit, such as 45s, 30m, 1h30m or 24h") from None


def _not_a_bool(value: object) -> object:
    if isinstance(value, bool):
        raise refused("a whole number")
    return value


def _id_to_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_id(value: str) -> str:
    if not value or any(letter.isspace() for letter in value):
        raise refused("an id without spaces")
    return value


def _check_model_name(value: str) -> str:
    provider, _, model = value.partition("/")
    if value != "offline" and (not provider or not model or any(letter.isspace() for letter in value)):
        raise refused("provider/model, or offline")
    return value


def _check_person(value: object) -> object:
    platform, _, person = value.partition(":") if isinstance(value, str) else ("", "", "")
    if platform not in PLATFORMS or not person or any(letter.isspace() for letter in person):
        raise refused(f"<platform>:<id> such as telegram:12345, with one of {', '.join(PLATFORMS)}")
    return value


def _check_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(letter.isspace() for letter in value):
        raise refused("a URL that begins with http:// or https://")
    return value.rstrip("/")


def _check_token(value: SecretStr | None) -> SecretStr | None:
    token = None if value is None else value.get_secret_value()
    if token is not None and (len(token) < _SHORTEST_TOKEN or len(set(token)) == 1 or any(map(str.isspace, token))):
        allowed = f"at least {_SHORTEST_TOKEN} characters, not all the same, without spaces"
        raise refused(f"{allowed}; `openssl rand -hex 32` writes a good one")
    return value


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


Seconds = Annotated[
    float,
    BeforeValidator(_to_seconds),
    Field(ge=0, le=10**9, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _DURATION_PATTERN}]}),
]
"""Seconds as a float; the file may hold a plain number or a duration."""

Span = Annotated[
    timedelta,
    BeforeValidator(_to_span),
    PlainSerializer(show_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN}),
]
"""A duration whose unit has to be written."""

Whole = Annotated[int, BeforeValidator(_not_a_bool)]
"""A whole number; `true` is not 1."""

Id = Annotated[
    str,
    BeforeValidator(_id_to_text),
    AfterValidator(_check_id),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}),
]
"""An id of a platform, kept as text whether it was written as a number or not."""

ModelName = Annotated[str, AfterValidator(_check_model_name)]
"""A model at a provider, `provider/model`, or `offline`."""

Person = Annotated[str, BeforeValidator(_check_person)]
"""Somebody on a platform: `telegram:12345`."""

Url = Annotated[str, AfterValidator(_check_url)]
"""An http or https URL, kept without a slash at its end."""

Secret = Annotated[SecretStr | None, BeforeValidator(_empty_is_none)]
"""A secret, or none; an empty text (an unset variable with an empty default) is none."""

Token = Annotated[SecretStr | None, AfterValidator(_check_token)]
"""A secret of one's own choice that nobody guesses; an empty one is a mistake here, since it would open a door."""
