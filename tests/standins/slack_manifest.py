"""What an app's manifest makes of the stand-in: scopes, events and commands, checked as Slack's form checks them."""

import re

from tests.standins import slack_shapes as shapes
from tests.standins.slack_ledger import Json
from tests.standins.slack_world import World

BOT_SCOPES = shapes.SCOPES | {"channels:join", "channels:manage", "chat:write.customize", "chat:write.public"}
BOT_SCOPES |= {"emoji:read", "groups:write", "pins:read", "team:read", "users:read.email", "users:write"}
COMMAND = re.compile(r"/[a-z0-9_-]{1,31}")


def install(slack: World, manifest: Json) -> None:
    """Give the app what the manifest asks for and nothing else. ValueError says what Slack would not accept.

    It knows the scopes and events of this server and a few more; a manifest that is good may need a line here.
    """
    name = manifest["display_information"]["name"]
    settings, features = manifest["settings"], manifest["features"]
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    events = set(settings.get("event_subscriptions", {}).get("bot_events", []))
    commands = {one["command"]: one for one in features.get("slash_commands", [])}
    wrong = [f"{one} is no scope that this server knows" for one in sorted(scopes - BOT_SCOPES)]
    wrong += [f"{one} is no event that this server knows" for one in sorted(events - shapes.EVENTS)]
    needed = {one: shapes.EVENT_SCOPES.get(one) for one in sorted(events)}
    wrong += [f"{one} needs the scope {scope}" for one, scope in needed.items() if scope and scope not in scopes]
    wrong += [f"{one} is no name of a command" for one in commands if not COMMAND.fullmatch(one)]
    wrong += [f"{one} has no description" for one, row in commands.items() if not row.get("description")]
    if len(name) > 35:
        wrong.append("a name has at most 35 characters")
    if not features.get("bot_user", {}).get("display_name"):
        wrong.append("scopes of a bot need a bot_user with a display_name")
    if commands and "commands" not in scopes:
        wrong.append("slash commands need the scope commands")
    if not settings.get("socket_mode_enabled"):
        urls = [settings.get(place, {}).get("request_url") for place in ("event_subscriptions", "interactivity")]
        urls += [row.get("url") for row in commands.values()]
        if not all(urls):
            wrong.append("without Socket Mode events, interactivity and commands each need a url")
    if wrong:
        raise ValueError("; ".join(wrong))
    slack.scopes, slack.events, slack.commands = scopes, events, set(commands)
    slack.interactive = bool(settings.get("interactivity", {}).get("is_enabled"))
