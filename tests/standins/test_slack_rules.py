"""The rules of the Slack stand-in, each broken by a raw HTTP call and kept by its counterpart.

The table is in slack_rows; rules that need more than one call follow below. No Slack library takes part.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from tests.standins.slack_faults import RateLimits
from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_rows import FAR, GENERAL, HERS, IM, JOIN, MINE, NOW, OLD, REPLY, ROWS, SECRET, STREAM, Row
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT, HARK


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
    "bots.info",
    "chat.getPermalink",
    "conversations.info",
    "conversations.list",
    "conversations.members",
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


async def prepare(slack: SlackServer, call: Client) -> str:
    """What the rows expect to stand there; returns the ts of a message that streams."""
    assert (await call("chat.postMessage", {"channel": GENERAL, "text": "mine"})).body["ts"] == MINE
    reply = await call("chat.postMessage", {"channel": GENERAL, "text": "reply", "thread_ts": MINE})
    assert reply.body["ts"] == REPLY
    slack.join(GENERAL, BOB)
    slack.rooms[GENERAL].members.remove(BOB.id)
    assert slack.messages[GENERAL][JOIN]["subtype"] == "channel_join"
    assert (await call("reactions.add", {"channel": GENERAL, "timestamp": HERS, "name": "eyes"})).body["ok"]
    slack.files.clear()
    for number in (1, 2):
        file = slack.new_file(BOT, "a.txt", 1)
        slack.files[f"F0FILE0000{number}"] = file
        file.data = b"x" if number == 2 else None
    stream = await call("chat.startStream", STREAM)
    assert broken_rules(slack) == []
    return str(stream.body["ts"])


def broken_rules(slack: SlackServer) -> list[Rule]:
    return [violation.rule for violation in slack.ledger.violations]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method}: {row.name}")
async def test_rule(row: Row, slack: SlackServer, call: Client) -> None:
    stream = await prepare(slack, call)
    said = len(slack.sent)
    broken = await call(row.method, row.broken)
    assert (broken.status, broken.body["ok"], broken.body["error"]) == (200, False, row.error), broken.body
    assert broken_rules(slack) == ([row.rule] if row.rule else [])
    assert len(slack.sent) == said
    slack.ledger.violations.clear()
    args = {name: stream if value == "stream" else value for name, value in row.kept.items()}
    kept = await call(row.method, args)
    assert (kept.status, kept.body["ok"]) == (200, True), kept.body
    assert broken_rules(slack) == []


def test_every_row_has_its_own_name() -> None:
    names = [(row.method, row.name) for row in ROWS]
    assert len(names) == len(set(names))
