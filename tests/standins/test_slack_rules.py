"""The rules of the Slack stand-in, each broken by a raw HTTP call and kept by its counterpart.

The table is in slack_rows; rules that need more than one call follow below. No Slack library takes part.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from tests.standins.slack_faults import RateLimits
from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_rows import (
    BLOCK_ROWS,
    FAR,
    GENERAL,
    GONE,
    HERS,
    IM,
    JOIN,
    METHOD_ROWS,
    MINE,
    NOW,
    OLD,
    POST_ROWS,
    REPLY,
    RICH,
    SECRET,
    Row,
)
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """A server with everything that the rows name; violations are the subject here and fail no test."""
    async with SlackServer(wall=lambda: NOW) as server:
        server.tolerate(*Rule)
        general = server.channel("general", ALICE)
        server.channel("far", ALICE, with_app=False)
        server.channel("secret", ALICE, private=True, with_app=False)
        server.archive(server.channel("old", ALICE))
        server.im(ALICE.id)
        assert {room.id for room in server.rooms.values()} == {GENERAL, FAR, SECRET, OLD, IM}
        server.say(general, ALICE, "hers")
        yield server


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Json
    retry_after: str | None = None


class Client:
    """Raw calls with the bot's token."""

    def __init__(self, slack: SlackServer, session: aiohttp.ClientSession) -> None:
        self.slack = slack
        self.session = session

    async def __call__(self, method: str, args: Json, *, token: str | None = None) -> Answer:
        """JSON where the method reads it, else a form."""
        headers = {"Authorization": f"Bearer {self.slack.bot_token if token is None else token}"}
        url = f"{self.slack.base_url}{method}"
        if method in FORM_ONLY:
            request = self.session.post(url, data={name: str(value) for name, value in args.items()}, headers=headers)
        else:
            kind = {"Content-Type": "application/json; charset=utf-8"}
            request = self.session.post(url, json=args, headers=headers | kind)
        async with request as answer:
            return Answer(answer.status, await answer.json(), answer.headers.get("Retry-After"))


FORM_ONLY = (
    "conversations.info",
    "conversations.replies",
    "files.getUploadURLExternal",
    "files.info",
    "users.conversations",
    "users.info",
    "users.list",
)


@pytest.fixture
async def call(slack: SlackServer) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(slack, session)


async def prepare(slack: SlackServer, call: Client) -> None:
    """What the rows expect to stand there."""
    assert (await call("chat.postMessage", {"channel": GENERAL, "text": "mine"})).body["ts"] == MINE
    reply = await call("chat.postMessage", {"channel": GENERAL, "text": "reply", "thread_ts": MINE})
    assert reply.body["ts"] == REPLY
    slack.join(GENERAL, BOB)
    slack.rooms[GENERAL].members.remove(BOB.id)
    assert slack.kept[GENERAL][JOIN]["subtype"] == "channel_join"
    for name in ("eyes", "+1"):
        assert (await call("reactions.add", {"channel": GENERAL, "timestamp": HERS, "name": name})).body["ok"]
    slack.files.clear()
    for number in (1, 2):
        file = slack.new_file(BOT, "a.txt", 1)
        slack.files[f"F0FILE0000{number}"] = file
        file.data = b"x" if number == 2 else None
    slack.people[GONE.id] = GONE
    for number in (1, 2):
        said = await call("chat.postMessage", {"channel": IM, "text": f"pinned {number}"})
        assert (await call("pins.add", {"channel": IM, "timestamp": said.body["ts"]})).body["ok"]
    assert (await call("chat.postMessage", {"channel": IM, "text": "not pinned"})).body["ts"] == REPLY
    assert broken_rules(slack) == []


def broken_rules(slack: SlackServer) -> list[Rule]:
    return [violation.rule for violation in slack.ledger.violations]


