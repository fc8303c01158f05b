"""The kinds of values that only the service's own sections hold: durations, models, people, tools, tokens.

Each is an annotated type for the sections of `model`; what channels need as well is in `channels/section.py`.
"""

import contextlib
import difflib
import re
from collections.abc import Sequence
from datetime import time, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, SecretStr, WithJsonSchema

from channels.registry import FOLDERS
from channels.section import conflict, refused

PLATFORMS = (*FOLDERS, "http")
# The name of the tool that the service itself adds, see `bot/runs/messaging.py`.
MESSAGE = "message"

_SHORTEST_TOKEN = 16
_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s)?")
_TIME = re.compile(r"(\d{1,2}):(\d\d)")
_DURATION_PATTERN = r"^(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?$"


def parse_duration(text: str) -> timedelta:
    """Read `30m`, `1h30m`, `2d`, `45s` or `1.5s`; ValueError for anything else, a bare number included."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(text)
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(span: timedelta) -> str:
    """Write a duration in seconds, so that `parse_duration` reads it: `5400s`."""
    return f"{span.total_seconds():.15g}s"


def _to_seconds(value: object) -> object:
    allowed = "a number of seconds, or a duration such as 45s, 30m or 1h30m"
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
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


def _to_time(value: object) -> object:
    if isinstance(value, time):
        return value
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise refused("a time of the day, such as 04:00 or 23:30")
    return time(int(found[1]), int(found[2]))


def _check_key(value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise conflict(f"`{value}` is not known here; allowed: {', '.join(allowed)}")
    return value


def _check_model_name(value: str) -> str:
    provider, _, model = value.partition("/")
    if value != "offline" and (not provider or not model or any(letter.isspace() for letter in value)):
        raise refused("provider/model, or offline")
    return value


def _check_person(value: object) -> object:
    platform, _, person = value.partition(":") if isinstance(value, str) else ("", "", "")
    if platform not in PLATFORMS or not person or any(letter.isspace() for letter in person):
        raise refused(f"<platform>:<id> such as {PLATFORMS[0]}:12345, with one of {', '.join(PLATFORMS)}")
    return value


def check_tools(patterns: Sequence[str], at: tuple[str | int, ...]) -> None:
    """Refuse what fits no tool; at: the key of the list, below what is being validated."""
    for number, pattern in enumerate(patterns):
        _check_tool(pattern, (*at, number))


def _check_tool(pattern: str, at: tuple[str | int, ...] = ()) -> str:
    from agent.tools.registry import NAMES, matches  # most configurations name none

    names = sorted((*NAMES, MESSAGE))
    if not any(matches(name, (pattern,)) for name in names):
        nearest = difflib.get_close_matches(pattern.lower(), names, 1)
        hint = f"; nearest is `{nearest[0]}`" if nearest else ""
        raise conflict(f"`{pattern}` is no tool; allowed: {', '.join(names)}, and * for anything{hint}", at)
    return pattern


def _check_token(value: SecretStr | None) -> SecretStr | None:
    token = None if value is None else value.get_secret_value()
    if token is not None and (len(token) < _SHORTEST_TOKEN or len(set(token)) == 1 or any(map(str.isspace, token))):
        allowed = f"at least {_SHORTEST_TOKEN} characters, not all the same, without spaces"
        raise refused(f"{allowed}; `openssl rand -hex 32` writes a good one")
    return value


# Seconds as a float; the file may hold a plain number or a duration.
Seconds = Annotated[
    float,
    BeforeValidator(_to_seconds),
    Field(strict=True, ge=0, le=10**9, allow_inf_nan=False),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _DURATION_PATTERN}]}),
]

# A duration whose unit has to be written.
Span = Annotated[
    timedelta,
    BeforeValidator(_to_span),
    PlainSerializer(show_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN}),
]

# A time of the day on the wall.
TimeOfDay = Annotated[
    time,
    BeforeValidator(_to_time),
    PlainSerializer(lambda value: value.strftime("%H:%M"), return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,2}:\d\d$"}),
]

# The name of a channel, also of one that comes later, and `http`.
Platform = Annotated[str, AfterValidator(lambda value: _check_key(value, PLATFORMS))]
# What sort of conversation a place is.
ChatSort = Annotated[str, AfterValidator(lambda value: _check_key(value, ("direct", "group", "channel", "thread")))]

# A model at a provider, `provider/model`, or `offline`.
ModelName = Annotated[str, AfterValidator(_check_model_name)]

# Somebody on a platform, `<platform>:<id>`.
Person = Annotated[str, BeforeValidator(_check_person)]

# A name of a tool, or a pattern that fits at least one.
ToolPattern = Annotated[str, AfterValidator(lambda pattern: _check_tool(pattern))]

# A secret of one's own choice that nobody guesses; an empty one is a mistake here, since it would open a door.
Token = Annotated[SecretStr | None, AfterValidator(_check_token)]
