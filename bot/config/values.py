"""The kinds of values that only the service's own sections hold: durations, models, people, tools, tokens.

Each is an annotated type for the sections of `model`; what channels need as well is in `channels/section.py`.
"""

import contextlib
import difflib
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, SecretStr, ValidationError, WithJsonSchema

from channels.registry import FOLDERS, platforms, section_of
from channels.section import conflict, refused
from channels.settings import ToolLists
from heartbeat.times import parse_duration, show_duration, zone_named

# How long a model may think; auto leaves it to the model.
Thinking = Literal["auto", "off", "low", "medium", "high", "x-high"]
# The tools that the service itself adds, see `bot/runs/messaging.py` and `bot/background/schedule_tool.py`.
MESSAGE = "message"
SCHEDULE = "schedule"

_SHORTEST_TOKEN = 16
_TIME = re.compile(r"(\d{1,2}):([0-5]\d)", re.ASCII)
_SIZE = re.compile(r"^(\d{1,9}) ?([KMG])B$", re.ASCII)
_DAY = 24 * 60
_DURATION_PATTERN = r"^(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?$"


def _to_seconds(value: object) -> object:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
        with contextlib.suppress(ValueError):
            return parse_duration(value).total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise refused("a number of seconds, or a duration such as 45s, 30m or 1h30m")


def _to_bytes(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if not isinstance(value, str) or not (found := _SIZE.fullmatch(value)):
        raise refused("a size such as 200MB or 2GB, or a number of bytes")
    return int(found[1]) * {"K": 10**3, "M": 10**6, "G": 10**9}[found[2]]


def _to_span(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    try:
        return parse_duration(value if isinstance(value, str) else "")
    except ValueError:
        raise refused("a duration with its unit, such as 45s, 30m, 1h30m or 24h") from None


def _to_minute(value: object, last: int = _DAY - 1) -> int:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    minute = int(found[1]) * 60 + int(found[2]) if found else _DAY + 1
    if minute > last:
        raise refused("a time of the day, such as 04:00 or 23:30" + (", or 24:00" if last == _DAY else ""))
    return minute


def _check_zone(value: str) -> str:
    try:
        zone_named(value)
    except ValueError as error:
        raise conflict(str(error)) from None
    return value


def _check_key(value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise conflict(f"`{value}` is not known here; allowed: {', '.join(allowed)}")
    return value


def _check_model_name(value: str) -> str:
    provider, _, model = value.partition("/")
    if value != "offline" and (not provider or not model or any(letter.isspace() for letter in value)):
        raise refused("provider/model, or offline")
    return value


def check_person(value: object) -> object:
    """Refuse what is not <platform>:<id>, or no id of that platform: names can change hands, and would never match."""
    platform, _, person = value.partition(":") if isinstance(value, str) else ("", "", "")
    known = platforms()
    if platform not in known or not person or any(letter.isspace() for letter in person):
        raise refused(f"<platform>:<id> such as {known[0]}:12345, with one of {', '.join(known)}")
    rules = section_of(FOLDERS[platform]).model_fields.get("dm") if platform in FOLDERS else None
    try:
        if rules is not None:  # those of dm.allow_from
            rules.annotation.model_validate({"allow_from": [person]})  # type: ignore[union-attr]
    except ValidationError as error:
        raise refused(f"{platform}:<id> with {error.errors()[0]['ctx']['allowed']}") from None
    return value


def _check_persons(value: object) -> object:
    everybody = isinstance(value, str) and value.endswith(":*") and value.removesuffix(":*") in platforms()
    return value if everybody else check_person(value)


def nearest(written: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """What ends a sentence about a name that is not known: the one that is most like it, if any is so much."""
    found = difflib.get_close_matches(written, list(known), 1, likeness)
    return f"; nearest is `{found[0]}`" if found else ""


def check_tools(lists: ToolLists, at: tuple[str | int, ...] = ()) -> None:
    """Refuse what fits no tool; at: the key of the lists, below what is being validated."""
    for key, patterns in (("allow", lists.allow or ()), ("deny", lists.deny)):
        for number, pattern in enumerate(patterns):
            _check_tool(pattern, (*at, key, number))


def _check_tool(pattern: str, at: tuple[str | int, ...] = ()) -> str:
    from agent.tools.registry import GROUPS, NAMES, is_further, matches  # most configurations name none

    names = sorted((*NAMES, MESSAGE, SCHEDULE))
    server, sign, _ = pattern.partition("_")
    if sign and server and not any(name.startswith(f"{server.lower()}_") for name in names):
        return pattern  # of an MCP server, whose tools are not known here
    if not (pattern.lower() in GROUPS or is_further(pattern) or any(matches(name, (pattern,)) for name in names)):
        known = (*names, *GROUPS)
        allowed = f"{', '.join(known)}, and * for anything{nearest(pattern.lower(), known)}"
        raise conflict(f"`{pattern}` is no tool; allowed: {allowed}", at)
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

# A size of files in bytes, such as 200MB.
Size = Annotated[
    int,
    BeforeValidator(_to_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": _SIZE.pattern}]}),
]

# A duration whose unit has to be written.
Span = Annotated[
    timedelta,
    BeforeValidator(_to_span),
    PlainSerializer(show_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _DURATION_PATTERN}),
]

# A time of the day on the wall, in minutes since midnight; and one that may also be the end of the day, 24:00.
_CLOCK = (
    PlainSerializer(lambda value: f"{value // 60:02}:{value % 60:02}", return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,2}:\d\d$"}),
)
TimeOfDay = Annotated[int, BeforeValidator(_to_minute), *_CLOCK]
EndOfHours = Annotated[int, BeforeValidator(partial(_to_minute, last=_DAY)), *_CLOCK]

# The name of a time zone.
Zone = Annotated[str, AfterValidator(_check_zone)]

# The name of a channel, also of one that comes later, and `http`.
Platform = Annotated[str, AfterValidator(lambda value: _check_key(value, platforms()))]
# What sort of conversation a place is.
ChatSort = Annotated[str, AfterValidator(lambda value: _check_key(value, ("direct", "group", "channel", "thread")))]

# A model at a provider, `provider/model`, or `offline`.
ModelName = Annotated[str, AfterValidator(_check_model_name)]

# Somebody on a platform, `<platform>:<id>`.
Person = Annotated[str, BeforeValidator(check_person)]
# The same, or `<platform>:*` for everybody there.
Persons = Annotated[str, BeforeValidator(_check_persons)]

# A name of a tool, or a pattern that fits at least one.
ToolPattern = Annotated[str, AfterValidator(lambda pattern: _check_tool(pattern))]

# A secret of one's own choice that nobody guesses; an empty one is a mistake here, since it would open a door.
Token = Annotated[SecretStr | None, AfterValidator(_check_token)]
