"""Methods of the Slack Web API that the stand-in serves: arguments, scopes, rate limit tier, whether JSON is read.

`read_arguments` turns what came in the query, the form or the JSON body into typed values. Names that the
table does not list are reported (of the documented ones it has those that Hark uses), values of a wrong type are
refused with `invalid_arguments`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.standins.slack_ledger import Json, Refusal, Rule

# Calls per minute; "special" is one message a second and conversation, or hundreds a minute.
TIERS = {"1": 1, "2": 20, "3": 50, "4": 100, "special": 600}


@dataclass(frozen=True, slots=True)
class Method:
    """`args` maps names to str, int, bool, json or list; `scope` None needs none, "history" and "read" go by kind."""

    args: dict[str, str]
    required: frozenset[str]
    scope: str | None
    tier: str
    takes_json: bool
    token: str = "xoxb"


def _method(spec: str, scope: str | None, tier: str, *, json: bool = True, token: str = "xoxb") -> Method:
    """`spec` names the arguments: "name", "name!" when required, "name:type". bolt adds its team to every call."""
    spec = f"{spec} team_id"
    pairs = [(name.partition(":")[0], name.partition(":")[2] or "str") for name in spec.split()]
    return Method(
        args={name.rstrip("!"): kind for name, kind in pairs},
        required=frozenset(name.rstrip("!") for name, _ in pairs if name.endswith("!")),
        scope=scope,
        tier=tier,
        takes_json=json,
        token=token,
    )


_BODY = "text blocks:json metadata:json"
_PAGE = "cursor limit:int"
_RANGE = f"channel! oldest latest inclusive:bool include_all_metadata:bool {_PAGE}"

METHODS: dict[str, Method] = {
    "auth.test": _method("", None, "special"),
    "apps.connections.open": _method("", "connections:write", "3", token="xapp"),
    "assistant.threads.setStatus": _method("channel_id! thread_ts! status!", "chat:write", "special"),
    "chat.delete": _method("channel! ts!", "chat:write", "3"),
    "chat.postMessage": _method(
        f"channel! thread_ts {_BODY} unfurl_links:bool unfurl_media:bool", "chat:write", "special"
    ),
    "chat.update": _method(f"channel! ts! {_BODY}", "chat:write", "3"),
    "conversations.history": _method(_RANGE, "history", "3"),
    "conversations.info": _method("channel! include_num_members:bool", "read", "3", json=False),
    "conversations.open": _method("users:list", None, "3"),
    "conversations.replies": _method(f"ts! {_RANGE}", "history", "3", json=False),
    "files.completeUploadExternal": _method("files!:json channel_id! thread_ts initial_comment", "files:write", "4"),
    "files.getUploadURLExternal": _method("filename! length!:int", "files:write", "4", json=False),
    "files.info": _method("file!", "files:read", "4", json=False),
    "pins.add": _method("channel! timestamp", "pins:write", "2"),
    "pins.remove": _method("channel! timestamp", "pins:write", "2"),
    "reactions.add": _method("channel! timestamp! name!", "reactions:write", "3"),
    "reactions.remove": _method("channel! timestamp! name!", "reactions:write", "2"),
    "users.conversations": _method(f"types exclude_archived:bool {_PAGE}", None, "3", json=False),
    "users.info": _method("user!", "users:read", "4", json=False),
    "users.list": _method(_PAGE, "users:read", "2", json=False),
}
# `_RANGE` stands for both methods; `limit` differs: history gives 100 without one, replies 1,000.

_WORDS = {"true": True, "1": True, "false": False, "0": False}


def read_arguments(method: str, given: Json, complain: Callable[[Rule, str], None]) -> Json:
    """Typed values. Raises `invalid_arguments` as Slack does, with a line for each fault."""
    known = METHODS[method]
    values: Json = {}
    errors: list[str] = []
    for name, value in given.items():
        if name not in known.args:
            complain(Rule.UNKNOWN_ARGUMENT, f"{method}: {name}")
            continue
        try:
            values[name] = _read(value, known.args[name])
        except (TypeError, ValueError):
            errors.append(f"[ERROR] must be a {known.args[name]} [json-pointer:/{name}]")
    errors += [f"[ERROR] missing required field: {name}" for name in sorted(known.required - set(values))]
    if errors:
        raise Refusal("invalid_arguments", rule=Rule.BAD_VALUE, messages=errors)
    return values


def _read(value: Any, kind: str) -> Any:
    if kind == "bool":
        word = str(value).lower()
        if word not in _WORDS:
            raise ValueError
        return _WORDS[word]
    if kind == "int":
        if isinstance(value, bool):
            raise TypeError
        return int(value)
    if kind == "json":  # its own rules say whether the value is good
        return value
    if kind == "list":
        return value.split(",") if isinstance(value, str) else [str(one) for one in value]
    if not isinstance(value, str):
        raise TypeError
    return value


def parsed(value: Any, kind: type) -> Any:
    """An argument that is an object or a JSON text; raises `invalid_arguments` for anything but `kind`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, kind):
        raise Refusal("invalid_arguments", rule=Rule.BAD_VALUE, messages=["[ERROR] not valid JSON"])
    return value
