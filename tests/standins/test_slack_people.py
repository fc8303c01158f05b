"""What people and other apps do in the Slack stand-in, and what an app's manifest makes of it."""

import copy
from typing import Any

import aiohttp
import pytest

from tests.standins.slack_ledger import Json
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT, HARK
from tests.standins.test_slack_rules import Client

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


def test_the_parent_of_a_reply_is_told_without_its_subtype() -> None:
    slack = SlackServer()
    slack.tells_replied = True
    room = slack.channel("general", ALICE)
    said = slack.say(room, ALICE, "hello")
    slack.say(room, ALICE, "reply", thread_ts=said["ts"])
    _, quirk, reply = slack.events_of("message")
    assert (quirk["message"]["reply_count"], "subtype" in quirk) == (1, False)
    assert reply["thread_ts"] == said["ts"]


def test_the_app_comes() -> None:
    slack = SlackServer()
    room = slack.channel("general", ALICE, BOB, with_app=False)
    slack.say(room, ALICE, "before")
    slack.join(room, HARK)
    slack.say(room, ALICE, "after")
    assert [one.name for one in slack.outbox] == ["message", "member_joined_channel", "message"]
    assert [one["text"] for one in slack.messages(room)][0::2] == ["before", "after"]


async def test_pages_of_history_may_go_forward() -> None:
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        call = Client(slack, session)
        room = slack.channel("general", ALICE)
        first, *_ = [slack.say(room, ALICE, str(number)) for number in range(6)]
        args = {"channel": room.id, "oldest": first["ts"], "limit": 3}
        page = (await call("conversations.history", args)).body
        assert [one["text"] for one in page["messages"]] == ["3", "2", "1"]
        cursor = page["response_metadata"]["next_cursor"]
        page = (await call("conversations.history", args | {"cursor": cursor})).body
        assert ([one["text"] for one in page["messages"]], page["has_more"]) == (["5", "4"], False)
        slack.pages_go_forward = False
        page = (await call("conversations.history", args)).body
        assert [one["text"] for one in page["messages"]] == ["5", "4", "3"]


async def test_a_thread_comes_in_pages() -> None:
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        call = Client(slack, session)
        room = slack.channel("general", ALICE)
        parent = slack.say(room, ALICE, "parent")
        for number in range(3):
            slack.say(room, ALICE, str(number), thread_ts=parent["ts"])
        args = {"channel": room.id, "ts": parent["ts"], "limit": 2}
        page = (await call("conversations.replies", args)).body
        assert [one["text"] for one in page["messages"]] == ["parent", "0", "1"]
        args["cursor"] = page["response_metadata"]["next_cursor"]
        for every_page, texts in ((True, ["parent", "2"]), (False, ["2"])):
            slack.parent_on_every_page = every_page
            page = (await call("conversations.replies", args)).body
            assert ([one["text"] for one in page["messages"]], page["has_more"]) == (texts, False)


def test_a_tombstone_goes_with_its_last_reply() -> None:
    slack = SlackServer()
    room = slack.channel("general", ALICE)
    parent = slack.say(room, ALICE, "parent")
    reply = slack.say(room, ALICE, "reply", thread_ts=parent["ts"])
    slack.delete(room, parent)
    assert slack.messages(room)[0]["subtype"] == "tombstone"
    slack.delete(room, reply)
    assert slack.messages(room) == []
    gone = slack.events_of("message")[-2:]
    assert [one["deleted_ts"] for one in gone] == [reply["ts"], parent["ts"]]
    assert gone[1]["previous_message"]["subtype"] == "tombstone"


def test_a_mention_comes_again_when_it_is_edited_but_not_with_files() -> None:
    slack = SlackServer()
    room = slack.channel("general", ALICE)
    said = slack.mention(room, ALICE, "helo")
    slack.edit(room, said, f"<@{BOT}> hello")
    first, second = slack.events_of("app_mention")
    assert (first["ts"], "edited" in first) == (second["ts"], False)
    assert second["edited"]["user"] == ALICE.id
    slack.mention(room, ALICE, "read", files={"a.txt": b"x"})
    assert len(slack.events_of("app_mention")) == 2
    slack.mentions_with_files = True
    slack.mention(room, ALICE, "read", files={"a.txt": b"x"})
    assert len(slack.events_of("app_mention")) == 3


async def test_what_stands_and_what_was_said_can_be_read() -> None:
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        call = Client(slack, session)
        im = slack.im(ALICE.id)
        said = slack.dm(ALICE, "hello", files={"a.png": b"png"})
        await call("chat.postMessage", {"channel": ALICE.id, "text": "in a thread", "thread_ts": said["ts"]})
        await call("chat.postMessage", {"channel": im.id, "text": "on top"})
        assert [one["text"] for one in slack.messages(im)] == ["hello", "on top"]
        assert [one["text"] for one in slack.thread(im, said["ts"])] == ["hello", "in a thread"]
        assert slack.texts(im) == ["in a thread", "on top"]
        assert (await slack.wait_text("on top")).channel == im.id
        assert (said["files"][0]["mimetype"], said["subtype"]) == ("image/png", "file_share")
        slack.say(im, ALICE, f"<https://example.org> & <@{BOB.id}> <b>")
        assert slack.messages(im)[-1]["text"] == f"<https://example.org> &amp; <@{BOB.id}> &lt;b&gt;"


def test_an_event_stays_as_it_was_told() -> None:
    slack = SlackServer()
    room = slack.channel("general", ALICE, BOB)
    said = slack.say(room, ALICE, "hello")
    slack.react(room, said, "eyes")
    slack.edit(room, said, "hello again")
    told = slack.events_of("message")[-1]
    slack.react(room, said, "eyes", BOB)
    assert told["message"]["reactions"] == [{"name": "eyes", "users": [ALICE.id], "count": 1}]