async def check_row(row: Row, slack: SlackServer, call: Client) -> None:
    said = len(slack.sent)
    broken = await call(row.method, row.broken)
    assert (broken.status, broken.body["ok"], broken.body["error"]) == (200, False, row.error), (row, broken.body)
    assert broken_rules(slack) == ([row.rule] if row.rule else []), row
    assert len(slack.sent) == said, row
    slack.ledger.violations.clear()
    kept = await call(row.method, row.kept)
    assert (kept.status, kept.body["ok"]) == (200, True), (row, kept.body)
    assert broken_rules(slack) == [], row


@pytest.mark.parametrize("rows", [POST_ROWS, BLOCK_ROWS], ids=["messages", "blocks"])
async def test_messages(rows: list[Row], slack: SlackServer, call: Client) -> None:
    await prepare(slack, call)
    for row in rows:
        await check_row(row, slack, call)


@pytest.mark.parametrize("method", sorted({row.method for row in METHOD_ROWS}))
async def test_method(method: str, slack: SlackServer, call: Client) -> None:
    await prepare(slack, call)
    for row in METHOD_ROWS:
        if row.method == method:
            await check_row(row, slack, call)


# Making calls


async def test_tokens_by_kind(slack: SlackServer, call: Client) -> None:
    for token, method, error in (
        ("", "auth.test", "not_authed"),
        ("xoxb-wrong", "auth.test", "invalid_auth"),
        (slack.app_token, "chat.postMessage", "not_allowed_token_type"),
        (slack.bot_token, "apps.connections.open", "not_allowed_token_type"),
    ):
        refused = await call(method, {"channel": GENERAL, "text": "x"}, token=token)
        assert (refused.status, refused.body["ok"], refused.body["error"]) == (200, False, error)
        assert broken_rules(slack)[-1] is Rule.BAD_TOKEN
    opened = await call("apps.connections.open", {}, token=slack.app_token)
    assert opened.body["url"].startswith("ws://127.0.0.1:")
    assert (await call("auth.test", {})).body["bot_id"] == "B0HARKBOT1"


async def test_scopes_are_told(slack: SlackServer, call: Client) -> None:
    slack.scopes -= {"chat:write", "channels:history", "im:read"}
    for method, args, needed in (
        ("chat.postMessage", {"channel": GENERAL, "text": "x"}, "chat:write"),
        ("conversations.history", {"channel": GENERAL}, "channels:history"),
        ("users.conversations", {"types": "im"}, "im:read"),
    ):
        refused = await call(method, args)
        assert (refused.body["error"], refused.body["needed"]) == ("missing_scope", needed)
        assert "chat:write" not in refused.body["provided"].split(",")
    assert (await call("conversations.history", {"channel": IM})).body["ok"]
    slack.scopes.add("chat:write")
    assert (await call("chat.postMessage", {"channel": FAR, "text": "x"})).body["error"] == "not_in_channel"
    slack.scopes.add("chat:write.public")
    assert (await call("chat.postMessage", {"channel": FAR, "text": "x"})).body["ok"]
    assert broken_rules(slack) == []


async def test_unknown_names_and_tokens_in_arguments(slack: SlackServer, call: Client) -> None:
    assert (await call("chat.telepathy", {})).body["error"] == "unknown_method"
    assert (await call("chat.postMessage", {"channel": GENERAL, "text": "x", "client_msg_id": "7"})).body["ok"]
    assert broken_rules(slack) == [Rule.UNKNOWN_METHOD, Rule.UNKNOWN_ARGUMENT]
    await call("chat.postMessage", {"channel": GENERAL, "text": f"my token is {slack.bot_token}"})
    slack.ledger.tolerated.clear()
    assert Rule.TOKEN_LEAK in {one.rule for one in slack.violations}
    slack.tolerate(*Rule)


