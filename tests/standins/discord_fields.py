"""The documented form of every body and query that the Discord stand-in takes, as JSON schemas.

`check()` reads a value against one and refuses it as Discord does: 400, code 50035, a tree of errors. Lengths count
Unicode code points, as the API, which is Python, does by the word of Discord's staff.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from tests.standins.discord_ledger import Json, Refusal, Rule

MAX_CONTENT = 2000


def text(longest: int, shortest: int = 0) -> Json:
    limits = {"maxLength": longest} | ({"minLength": shortest} if shortest else {})
    return {"type": ["string", "null"] if not shortest else "string", **limits}


def listing(items: Json, most: int, least: int = 0) -> Json:
    return {"type": ["array", "null"] if not least else "array", "items": items, "maxItems": most, "minItems": least}


def record(required: str = "", /, **properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


BOOLEAN: Json = {"type": ["boolean", "null"]}
INTEGER: Json = {"type": ["integer", "null"]}
NUMBER: Json = {"type": ["number", "null"]}
ANYTHING: Json = {}
SNOWFLAKE: Json = {"type": ["string", "integer", "null"], "pattern": r"^[0-9]{1,20}$", "format": "snowflake"}
URL: Json = {"type": ["string", "null"], "maxLength": 2048, "pattern": r"^(https?|attachment)://\S+$", "format": "url"}

IMAGE = record(url=URL)
EMBED = record(
    title=text(256),
    type=text(100),
    description=text(4096),
    url=URL,
    timestamp=text(64),
    color={"type": ["integer", "null"], "minimum": 0, "maximum": 0xFFFFFF},
    footer=record("text", text=text(2048), icon_url=URL),
    image=IMAGE,
    thumbnail=IMAGE,
    author=record("name", name=text(256), url=URL, icon_url=URL),
    fields=listing(record("name value", name=text(256, 1), value=text(1024, 1), inline=BOOLEAN), 25),
)
ALLOWED_MENTIONS = record(
    parse={**listing({"enum": ["users", "roles", "everyone"]}, 3), "uniqueItems": True},
    users={**listing(SNOWFLAKE, 100), "uniqueItems": True},
    roles={**listing(SNOWFLAKE, 100), "uniqueItems": True},
    replied_user=BOOLEAN,
)
EMOJI = record(id=SNOWFLAKE, name=text(100), animated=BOOLEAN)
ATTACHMENT = record(
    "id",
    id=SNOWFLAKE,
    filename=text(1024, 1),
    title=text(1024),
    description=text(1024),
    duration_secs=NUMBER,
    waveform=text(400),
    is_spoiler=BOOLEAN,
    # What an attachment object has besides may be sent back when a message is edited; `spoiler` is discord.py's own.
    spoiler=BOOLEAN,
    **{
        name: ANYTHING for name in ("url", "proxy_url", "size", "content_type", "height", "width", "ephemeral", "flags")
    },
)
REFERENCE = record(
    "message_id",
    type={"enum": [0, 1, None]},
    message_id=SNOWFLAKE,
    channel_id=SNOWFLAKE,
    guild_id=SNOWFLAKE,
    fail_if_not_exists=BOOLEAN,
)
POLL = record(
    "question answers",
    question=record("text", text=text(300, 1)),
    answers=listing(record("poll_media", poll_media=record(text=text(55), emoji=EMOJI)), 10, 1),
    duration={"type": ["integer", "null"], "minimum": 1, "maximum": 768},
    allow_multiselect=BOOLEAN,
    layout_type={"enum": [1, None]},
)
_BASE: Json = {"type": {"type": "integer"}, "id": {"type": ["integer", "null"], "minimum": 0}}
_SELECT: Json = _BASE | {
    "custom_id": text(100, 1),
    "placeholder": text(150),
    "min_values": {"type": ["integer", "null"], "minimum": 0, "maximum": 25},
    "max_values": {"type": ["integer", "null"], "minimum": 1, "maximum": 25},
    "disabled": BOOLEAN,
    "required": BOOLEAN,
    "default_values": ANYTHING,
}
_OPTION = record(
    "label value", label=text(100, 1), value=text(100, 1), description=text(100), emoji=EMOJI, default=BOOLEAN
)
BUTTON = record(
    "type style",
    **_BASE,
    style={"enum": [1, 2, 3, 4, 5, 6]},
    label=text(80),
    emoji=EMOJI,
    custom_id={"type": ["string", "null"], "minLength": 1, "maxLength": 100},
    url={"type": ["string", "null"], "maxLength": 512, "pattern": r"^(https?|discord)://\S+$", "format": "url"},
    sku_id=SNOWFLAKE,
    disabled=BOOLEAN,
)
INNER: dict[int, Json] = {
    2: BUTTON,
    3: record("type custom_id options", **_SELECT, options=listing(_OPTION, 25, 1)),
    4: record(
        "type custom_id",
        **_BASE,
        custom_id=text(100, 1),
        style={"enum": [1, 2]},
        label=text(45),
        min_length={"type": ["integer", "null"], "minimum": 0, "maximum": 4000},
        max_length={"type": ["integer", "null"], "minimum": 1, "maximum": 4000},
        required=BOOLEAN,
        value=text(4000),
        placeholder=text(100),
    ),
    **{kind: record("type custom_id", **_SELECT, channel_types=ANYTHING) for kind in (5, 6, 7, 8)},
}
ACTION_ROW = record("type components", **_BASE, components=listing({"type": "object"}, 5, 1))

_EITHER: Json = {
    "content": text(MAX_CONTENT),
    "embeds": listing(EMBED, 10),
    "flags": INTEGER,
    "allowed_mentions": ALLOWED_MENTIONS | {"type": ["object", "null"]},
    "components": listing({"type": "object"}, 40),
    "attachments": listing(ATTACHMENT, 10),
}
NONCE: Json = {"type": ["string", "integer", "null"], "maxLength": 25}
MESSAGE = record(
    **_EITHER,
    nonce=NONCE,
    enforce_nonce=BOOLEAN,
    tts=BOOLEAN,
    message_reference=REFERENCE | {"type": ["object", "null"]},
    sticker_ids=listing(SNOWFLAKE, 3),
    poll=POLL | {"type": ["object", "null"]},
)
# discord.py sends `tts` with edits and polls with neither; Discord passes it over.
MESSAGE_EDIT = record(**_EITHER, sticker_ids=ANYTHING, tts=BOOLEAN)
WEBHOOK_MESSAGE = record(
    **_EITHER,
    tts=BOOLEAN,
    poll=POLL | {"type": ["object", "null"]},
    username=text(80),
    avatar_url=URL,
    thread_name=ANYTHING,
)
WEBHOOK_EDIT = record(**_EITHER, tts=BOOLEAN, poll=POLL | {"type": ["object", "null"]})
CALLBACK = record("type", type={"enum": [1, 4, 5, 6, 7, 8, 9, 12]}, data={"type": ["object", "null"]})
CALLBACK_MESSAGE = record(**_EITHER, tts=BOOLEAN, poll=POLL | {"type": ["object", "null"]})
MODAL = record(
    "custom_id title components",
    custom_id=text(100, 1),
    title=text(45, 1),
    components=listing({"type": "object"}, 5, 1),
)
CHOICE = record(
    "name value", name=text(100, 1), name_localizations=ANYTHING, value={"type": ["string", "integer", "number"]}
)
AUTOCOMPLETE = record("choices", choices=listing(CHOICE, 25))

_ARCHIVE: Json = {"enum": [60, 1440, 4320, 10080, None]}
_SLOW: Json = {"type": ["integer", "null"], "minimum": 0, "maximum": 21600}
THREAD_FROM_MESSAGE = record("name", name=text(100, 1), auto_archive_duration=_ARCHIVE, rate_limit_per_user=_SLOW)
THREAD = record(
    "name",
    name=text(100, 1),
    auto_archive_duration=_ARCHIVE,
    rate_limit_per_user=_SLOW,
    type={"enum": [10, 11, 12, None]},
    invitable=BOOLEAN,
    message={"type": ["object", "null"]},
    applied_tags=listing(SNOWFLAKE, 5),
)
CHANNEL_EDIT = record(
    name=text(100, 1),
    archived=BOOLEAN,
    locked=BOOLEAN,
    auto_archive_duration=_ARCHIVE,
    rate_limit_per_user=_SLOW,
    topic=text(1024),
    invitable=BOOLEAN,
    applied_tags=listing(SNOWFLAKE, 5),
)
OPEN_DM = record("recipient_id", recipient_id=SNOWFLAKE)
BULK_DELETE = record("messages", messages=listing(SNOWFLAKE, 100, 2))
REFRESH_URLS = record("attachment_urls", attachment_urls=listing({"type": "string", "maxLength": 2048}, 50, 1))


def _option(depth: int) -> Json:
    built = record(
        "type name description",
        type={"enum": list(range(1, 12))},
        name=text(32, 1),
        name_localizations=ANYTHING,
        description=text(100, 1),
        description_localizations=ANYTHING,
        required=BOOLEAN,
        choices=listing(CHOICE, 25),
        channel_types=ANYTHING,
        min_value=NUMBER,
        max_value=NUMBER,
        min_length={"type": ["integer", "null"], "minimum": 0, "maximum": 6000},
        max_length={"type": ["integer", "null"], "minimum": 1, "maximum": 6000},
        autocomplete=BOOLEAN,
    )
    if depth:
        built["properties"]["options"] = listing(_option(depth - 1), 25)
    return built


_COMMAND = {
    "id": SNOWFLAKE,  # a bulk overwrite may name the one it means
    "name": text(32, 1),
    "name_localizations": ANYTHING,
    "description": text(100),
    "description_localizations": ANYTHING,
    "options": listing(_option(2), 25),
    "default_member_permissions": {"type": ["string", "integer", "null"]},
    "dm_permission": BOOLEAN,
    "default_permission": BOOLEAN,
    "integration_types": listing({"enum": [0, 1]}, 2),
    "contexts": listing({"enum": [0, 1, 2]}, 3),
    "type": {"enum": [1, 2, 3, 4, None]},
    "nsfw": BOOLEAN,
}
COMMAND = record("name", **_COMMAND)
COMMAND_EDIT = record(**_COMMAND)
COMMANDS: Json = {"type": "array", "items": COMMAND, "maxItems": 130}

_CONVERT = {
    "string": ("STRING_TYPE_CONVERT", "Could not interpret as string."),
    "integer": ("NUMBER_TYPE_COERCE", "Value is not int."),
    "number": ("NUMBER_TYPE_COERCE", "Value is not float."),
    "boolean": ("BOOLEAN_TYPE_CONVERT", "Must be either true or false."),
    "object": ("DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType"),
    "array": ("LIST_TYPE_CONVERT", "Only iterables may be used in a ListType"),
}
_VALIDATORS: dict[int, tuple[Json, Draft202012Validator]] = {}


def check(value: Any, schema: Json, *path: str | int) -> None:
    """Refuse a value that does not fit, with all that is wrong; `path` is where it stands in the body."""
    known = _VALIDATORS.setdefault(id(schema), (schema, Draft202012Validator(schema)))
    problems = [((*path, *where), code, words) for where, code, words in _problems(known[1].iter_errors(value))]
    if problems:
        raise refusal(problems)


def refusal(problems: Iterable[tuple[tuple[str | int, ...], str, str]]) -> Refusal:
    """400 "Invalid Form Body" with these errors (path, code, message)."""
    tree: Json = {}
    strange = False
    for path, code, words in problems:
        strange = strange or code == "UNKNOWN_FIELD"
        node = tree
        for part in path:
            node = node.setdefault(str(part), {})
        node.setdefault("_errors", []).append({"code": code, "message": words})
    rule = Rule.UNKNOWN_FIELD if strange else Rule.FORM
    return Refusal(400, 50035, "Invalid Form Body", rule=rule, errors=tree)


def _problems(errors: Iterable[ValidationError]) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    for error in errors:
        path = tuple(error.absolute_path)
        if error.validator == "required":
            missing = [one for one in error.validator_value if one not in error.instance]
            for name in missing[:1] if len(missing) == 1 else missing:
                yield (*path, name), "BASE_TYPE_REQUIRED", "This field is required"
            continue
        if error.validator == "additionalProperties":
            for name in sorted(set(error.instance) - set(error.schema["properties"])):
                yield (*path, name), "UNKNOWN_FIELD", "This field is not documented."
            continue
        yield (path, *_words(error))


def _words(error: ValidationError) -> tuple[str, str]:
    """Code and message of one error, as Discord words them."""
    limit, schema = error.validator_value, error.schema
    match error.validator:
        case "type":
            kinds = [limit] if isinstance(limit, str) else limit
            return _CONVERT[kinds[0]]
        case "enum":
            choices = ", ".join(repr(one) for one in limit if one is not None)
            return "BASE_TYPE_CHOICES", f"Value must be one of {{{choices}}}."
        case "maxLength" | "minLength" | "maxItems" | "minItems":
            least = schema.get("minLength") or schema.get("minItems")
            most = schema.get("maxLength") or schema.get("maxItems")
            if least:
                return "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length."
            return "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length."
        case "maximum":
            return "NUMBER_TYPE_MAX", f"Value should be less than or equal to {limit}."
        case "minimum":
            return "NUMBER_TYPE_MIN", f"Value should be greater than or equal to {limit}."
        case "pattern" if schema.get("format") == "snowflake":
            return "NUMBER_TYPE_COERCE", f'Value "{error.instance}" is not snowflake.'
        case "pattern":
            return "URL_TYPE_INVALID_URL", "Not a well formed URL."
        case _:
            return "BASE_TYPE_BAD_TYPE", error.message
