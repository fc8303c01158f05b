"""The Slack stand-in driven by slack_sdk and slack_bolt, so that it is not a server only for raw calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltRequest, AsyncRespond, AsyncSay
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from tests.standins.slack_delivery import State
from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT
from tests.watch import PATIENCE

BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Allow"}, "action_id": "allow", "value": "7f3"}


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
async def web_client(slack: SlackServer) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(slack.bot_token, base_url=slack.base_url, session=session, retry_handlers=[])


@asynccontextmanager
async def socket_mode(slack: SlackServer, app: AsyncApp) -> AsyncIterator[SocketModeClient]:
    """A bolt app that is connected."""
    handler = AsyncSocketModeHandler(app, slack.app_token)
    await handler.connect_async()
    await slack.wait_connected()
    try:
        yield handler.client
    finally:
        await handler.close_async()


async def taken(queue: "asyncio.Queue[Json]", count: int) -> list[Json]:
    """What listeners saw: they run on after the acknowledgement."""
    async with asyncio.timeout(PATIENCE):
        return [await queue.get() for _ in range(count)]


async def test_web_api(slack: SlackServer, web_client: AsyncWebClient) -> None:
    room = slack.channel("general", ALICE, BOB)
    said = slack.say(room, ALICE, "hello")
    assert (await web_client.auth_test())["user_id"] == BOT
    posted = await web_client.chat_postMessage(
        channel=room.id,
        text="answer",
        thread_ts=said["ts"],
        blocks=[{"type": "markdown", "text": "**answer**"}],
        metadata={"event_type": "hark", "event_payload": {"n": 7}},
        unfurl_links=False,
        unfurl_media=False,
    )
    ts = posted["ts"]
    assert slack.texts(room) == ["**answer**"]
    history = await web_client.conversations_history(channel=room.id, limit=10)
    assert [one["text"] for one in history["messages"]] == ["hello"]
    assert history["messages"][0]["reply_count"] == 1
    thread = await web_client.conversations_replies(channel=room.id, ts=said["ts"], include_all_metadata=True)
    assert [one["text"] for one in thread["messages"]] == ["hello", "answer"]
    assert thread["messages"][1]["metadata"]["event_payload"] == {"n": 7}
    await web_client.chat_update(channel=room.id, ts=ts, text="changed", blocks=[])
    await web_client.reactions_add(channel=room.id, timestamp=said["ts"], name="eyes")
    with pytest.raises(SlackApiError, match="already_reacted"):
        await web_client.reactions_add(channel=room.id, timestamp=said["ts"], name="eyes")
    await web_client.reactions_remove(channel=room.id, timestamp=said["ts"], name="eyes")
    await web_client.assistant_threads_setStatus(channel_id=room.id, thread_ts=said["ts"], status="is thinking...")
    assert slack.statuses == {(room.id, said["ts"]): "is thinking..."}
    await web_client.assistant_threads_setStatus(channel_id=room.id, thread_ts=said["ts"], status="")
    await web_client.chat_delete(channel=room.id, ts=ts)
    assert [one["text"] for one in slack.thread(room, said["ts"])] == ["hello"]
    opened = await web_client.conversations_open(users=ALICE.id)
    assert opened["channel"]["id"] == slack.im(ALICE.id).id
    listed = await web_client.users_conversations(types="public_channel,im", limit=1)
    assert [one["id"] async for page in listed for one in page["channels"]] == [room.id, slack.im(ALICE.id).id]
    assert (await web_client.users_info(user=BOB.id))["user"]["name"] == "bob"


async def test_socket_mode(slack: SlackServer, web_client: AsyncWebClient) -> None:
    app = AsyncApp(client=web_client, ignoring_self_events_enabled=False)
    queue: asyncio.Queue[Json] = asyncio.Queue()

    @app.event("message")
    async def on_message(event: Json, say: AsyncSay) -> None:
        queue.put_nowait(event)
        if "bot_id" not in event:
            await say(f"you said {event['text']}")

    @app.event("app_mention")
    async def on_mention(event: Json) -> None:
        queue.put_nowait(event)

    room = slack.channel("general", ALICE)
    async with socket_mode(slack, app):
        slack.dm(ALICE, "hello")
        await slack.wait_text("you said hello")
        slack.mention(room, ALICE, "help")
        await slack.wait_text("you said")
        await slack.wait_acknowledged()
        await slack.wait_for(lambda: len(slack.texts()) == 2, "both answers")
        await slack.wait_acknowledged()
        seen = await taken(queue, 5)
    kinds = [(one["type"], one.get("channel_type"), "bot_id" in one) for one in seen]
    assert sorted(kinds, key=str) == sorted(
        [
            ("message", "im", False),
            ("message", "im", True),
            ("message", "channel", False),
            ("message", "channel", True),
            ("app_mention", None, False),
        ],
        key=str,
    )
    twins = [one["ts"] for one in seen if f"<@{BOT}> help" in one["text"] and "bot_id" not in one]
    assert len(twins) == 2
    assert len(set(twins)) == 1


async def test_commands_and_clicks(slack: SlackServer, web_client: AsyncWebClient) -> None:
    app = AsyncApp(client=web_client, signing_secret=slack.signing_secret)

    @app.command("/hark")
    async def on_command(ack: AsyncAck, respond: AsyncRespond, command: Json) -> None:
        await ack("at once")
        await respond(text=f"later {command['text']}", response_type="in_channel")

    @app.action("allow")
    async def on_click(ack: AsyncAck, respond: AsyncRespond, action: Json) -> None:
        await ack()
        await respond(text=f"decided {action['value']}", replace_original=True)

    im = slack.im(ALICE.id)
    async with socket_mode(slack, app):
        slack.slash(text="status")
        await slack.wait_text("later status")
        await slack.wait_text("at once")
        asked = await web_client.chat_postMessage(
            channel=im.id, text="Sure?", blocks=[{"type": "actions", "elements": [BUTTON]}]
        )
        slack.click(im, asked["ts"], "allow")
        await slack.wait_text("decided 7f3")
        await slack.wait_acknowledged()
    assert slack.kept[im.id][asked["ts"]]["text"] == "decided 7f3"
    assert [one.only_to for one in slack.sent if one.method == "ack"] == [ALICE.id]


async def test_refresh_is_planned_and_a_cut_is_not(slack: SlackServer, web_client: AsyncWebClient) -> None:
    app = AsyncApp(client=web_client, signing_secret=slack.signing_secret)
    queue: asyncio.Queue[Json] = asyncio.Queue()

    @app.event("message")
    async def on_message(event: Json) -> None:
        queue.put_nowait(event)

    async with socket_mode(slack, app) as client:
        await slack.sockets.refresh()
        assert slack.sockets.made == 2
        slack.dm(ALICE, "after the refresh")
        await slack.wait_acknowledged()
        await client.disconnect()
        await slack.wait_for(lambda: not slack.sockets.open, "no connection")
        slack.dm(ALICE, "while away")
        assert slack.outbox[-1].state is State.WAITING
        await client.connect_to_new_endpoint(force=True)
        await slack.wait_connected()
        slack.advance(60)
        await slack.wait_acknowledged()
    assert [one["text"] for one in await taken(queue, 2)] == ["after the refresh", "while away"]
    assert slack.outbox[-1].attempt == 2


async def test_an_acknowledgement_that_is_withheld(slack: SlackServer, web_client: AsyncWebClient) -> None:
    event_ids: list[str] = []
    refused = asyncio.Event()

    async def accept(req: AsyncBoltRequest, resp: BoltResponse, next: Callable[[], Awaitable[None]]) -> BoltResponse:
        event_ids.append(req.body["event_id"])
        refused.set()
        return BoltResponse(status=200 if len(event_ids) > 1 else 500)

    app = AsyncApp(client=web_client, before_authorize=accept)
    async with socket_mode(slack, app):
        slack.dm(ALICE, "hello")
        await refused.wait()
        assert slack.outbox[0].state is State.SENT
        slack.advance(3)
        await slack.wait_acknowledged()
    assert (slack.outbox[0].attempt, len(event_ids), len(set(event_ids))) == (1, 2, 1)


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


async def test_http_mode(slack: SlackServer, web_client: AsyncWebClient) -> None:
    app = AsyncApp(client=web_client, signing_secret=slack.signing_secret)
    queue: asyncio.Queue[Json] = asyncio.Queue()

    @app.event("message")
    async def on_message(event: Json) -> None:
        queue.put_nowait(event)

    @app.command("/hark")
    async def on_command(ack: AsyncAck, command: Json) -> None:
        await ack(f"got {command['text']}")

    async def handle(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    async with listening(handle) as url:
        requests = await slack.use_url(url)
        slack.dm(ALICE, "over http")
        slack.slash(text="a & b")
        await slack.wait_acknowledged()
        await slack.wait_text("got a &amp; b")
        status, _, _ = await requests.post(b"{}", "application/json", secret="wrong")
        assert status == 401
        status, _, _ = await requests.post(b"{}", "application/json", age=600)
        assert status == 401
        (seen,) = await taken(queue, 1)
        assert seen["text"] == "over http"


async def test_files(slack: SlackServer, web_client: AsyncWebClient) -> None:
    room = slack.channel("general", ALICE)
    shared = slack.say(room, ALICE, "read this", files={"notes.txt": b"four"})["files"][0]
    assert web_client.session is not None
    url = shared["url_private_download"]
    async with web_client.session.get(url, headers={"Authorization": f"Bearer {slack.bot_token}"}) as answer:
        assert (answer.content_type, await answer.read()) == ("text/plain", b"four")
    slack.tolerate(Rule.PUBLIC_DOWNLOAD)
    async with web_client.session.get(url) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
    await web_client.files_upload_v2(
        channel=room.id, filename="plan.txt", content="the plan", initial_comment="here", thread_ts=None
    )
    last = slack.messages(room)[-1]
    assert (last["text"], last["files"][0]["name"], last["subtype"]) == ("here", "plan.txt", "file_share")
    assert slack.files[last["files"][0]["id"]].data == b"the plan"
    assert (await web_client.files_info(file=shared["id"]))["file"]["size"] == 4


async def test_streams(slack: SlackServer, web_client: AsyncWebClient) -> None:
    room = slack.channel("general", ALICE)
    asked = slack.mention(room, ALICE, "tell me")
    stream = await web_client.chat_stream(
        channel=room.id,
        thread_ts=asked["ts"],
        recipient_team_id="T0HARKTEAM",
        recipient_user_id=ALICE.id,
        buffer_size=1,
    )
    await stream.append(markdown_text="one ")
    await stream.append(markdown_text="two")
    reply = slack.thread(room, asked["ts"])[1]
    with pytest.raises(SlackApiError, match="streaming_state_conflict"):
        await web_client.chat_update(channel=room.id, ts=reply["ts"], text="too early")
    await stream.stop()
    assert slack.thread(room, asked["ts"])[1]["text"] == "one two"
    await web_client.chat_update(channel=room.id, ts=reply["ts"], text="whole")


async def test_errors_have_the_meaning_that_the_library_knows(slack: SlackServer, web_client: AsyncWebClient) -> None:
    im = slack.im(ALICE.id)
    slack.fail_next("chat.postMessage", "ratelimited", retry_after=7)
    with pytest.raises(SlackApiError) as limited:
        await web_client.chat_postMessage(channel=im.id, text="x")
    assert (limited.value.response.status_code, limited.value.response.headers["Retry-After"]) == (429, "7")
    slack.fail_next("auth.test", status=503)
    with pytest.raises(SlackApiError) as broken:
        await web_client.auth_test()
    assert broken.value.response.status_code == 503
    slack.fail_next("auth.test", drop=True)
    with pytest.raises(aiohttp.ClientError):
        await web_client.auth_test()
    slack.fail_next("conversations.open", "invalid_auth")
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await web_client.conversations_open(users=ALICE.id)
    held = slack.hold_next("users.info", after_apply=True)
    waiting = asyncio.create_task(web_client.users_info(user=ALICE.id))
    await held.reached.wait()
    held.release()
    assert (await waiting)["user"]["id"] == ALICE.id