async def test_rate_limits(slack: SlackServer, call: Client) -> None:
    slack.limits = RateLimits(per_minute={"1": 1, "2": 2, "3": 3, "4": 4, "special": 100})
    assert (await call("chat.postMessage", {"channel": GENERAL, "text": "1"})).body["ok"]
    refused = await call("chat.postMessage", {"channel": GENERAL, "text": "2"})
    assert (refused.status, refused.body, refused.retry_after) == (429, {"ok": False, "error": "ratelimited"}, "1")
    assert broken_rules(slack) == []
    assert (await call("chat.postMessage", {"channel": IM, "text": "2"})).body["ok"]
    assert (await call("chat.postMessage", {"channel": GENERAL, "text": "2"})).status == 429
    assert broken_rules(slack) == [Rule.EARLY]
    slack.advance(1)
    assert (await call("chat.postMessage", {"channel": GENERAL, "text": "2"})).body["ok"]
    answers = [await call("users.list", {}) for _ in range(3)]
    assert [one.status for one in answers] == [200, 200, 429]
    assert int(answers[2].retry_after or 0) > 50


# Messages


async def test_metadata_is_shown_only_when_asked_for(slack: SlackServer, call: Client) -> None:
    meta = {"event_type": "hark", "event_payload": {"n": 7}}
    await call("chat.postMessage", {"channel": GENERAL, "text": "mine", "metadata": meta})
    plain = (await call("conversations.history", {"channel": GENERAL})).body["messages"][0]
    asked = (await call("conversations.history", {"channel": GENERAL, "include_all_metadata": True})).body["messages"]
    assert ("metadata" in plain, asked[0]["metadata"]) == (False, meta)
    assert "metadata" not in slack.events_of("message")[-1]
    await call("chat.update", {"channel": GENERAL, "ts": MINE, "text": "kept"})
    assert slack.kept[GENERAL][MINE]["metadata"] == meta
    await call("chat.update", {"channel": GENERAL, "ts": MINE, "text": "gone", "metadata": {}})
    assert not slack.kept[GENERAL][MINE]["metadata"]


async def test_an_edit_keeps_blocks_that_it_does_not_name(slack: SlackServer, call: Client) -> None:
    blocks = [RICH]
    await call("chat.postMessage", {"channel": GENERAL, "text": "old", "blocks": blocks})
    await call("chat.update", {"channel": GENERAL, "ts": MINE, "text": "new"})
    assert slack.kept[GENERAL][MINE]["blocks"][0]["elements"] == RICH["elements"]
    await call("chat.update", {"channel": GENERAL, "ts": MINE, "text": "new", "blocks": []})
    assert slack.kept[GENERAL][MINE]["blocks"] == []
    slack.archive(GENERAL)
    refused = await call("chat.update", {"channel": GENERAL, "ts": MINE, "text": "late"})
    assert refused.body["error"] == "is_inactive"


async def test_own_messages_come_back(slack: SlackServer, call: Client) -> None:
    sent = "a & b < c https://example.com/x"
    await call("chat.postMessage", {"channel": GENERAL, "text": sent, "thread_ts": HERS})
    event = slack.events_of("message")[-1]
    assert (event["bot_id"], event["app_id"], event["user"]) == ("B0HARKBOT1", "A0HARKAPP1", BOT)
    assert event["text"] == "a &amp; b &lt; c <https://example.com/x>"
    assert (event["thread_ts"], event["parent_user_id"]) == (HERS, ALICE.id)
    assert slack.texts(GENERAL, HERS) == [sent]


