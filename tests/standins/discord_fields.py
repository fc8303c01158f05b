"""The documented form of every body and query that the Discord stand-in takes, as JSON schemas.

Of the documented fields those that Hark sends: another one is refused until it is written down here.

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
ANYTHING: Json = {}
SNOWFLAKE: Json = {"type": ["string", "integer", "null"], "pattern": r"^[0-9]{1,20}$", "format": "snowflake"}

ALLOWED_MENTIONS = record(
    parse={**listing({"enum": ["users", "roles", "everyone"]}, 3), "uniqueItems": True},
    replied_user=BOOLEAN,
)
ATTACHMENT = record(
    "id",
    id=SNOWFLAKE,
    filename=text(1024, 1),
    duration_secs={"type": ["number", "null"]},
    waveform=text(400),
)
REFERENCE = record("message_id", message_id=SNOWFLAKE, fail_if_not_exists=BOOLEAN)
BUTTON = record(
    "type style label custom_id",
    type={"type": "integer"},
    style={"enum": [1, 2, 3, 4]},
    label=text(80, 1),
    custom_id=text(100, 1),
    disabled=BOOLEAN,
)
ACTION_ROW = record("type components", type={"type": "integer"}, components=listing({"type": "object"}, 5, 1))

_EITHER: Json = {
    "content": text(MAX_CONTENT),
    "flags": INTEGER,
    "allowed_mentions": ALLOWED_MENTIONS | {"type": ["object", "null"]},
    "components": listing({"type": "object"}, 40),
}
NONCE: Json = {"type": ["string", "integer", "null"], "maxLength": 25}
MESSAGE = record(
    **_EITHER,
    attachments=listing(ATTACHMENT, 10),
    nonce=NONCE,
    enforce_nonce=BOOLEAN,
    message_reference=REFERENCE | {"type": ["object", "null"]},
)
MESSAGE_EDIT = record(**_EITHER)
# Of the types of a first answer those that announce one: a message to come, or no message at all.
CALLBACK = record("type", type={"enum": [5, 6]})
THREAD_FROM_MESSAGE = record("name", name=text(100, 1), auto_archive_duration={"enum": [60, 1440, 4320, 10080, None]})
OPEN_DM = record("recipient_id", recipient_id=SNOWFLAKE)
REFRESH_URLS = record("attachment_urls", attachment_urls=listing({"type": "string", "maxLength": 2048}, 50, 1))


_OPTION = record(
    "type name description", type={"enum": [3]}, name=text(32, 1), description=text(100, 1), required=BOOLEAN
)
COMMAND = record("name", name=text(32, 1), description=text(100), options=listing(_OPTION, 25))
COMMANDS: Json = {"type": "array", "items": COMMAND, "maxItems": 130}

_CONVERT = {
    "string": ("STRING_TYPE_CONVERT", "Could not interpret as string."),
    "integer": ("NUMBER_TYPE_COERCE", "Value is not int."),
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
        case _:
            return "BASE_TYPE_BAD_TYPE", error.message
