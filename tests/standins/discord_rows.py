"""One row per rule that the Discord stand-in keeps for the form of a call, by subject.

Each row holds a call that breaks the rule and its accepted counterpart; test_discord_rules makes both. A text that is
one of `$room`, `$hers` … stands for an id of the test's world.
"""

from dataclasses import dataclass
from typing import Any

from tests.standins.discord_ledger import Json, Rule

SEND, HERS, MINE = "POST /channels/$room/messages", "/channels/$room/messages/$hers", "/channels/$room/messages/$mine"
COMMANDS = "PUT /applications/$bot/commands"
EMOJI = "😀"  # one code point, two UTF-16 code units


@dataclass(frozen=True, slots=True)
class Row:
    """One rule. `broken` must be answered with `status` and `code`, have `error` in it and be a violation of `rule`."""

    name: str
    call: str
    broken: Any
    status: int
    code: int
    error: str
    rule: Rule | None
    kept: Any
    kept_call: str


def bad(
    name: str, call: str, broken: Any, error: str, kept: Any, *, rule: Rule = Rule.FORM, kept_call: str = ""
) -> Row:
    """A body or query that is "Invalid Form Body" with this error code."""
    return Row(name, call, broken, 400, 50035, error, rule, kept, kept_call or call)


def refused(
    name: str, call: str, status: int, code: int, kept_call: str, *, broken: Any = None, kept: Any = None
) -> Row:
    """A call that the form allows, but not the state; a client may find that out."""
    return Row(name, call, broken, status, code, "", None, kept if kept is not None else broken, kept_call)


def text(content: str = "hello", **more: Any) -> Json:
    return {"content": content, **more}


def row(*parts: Json) -> Json:
    return text(components=[{"type": 1, "components": list(parts)}])


def button(**more: Any) -> Json:
    return {"type": 2, "style": 1, "label": "Yes", "custom_id": "yes"} | more


def command(name: str = "note", **more: Any) -> Json:
    return {"name": name, "description": "Keeps a note"} | more


def option(name: str = "text", **more: Any) -> Json:
    return {"type": 3, "name": name, "description": "Some text"} | more


def ping(**allowed: Any) -> Json:
    return text("hello @everyone", allowed_mentions=allowed)


