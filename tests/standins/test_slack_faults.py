"""Ordered faults of the Slack stand-in: errors, broken connections, held calls, silence, and what they leave behind."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.standins.slack_ledger import Rule
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, Person
from tests.standins.test_slack_rules import Client

EVE = Person("U0EVE00001", "eve", "Eve Extern", team="T0OTHER001")


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        server.channel("general", ALICE)
        yield server


@pytest.fixture
async def call(slack: SlackServer) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(slack, session)


HELLO = {"channel": "C0GENERAL0", "text": "hello"}


async def test_errors_and_pages(slack: SlackServer, call: Client) -> None:
    slack.fail_next("chat.postMessage", "msg_too_long", times=2)
    slack.fail_next("chat.postMessage", "fatal_error", status=500, channel="C0OTHER000")
    for _ in range(2):
        assert (await call("chat.postMessage", HELLO)).body == {"ok": False, "error": "msg_too_long"}
    assert (await call("chat.postMessage", HELLO)).body["ok"]
    assert len(slack.violations) == 1
    headers = {"Authorization": f"Bearer {slack.bot_token}"}
    async with call.session.post(
        f"{slack.base_url}chat.postMessage", data={"channel": "C0OTHER000", "text": "x"}, headers=headers
    ) as answer:
        assert (answer.status, answer.content_type) == (500, "text/html")
    assert slack.texts() == ["hello"]


async def test_retry_after_must_be_kept(slack: SlackServer, call: Client) -> None:
    slack.tolerate(Rule.EARLY)
    slack.fail_next("chat.postMessage", "ratelimited", retry_after=30)
    assert (await call("chat.postMessage", HELLO)).retry_after == "30"
    slack.advance(10)
    early = await call("chat.postMessage", HELLO)
    assert early.status == 429
    assert int(early.retry_after or 0) <= 20
    slack.advance(20)
    assert (await call("chat.postMessage", HELLO)).body["ok"]
    assert [one.rule for one in slack.ledger.violations] == [Rule.EARLY]


async def test_outcome_unknown(slack: SlackServer, call: Client) -> None:
    slack.fail_next("chat.postMessage", drop=True)
    slack.fail_next("chat.postMessage", drop=True, after_apply=True)
    for said in (0, 1):
        with pytest.raises(aiohttp.ClientError):
            await call("chat.postMessage", HELLO)
        assert len(slack.texts()) == said
    refused = {**HELLO, "channel": "C0NOWHERE0"}
    slack.fail_next("chat.update", drop=True, after_apply=True)
    assert (await call("chat.update", {**refused, "ts": "1.1"})).body["error"] == "channel_not_found"
    assert [one.rule for one in slack.violations] == [Rule.FAULT_NOT_FIRED]  # a refused call has no unknown outcome
    with pytest.raises(aiohttp.ClientError):
        await call("chat.update", {**HELLO, "ts": slack.sent[0].ts, "text": "changed"})
    assert [one["text"] for one in slack.messages("C0GENERAL0")] == ["changed"]


async def test_files_that_fail(slack: SlackServer, call: Client) -> None:
    slack.tolerate(Rule.BAD_VALUE)
    named = (await call("files.getUploadURLExternal", {"filename": "a.txt", "length": 4})).body
    slack.fail_next("upload", status=500)
    for data, status in ((b"four", 500), (b"five!", 400), (b"four", 200)):
        async with call.session.post(named["upload_url"], data=data) as answer:
            assert answer.status == status
    done = {"files": [{"id": named["file_id"], "title": "Four"}], "channel_id": "C0GENERAL0"}
    assert (await call("files.completeUploadExternal", done)).body["files"][0]["title"] == "Four"
    assert (await call("files.completeUploadExternal", done)).body["error"] == "file_not_found"
    url = slack.files[named["file_id"]].body["url_private"]
    slack.fail_next("download", status=502)
    for status in (502, 200):
        async with call.session.get(url, headers={"Authorization": f"Bearer {slack.bot_token}"}) as answer:
            assert answer.status == status


async def test_status_and_escapes(slack: SlackServer, call: Client) -> None:
    asked = slack.mention("C0GENERAL0", ALICE, "help")
    status = {"channel_id": "C0GENERAL0", "thread_ts": asked["ts"], "status": "is thinking..."}
    await call("assistant.threads.setStatus", status)
    assert [one.rule for one in slack.violations] == [Rule.LATE_STATUS]
    slack.say("C0GENERAL0", ALICE, "and?", thread_ts=asked["ts"])
    assert [one.rule for one in slack.violations] == [Rule.LATE_STATUS]
    await call("chat.postMessage", {**HELLO, "thread_ts": asked["ts"], "text": "1 &lt; 2 &amp; <https://x.org|x> > y"})
    assert slack.violations == []
    for text in ("a & b", "a < b", "<b>", "<@ nobody"):
        await call("chat.postMessage", {**HELLO, "text": text})
    assert [one.rule for one in slack.violations] == [Rule.UNESCAPED] * 4
    slack.tolerate(Rule.UNESCAPED)


async def test_events_are_late_and_out_of_order(slack: SlackServer, call: Client) -> None:
    url = (await call("apps.connections.open", {}, token=slack.app_token)).body["url"]
    socket = await call.session.ws_connect(url)
    assert (await socket.receive_json())["type"] == "hello"
    slack.pause()
    slack.mention("C0GENERAL0", ALICE, "help")
    slack.resume(backwards=True)
    slack.repeat(slack.outbox[0].payload)
    seen = [await socket.receive_json() for _ in range(3)]
    assert [one["payload"]["event"]["type"] for one in seen] == ["app_mention", "message", "message"]
    assert seen[1]["payload"]["event_id"] == seen[2]["payload"]["event_id"]
    for one in seen:
        await socket.send_json({"envelope_id": one["envelope_id"]})
    await slack.wait_acknowledged()
    await socket.close()
