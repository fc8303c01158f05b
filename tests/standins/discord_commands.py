"""Methods of the Discord stand-in for application commands: global ones and those of a guild."""

from typing import Any

import regex

from tests.standins import discord_fields as fields
from tests.standins.discord_fields import record, refusal
from tests.standins.discord_ledger import MISSING_ACCESS, Json, Refusal, unknown
from tests.standins.discord_routes import Asked, route

NAME = regex.compile(r"[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}")
CREATIONS_A_DAY = 200
MOST = {1: 100, 2: 15, 3: 15, 4: 1}
CHAT_INPUT, SUB_COMMAND, GROUP = 1, 1, 2
LOCALIZED = record(with_localizations=fields.text(5))


def check_command(command: Json, *path: str | int) -> None:
    """What the form alone does not say about a command."""
    if (command.get("type") or CHAT_INPUT) == CHAT_INPUT:
        _check_name(command["name"], *path)
        if not command.get("description"):
            raise refusal([((*path, "description"), "BASE_TYPE_REQUIRED", "This field is required")])
    elif command.get("description") or command.get("options"):
        words = "Context menu commands cannot have description"
        raise refusal([((*path,), "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION_INVALID", words)])
    _check_options(command.get("options") or [], *path, "options")
    if _size(command) > 8000:
        words = "Command exceeds maximum size (8000)"
        raise refusal([((*path,), "APPLICATION_COMMAND_TOO_LARGE", words)])


def _check_name(name: str, *path: str | int) -> None:
    if not NAME.fullmatch(name) or name != name.lower():
        words = "Command name is invalid"
        raise refusal([((*path, "name"), "APPLICATION_COMMAND_INVALID_NAME", words)])


def _check_options(options: list[Json], *path: str | int) -> None:
    names = [one["name"] for one in options]
    if len(names) != len(set(names)):
        raise refusal([(path, "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option names must be unique")])
    optional = False
    for number, one in enumerate(options):
        here = (*path, number)
        _check_name(one["name"], *here)
        if one.get("required") and optional:
            words = "Required options must be placed before non-required options"
            raise refusal([(here, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", words)])
        optional = optional or (not one.get("required") and one["type"] not in (SUB_COMMAND, GROUP))
        if one.get("choices") and one.get("autocomplete"):
            words = "Cannot have both choices and autocomplete"
            raise refusal([(here, "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE_INVALID", words)])
        _check_options(one.get("options") or [], *here, "options")


def _size(part: Json) -> int:
    """Characters of names, descriptions and values, as the limit of 8000 counts them."""
    own = len(part["name"]) + len(part.get("description") or "")
    choices = sum(len(one["name"]) + len(str(one["value"])) for one in part.get("choices") or ())
    return own + choices + sum(_size(one) for one in part.get("options") or ())


def _known(server: Any, asked: Asked) -> dict[str, Json]:
    """The commands of the scope that a path names; 50001 for those of another application."""
    if asked["application"] != str(server.bot.id):
        raise Refusal(*MISSING_ACCESS)
    guild = asked.path.get("guild")
    if guild is not None:
        server.guild(guild)
    found: dict[str, Json] = server.commands.setdefault(guild or "", {})
    return found


def _put(server: Any, asked: Asked, known: dict[str, Json], given: Json) -> Json:
    """Create a command, or overwrite the one of the same name and type: only a new one counts for the day."""
    kind = given.get("type") or CHAT_INPUT
    same = next((one for one in known.values() if (one["name"], one["type"]) == (given["name"], kind)), None)
    if same is None:
        day = [at for at in server.creations if at > server.wall() - 86_400]
        if len(day) >= CREATIONS_A_DAY:
            words = "Max number of daily application command creates has been reached (200)"
            raise Refusal(400, 30034, words)
        if sum(one["type"] == kind for one in known.values()) >= MOST[kind]:
            raise Refusal(400, 30032, f"Maximum number of application commands reached ({MOST[kind]}).")
        server.creations.append(server.wall())
    built = _shown(server, asked, given, same)
    known[built["id"]] = built
    return built


def _shown(server: Any, asked: Asked, given: Json, same: Json | None) -> Json:
    guild = {"guild_id": asked.path["guild"]} if "guild" in asked.path else {}
    empty: Json = {
        "id": same["id"] if same else server.snowflakes.next(),
        "application_id": str(server.bot.id),
        "version": server.snowflakes.next(),
        "default_member_permissions": None,
        "type": CHAT_INPUT,
        "name_localizations": None,
        "description": "",
        "description_localizations": None,
        "dm_permission": True,
        "contexts": None,
        "integration_types": [0],
        "nsfw": False,
    }
    return empty | guild | {name: value for name, value in given.items() if name != "id" and value is not None}


_GLOBAL, _GUILD = "/applications/{application}/commands", "/applications/{application}/guilds/{guild}/commands"


@route("GET", _GLOBAL, query=LOCALIZED)
@route("GET", _GUILD, query=LOCALIZED)
def commands(server: Any, asked: Asked) -> list[Json]:
    return list(_known(server, asked).values())


@route("POST", _GLOBAL, body=fields.COMMAND)
@route("POST", _GUILD, body=fields.COMMAND)
def create_command(server: Any, asked: Asked) -> Json:
    check_command(asked.body)
    return _put(server, asked, _known(server, asked), asked.body)


@route("PUT", _GLOBAL, body=fields.COMMANDS)
@route("PUT", _GUILD, body=fields.COMMANDS)
def overwrite_commands(server: Any, asked: Asked) -> list[Json]:
    """Replace all commands. Those that stay, by name and type, keep their id and are no new ones."""
    names = [(one["name"], one.get("type") or CHAT_INPUT) for one in asked.body]
    for number, one in enumerate(asked.body):
        check_command(one, number)
        if names.index(names[number]) != number:
            words = "Application command names must be unique"
            raise refusal([((number, "name"), "APPLICATION_COMMANDS_DUPLICATE_NAME", words)])
    known = _known(server, asked)
    for key in [key for key, one in known.items() if (one["name"], one["type"]) not in names]:
        del known[key]
    return [_put(server, asked, known, one) for one in asked.body]


def _one(server: Any, asked: Asked) -> Json:
    found = _known(server, asked).get(asked["command"])
    if found is None:
        raise unknown("application command")
    return found


@route("GET", _GLOBAL + "/{command}")
@route("GET", _GUILD + "/{command}")
def one_command(server: Any, asked: Asked) -> Json:
    return _one(server, asked)


@route("PATCH", _GLOBAL + "/{command}", body=fields.COMMAND_EDIT)
@route("PATCH", _GUILD + "/{command}", body=fields.COMMAND_EDIT)
def edit_command(server: Any, asked: Asked) -> Json:
    known = _one(server, asked)
    changed = known | asked.body
    check_command(changed)
    known.update(changed | {"version": server.snowflakes.next()})
    return known


@route("DELETE", _GLOBAL + "/{command}")
@route("DELETE", _GUILD + "/{command}")
def delete_command(server: Any, asked: Asked) -> None:
    del _known(server, asked)[_one(server, asked)["id"]]