async def test_pings_and_previews_are_seen(slack: SlackServer, call: Client) -> None:
    quiet = {"channel": GENERAL, "unfurl_links": False, "unfurl_media": False}
    rich = {"type": "rich_text_section", "elements": [{"type": "broadcast", "range": "everyone"}]}
    for args, pings, fetched in (
        ({**quiet, "text": "&lt;!channel&gt; https://example.com"}, set(), ()),
        ({**quiet, "text": f"<!here> <@{BOB.id}> <!subteam^S0OPS>"}, {"here", BOB.id, "S0OPS"}, ()),
        ({**quiet, "text": "x", "blocks": [{"type": "rich_text", "elements": [rich]}]}, {"everyone"}, ()),
        ({"channel": GENERAL, "text": "see https://example.com/a"}, set(), ("https://example.com/a",)),
        ({**quiet, "unfurl_links": True, "text": "<https://x.org|x>"}, set(), ("https://x.org",)),
    ):
        assert (await call("chat.postMessage", args)).body["ok"]
        assert (slack.sent[-1].pings, slack.sent[-1].fetched) == (pings, fetched), args
    slack.ledger.tolerated.clear()
    slack.allow_repeat("x")
    assert {one.rule for one in slack.violations} == {Rule.MASS_PING}
    slack.tolerate(*Rule)


async def test_what_people_cannot_do(slack: SlackServer) -> None:
    for text in ("/status", ""):
        with pytest.raises(ValueError, match="Slack's client sends"):
            slack.say(GENERAL, ALICE, text)
    with pytest.raises(ValueError, match="cannot write"):
        slack.say(GENERAL, BOB, "x")
    with pytest.raises(ValueError, match="in threads"):
        slack.slash(GENERAL, ALICE, "x", thread_ts=HERS)
    with pytest.raises(ValueError, match="not a valid command"):
        slack.slash(GENERAL, ALICE, "x", command="/other")


async def test_response_urls(slack: SlackServer, call: Client) -> None:
    async def post(envelope: Json, body: Json) -> tuple[int, str]:
        async with call.session.post(envelope["response_url"], json=body) as answer:
            return answer.status, await answer.text()

    command = slack.slash(GENERAL, ALICE, "status").payload
    assert command["channel_name"] == "general"
    assert await post(command, {"text": "only you"}) == (200, "ok")
    assert (slack.sent[-1].only_to, slack.texts(GENERAL)) == (ALICE.id, ["only you"])
    for number in range(4):
        assert (await post(command, {"text": str(number), "response_type": "in_channel"}))[0] == 200
    assert await post(command, {"text": "sixth"}) == (404, "used_url")
    other = slack.slash(GENERAL, ALICE, "status").payload
    slack.advance(30 * 60 + 1)
    assert await post(other, {"text": "late"}) == (404, "expired_url")
    assert broken_rules(slack) == [Rule.RESPONSE_URL] * 2
    assert (await post({"response_url": f"{slack.origin}/commands/x"}, {"text": "x"}))[0] == 404
    press = {"type": "button", "text": {"type": "plain_text", "text": "Yes"}, "action_id": "yes", "value": "1"}
    asked = slack.slash(GENERAL, ALICE, "approve").payload
    assert (await post(asked, {"text": "?", "blocks": [{"type": "actions", "elements": [press]}]}))[0] == 200
    ts = slack.ephemeral[-1]["ts"]
    click = slack.click(GENERAL, ts, "yes").payload
    assert (click["container"]["is_ephemeral"], "message" in click, click["actions"][0]["value"]) == (True, False, "1")
    assert (await post(click, {"text": "done", "replace_original": True}))[0] == 200
    assert [one["text"] for one in slack.ephemeral if one["ts"] == ts] == ["done"]


async def test_what_is_checked_at_the_end() -> None:
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        call = Client(slack, session)
        slack.dm(ALICE, "hello")
        for _ in range(2):
            await call("chat.postMessage", {"channel": IM, "text": "twice"})
        slack.fail_next("chat.update", "update_failed")
        with pytest.raises(AssertionError, match="2 times 'twice'"):
            slack.check()
        slack.allow_repeat("twice")
        assert [one.rule for one in slack.violations] == [Rule.FAULT_NOT_FIRED]
        with pytest.raises(ValueError, match="no method"):
            slack.fail_next("chat.telepathy")
        await call("chat.update", {"channel": IM, "ts": HERS, "text": "x"})
        slack.check()