PLACES = [
    refused("a channel that is there", "GET /channels/1", 404, 10003, "GET /channels/$room"),
    refused("a channel that is seen", "GET /channels/$hidden", 403, 50001, "GET /channels/$room"),
    refused("history of a hidden channel", "GET /channels/$hidden/messages", 403, 50001,
        "GET /channels/$room/messages"),
    refused("a message that is there", "GET /channels/$room/messages/1", 404, 10008, f"GET {HERS}"),
    refused("a message of this channel", "GET /channels/$dm/messages/$hers", 404, 10008, f"GET {HERS}"),
    refused("a guild of the bot", "GET /guilds/$foreign", 404, 10004, "GET /guilds/$guild"),
    refused("a member", "GET /guilds/$guild/members/$carol", 404, 10007, "GET /guilds/$guild/members/$alice"),
    refused("a user", "GET /users/1", 404, 10013, "GET /users/$alice"),
    refused("somebody else to write to", "POST /users/@me/channels", 400, 50033, "POST /users/@me/channels",
        broken={"recipient_id": "$bot"}, kept={"recipient_id": "$alice"}),
    refused("sending where it is allowed", "POST /channels/$mute/messages", 403, 50013, SEND, broken=text()),
    refused("typing where it is allowed", "POST /channels/$mute/typing", 403, 50013, "POST /channels/$room/typing"),
    refused("no message in a forum", "POST /channels/$forum/messages", 400, 40058, SEND, broken=text()),
    refused("no message in a category", "POST /channels/$category/messages", 400, 50008, SEND, broken=text()),
    refused("somebody who blocks the bot", "POST /channels/$blocked/messages", 403, 50007,
        "POST /channels/$dm/messages", broken=text()),
    refused("one's own messages", f"PATCH {HERS}", 403, 50005, f"PATCH {MINE}", broken=text()),
    refused("no deleting of others' messages", f"DELETE {HERS}", 403, 50013, "DELETE /channels/$room/messages/$spare"),
    refused("a reaction is an emoji", f"PUT {HERS}/reactions/thumbsup/@me", 404, 10014,
        f"PUT {HERS}/reactions/%F0%9F%91%8D/@me"),
    refused("a custom emoji has its id", f"PUT {HERS}/reactions/blobcat/@me", 404, 10014,
        f"PUT {HERS}/reactions/blobcat%3A356198724152098816/@me"),
    refused("pinning where it is allowed", "PUT /channels/$room/messages/pins/$hers", 403, 50013,
        "PUT /channels/$dm/messages/pins/$direct"),
    refused("unpinning where it is allowed", "DELETE /channels/$room/messages/pins/$hers", 403, 50013,
        "DELETE /channels/$dm/messages/pins/$direct"),
    refused("a message to pin", "PUT /channels/$dm/messages/pins/1", 404, 10008,
        "PUT /channels/$dm/messages/pins/$direct"),
    refused("a locked thread", "POST /channels/$locked/messages", 400, 160005, "POST /channels/$thread/messages",
        broken=text()),
    refused("one thread for a message", "POST /channels/$room/messages/$threaded/threads", 400, 160004,
        f"POST {HERS}/threads", broken={"name": "talk"}),
    refused("editing in an archived thread", "PATCH /channels/$locked/messages/$inlocked", 400, 50083, f"PATCH {MINE}",
        broken=text()),
    bad("a thread has a name", f"POST {HERS}/threads", {"name": ""}, "BASE_TYPE_BAD_LENGTH", {"name": "talk"},
        kept_call="POST /channels/$room/messages/$hers2/threads"),
]  # fmt: skip

CALLS = [
    refused("commands of this application", "PUT /applications/1/commands", 403, 50001, COMMANDS, broken=[command()]),
    bad("a name of 32", COMMANDS, [command("x" * 33)], "BASE_TYPE_BAD_LENGTH", [command("x" * 32)]),
    bad("a name without capitals", COMMANDS, [command("Note")], "APPLICATION_COMMAND_INVALID_NAME", [command()]),
    bad("a name without blanks", COMMANDS, [command("a b")], "APPLICATION_COMMAND_INVALID_NAME", [command("a-b")]),
    bad("a name of letters", COMMANDS, [command("note!")], "APPLICATION_COMMAND_INVALID_NAME", [command("заметка")]),
    bad("a description", COMMANDS, [{"name": "note"}], "BASE_TYPE_REQUIRED", [command()]),
    bad("a description of 100", COMMANDS, [command(description="x" * 101)], "BASE_TYPE_MAX_LENGTH",
        [command(description="x" * 100)]),
    bad("25 options", COMMANDS, [command(options=[option(f"o{n}") for n in range(26)])], "BASE_TYPE_MAX_LENGTH",
        [command(options=[option(f"o{n}") for n in range(25)])]),
    bad("each option once", COMMANDS, [command(options=[option(), option()])],
        "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", [command(options=[option(), option("other")])]),
    bad("needed options first", COMMANDS, [command(options=[option(), option("other", required=True)])],
        "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", [command(options=[option("other", required=True), option()])]),
    bad("an option has a description", COMMANDS, [command(options=[{"type": 3, "name": "x"}])], "BASE_TYPE_REQUIRED",
        [command(options=[option("x")])]),
    bad("each command once", COMMANDS, [command(), command()], "APPLICATION_COMMANDS_DUPLICATE_NAME", [command(),
        command("other")]),
    bad("a list of commands", COMMANDS, {"name": "x"}, "LIST_TYPE_CONVERT", [command()]),
]  # fmt: skip

STATE_ROWS: dict[str, list[Row]] = {"places": PLACES, "commands": CALLS}
