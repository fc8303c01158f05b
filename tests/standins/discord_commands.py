"""Methods of the Discord stand-in for application commands: global ones and those of a guild."""

from typing import Any

import regex

from tests.standins import discord_fields as fields
from tests.standins.discord_fields import refusal
from tests.standins.discord_ledger import MISSING_ACCESS, Json, Refusal
from tests.standins.discord_routes import Asked, route

NAME = regex.compile(r"[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}")
CREATIONS_A_DAY = 200
MOST = 100
CHAT_INPUT = 1


def check_command(command: Json, *path: str | int) -> None:
    """What the form alone does not say about a command."""
    _check_name(command["name"], *path)
    if not command.get("description"):
        raise refusal([((*path, "description"), "BASE_TYPE_REQUIRED", "This field is required")])
    _check_options(command.get("options") or [], *path, "options")


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
        optional = optional or not one.get("required")


def _known(server: Any, asked: Asked) -> dict[str, Json]:
    """The commands of the scope that a path names; 50001 for those of another application."""
    if asked["application"] != str(server.bot.id):
        raise Refusal(*MISSING_ACCESS)
    found: dict[str, Json] = server.commands.setdefault("", {})
    return found


def _put(server: Any, asked: Asked, known: dict[str, Json], given: Json) -> Json:
    """Create a command, or overwrite the one of the same name and type: only a new one counts for the day."""
    same = next((one for one in known.values() if one["name"] == given["name"]), None)
    if same is None:
        day = [at for at in server.creations if at > server.wall() - 86_400]
        if len(day) >= CREATIONS_A_DAY:
            words = "Max number of daily application command creates has been reached (200)"
            raise Refusal(400, 30034, words)
        if len(known) >= MOST:
            raise Refusal(400, 30032, f"Maximum number of application commands reached ({MOST}).")
        server.creations.append(server.wall())
    built = _shown(server, asked, given, same)
    known[built["id"]] = built
    return built


def _shown(server: Any, asked: Asked, given: Json, same: Json | None) -> Json:
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
    return empty | {name: value for name, value in given.items() if name != "id" and value is not None}


@route("PUT", "/applications/{application}/commands", body=fields.COMMANDS)
def overwrite_commands(server: Any, asked: Asked) -> list[Json]:
    """Replace all commands. Those that stay, by name and type, keep their id and are no new ones."""
    names = [one["name"] for one in asked.body]
    for number, one in enumerate(asked.body):
        check_command(one, number)
        if names.index(names[number]) != number:
            words = "Application command names must be unique"
            raise refusal([((number, "name"), "APPLICATION_COMMANDS_DUPLICATE_NAME", words)])
    known = _known(server, asked)
    for key in [key for key, one in known.items() if one["name"] not in names]:
        del known[key]
    return [_put(server, asked, known, one) for one in asked.body]
