"""How the Slack stand-in delivers: connections, acknowledgements, retries and signed requests, all raw."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from tests.standins.slack_corpus import malformed, readable
from tests.standins.slack_delivery import State
from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@dataclass
class Client:
    """Raw connections of Socket Mode."""

    slack: SlackServer
    session: aiohttp.ClientSession
    open: list[aiohttp.ClientWebSocketResponse] = field(default_factory=list)

    async def url(self) -> str:
        headers = {"Authorization": f"Bearer {self.slack.app_token}"}
        async with self.session.post(f"{self.slack.base_url}apps.connections.open", headers=headers) as answer:
            return str((await answer.json())["url"])

    async def connect(self, *, greeted: bool = True) -> aiohttp.ClientWebSocketResponse:
        socket = await self.session.ws_connect(await self.url(), autoping=False)
        self.open.append(socket)
        if greeted:
            assert (await received(socket))["type"] == "hello"
        return socket


@pytest.fixture
async def client(slack: SlackServer) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        made = Client(slack, session)
        yield made
        for socket in made.open:
            await socket.close()


async def received(socket: aiohttp.ClientWebSocketResponse) -> Json:
    """The next envelope."""
    body: Json = await socket.receive_json(timeout=5)
    return body


async def acknowledge(socket: aiohttp.ClientWebSocketResponse, envelope: Json, **more: object) -> None:
    await socket.send_json({"envelope_id": envelope["envelope_id"], **more})


async def test_a_ticket_works_once(slack: SlackServer, client: Client) -> None:
    url = await client.url()
    socket = await client.session.ws_connect(url)
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await client.session.ws_connect(url)
    await socket.close()


async def test_a_mention_comes_twice_but_not_in_direct_conversations(slack: SlackServer) -> None:
    room = slack.channel("general", ALICE, BOB)
    said = slack.mention(room, BOB, "help")
    message, mention = (one.payload for one in slack.outbox)
    assert (message["event"]["type"], mention["event"]["type"]) == ("message", "app_mention")
    assert message["event"]["ts"] == mention["event"]["ts"] == said["ts"]
    assert message["event_id"] != mention["event_id"]
    assert "channel_type" not in mention["event"]
    slack.dm(ALICE, f"<@{BOT}> help")
    slack.say(slack.group_dm(ALICE, BOB), ALICE, f"<@{BOT}> help")
    kinds = [one.payload["event"]["type"] for one in slack.outbox[2:]]
    assert kinds == ["message", "message", "app_mention"]
    plain = slack.say(room, ALICE, "hello")
    slack.edit(room, plain, f"hello <@{BOT}>")
    assert [one["type"] for one in slack.events_of("app_mention")] == ["app_mention"] * 3


async def test_only_what_is_subscribed_granted_and_seen(slack: SlackServer) -> None:
    room, far = slack.channel("general", ALICE), slack.channel("far", ALICE, with_app=False)
    slack.mention(far, ALICE, "not here")
    assert slack.outbox == []
    slack.events.discard("message.channels")
    slack.mention(room, ALICE, "here")
    assert [one.name for one in slack.outbox] == ["app_mention"]
    slack.scopes.discard("app_mentions:read")
    slack.mention(room, ALICE, "again")
    assert len(slack.outbox) == 1


async def test_an_event_that_is_not_acknowledged_comes_again(slack: SlackServer, client: Client) -> None:
    socket = await client.connect()
    slack.dm(ALICE, "hello")
    seen = [await received(socket)]
    for seconds in (3, 3 + 60, 3 + 300):  # three without an answer, then the pause
        slack.advance(seconds)
        seen.append(await received(socket))
    slack.advance(3)
    assert [one["retry_attempt"] for one in seen] == [0, 1, 2, 3]
    assert {one["retry_reason"] for one in seen[1:]} == {"timeout"}
    assert len({one["payload"]["event_id"] for one in seen}) == 1
    assert len({one["envelope_id"] for one in seen}) == 4
    assert slack.outbox[0].state is State.LOST


async def test_what_a_connection_took_goes_to_another_one(slack: SlackServer, client: Client) -> None:
    first, second = await client.connect(), await client.connect()
    slack.dm(ALICE, "one")
    slack.dm(ALICE, "two")
    taken, other = await received(first), await received(second)
    await acknowledge(second, other)
    await first.close()
    again = await received(second)
    assert again["payload"]["event_id"] == taken["payload"]["event_id"]
    assert again["retry_attempt"] == 1
    await second.close()
    await slack.wait_for(lambda: not slack.sockets.connections, "no connection")
    third = await client.connect()
    last = await received(third)
    assert (last["retry_attempt"], last["payload"]["event_id"]) == (2, taken["payload"]["event_id"])
    await acknowledge(third, last)
    await slack.wait_acknowledged()


async def test_what_happens_while_the_app_is_away(slack: SlackServer, client: Client) -> None:
    slack.dm(ALICE, "one")
    slack.advance(600)
    assert slack.outbox[0].state is State.LOST
    slack.keep_while_away = True
    slack.dm(ALICE, "two")
    assert slack.slash(text="status").state is State.LOST
    socket = await client.connect()
    envelope = await received(socket)
    assert (envelope["payload"]["event"]["text"], envelope["retry_attempt"]) == ("two", 0)
    assert [one["text"] for one in slack.messages(slack.im(ALICE.id))] == ["one", "two"]
    await acknowledge(socket, envelope)
    await slack.wait_acknowledged()


async def test_wrong_acknowledgements(slack: SlackServer, client: Client) -> None:
    slack.tolerate(Rule.BAD_ACK)
    first, second = await client.connect(), await client.connect()
    slack.dm(ALICE, "hello")
    envelope = await received(second)
    await acknowledge(first, envelope)  # on another connection: no violation, no acknowledgement
    for wrong in ("{", "[]", '{"envelope_id": "none"}'):
        await first.send_str(wrong)
    await acknowledge(second, envelope, payload={"text": "x"})
    await acknowledge(second, envelope)
    await slack.wait_for(lambda: len(slack.ledger.violations) == 5, "five complaints")
    assert {one.rule for one in slack.ledger.violations} == {Rule.BAD_ACK}
    assert slack.outbox[0].state is State.ACKNOWLEDGED


async def test_commands_and_clicks_are_answered_in_time_or_lost(slack: SlackServer, client: Client) -> None:
    slack.tolerate(Rule.UNANSWERED)
    socket = await client.connect()
    slack.slash(text="status")
    envelope = await received(socket)
    assert (envelope["type"], envelope["accepts_response_payload"]) == ("slash_commands", True)
    assert "retry_attempt" not in envelope
    assert "thread_ts" not in envelope["payload"]
    slack.advance(3)
    assert [one.rule for one in slack.ledger.violations] == [Rule.UNANSWERED]
    await acknowledge(socket, envelope, payload={"text": "too late"})
    slack.slash(text="again")
    await acknowledge(socket, await received(socket), payload={"text": "in time", "response_type": "in_channel"})
    await slack.wait_text("in time")
    assert slack.texts() == ["in time"]


@asynccontextmanager
async def listening(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A web server of the app; yields its url."""
    app = web.Application()
    app.router.add_post("/slack", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack"
    finally:
        await runner.cleanup()


async def test_signed_requests_and_their_retries(slack: SlackServer) -> None:
    seen: list[tuple[str, Json]] = []
    statuses = [500, 302, 200]

    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        stamp = request.headers["X-Slack-Request-Timestamp"]
        base = b"v0:" + stamp.encode() + b":" + body
        expected = hmac.new(slack.signing_secret.encode(), base, hashlib.sha256).hexdigest()
        assert request.headers["X-Slack-Signature"] == f"v0={expected}"
        if b"url_verification" in body:
            return web.Response(text=json.loads(body)["challenge"])
        number = request.headers.get("X-Slack-Retry-Num", "0")
        seen.append((number + request.headers.get("X-Slack-Retry-Reason", ""), json.loads(body)))
        return web.Response(status=statuses.pop(0))

    async with listening(handle) as url:
        await slack.use_url(url)
        slack.dm(ALICE, "hello")
        await slack.wait_for(lambda: slack.outbox[0].attempt == 2, "the second failure")
        slack.advance(60)
        await slack.wait_acknowledged()
        assert [retry for retry, _ in seen] == ["0", "1http_error", "2http_error"]
        assert len({body["event_id"] for _, body in seen}) == 1


async def test_every_payload_of_the_corpus_is_delivered(slack: SlackServer, client: Client) -> None:
    rows = readable() | malformed()
    socket = await client.connect()
    for kind, payload in rows.values():
        slack.push(payload, kind)
        envelope = await received(socket)
        assert envelope["payload"] == payload
        await acknowledge(socket, envelope)
    await slack.wait_acknowledged()
    readable_ones = readable()
    assert not set(readable_ones) & set(malformed())
    bad = [payload for _, payload in malformed().values()]
    assert not any(payload in bad for _, payload in readable_ones.values())
