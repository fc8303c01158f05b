"""What people and other apps do in the Slack stand-in, and what an app's manifest makes of it."""

import copy
from typing import Any

import pytest

from tests.standins.slack_ledger import Json
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOT

MANIFEST: Json = {
    "display_information": {"name": "Hark"},
    "features": {
        "bot_user": {"display_name": "Hark"},
        "slash_commands": [{"command": "/hark", "description": "Speak to Hark"}],
    },
    "oauth_config": {"scopes": {"bot": ["app_mentions:read", "chat:write", "commands", "im:history"]}},
    "settings": {
        "event_subscriptions": {"bot_events": ["app_mention", "message.im"]},
        "interactivity": {"is_enabled": False},
        "socket_mode_enabled": True,
    },
}


def test_a_manifest_decides_what_the_app_gets() -> None:
    slack = SlackServer()
    install(slack, MANIFEST)
    room = slack.channel("general", ALICE)
    said = slack.mention(room, ALICE, "help")
    slack.dm(ALICE, "hello")
    slack.react(room, said, "eyes")
    assert [one.name for one in slack.outbox] == ["app_mention", "message"]
    with pytest.raises(ValueError, match="interactivity"):
        slack.click(room, said, "allow")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("oauth_config.scopes.bot", ["commands"], "app_mention needs the scope app_mentions:read"),
        ("oauth_config.scopes.bot", ["mind:read"], "mind:read is no scope"),
        ("settings.event_subscriptions.bot_events", ["message"], "message is no event"),
        ("features.slash_commands", [{"command": "/Hark it", "description": "x"}], "no name of a command"),
        ("features.slash_commands", [{"command": "/hark"}], "no description"),
        ("features.bot_user", {}, "bot_user"),
        ("display_information.name", "x" * 36, "35 characters"),
        ("settings.socket_mode_enabled", False, "need a url"),
    ],
)
def test_a_manifest_that_slack_refuses(path: str, value: Any, words: str) -> None:
    manifest = copy.deepcopy(MANIFEST)
    *places, last = path.split(".")
    inner = manifest
    for place in places:
        inner = inner[place]
    inner[last] = value
    with pytest.raises(ValueError, match=words):
        install(SlackServer(), manifest)


def test_other_apps_write_too() -> None:
    slack = SlackServer()
    room = slack.channel("general", ALICE)
    slack.post_as(room, "deploys", "deployed", webhook=True)
    slack.post_as(room, "builds", f"<@{BOT}> failed")
    hook, build = slack.events_of("message")
    assert (hook["subtype"], hook["username"], "user" in hook) == ("bot_message", "deploys", False)
    assert (build["bot_id"], build["user"], build["bot_profile"]["name"]) == ("B0BUILDS", "U0BUILDS", "builds")
    assert [one["user"] for one in slack.events_of("app_mention")] == ["U0BUILDS"]
    slack.say(room, ALICE, "is away", subtype="me_message")
    assert slack.events_of("message")[-1]["subtype"] == "me_message"
