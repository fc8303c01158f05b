"""The Slack stand-in driven by slack_sdk and slack_bolt, so that it is not a server only for raw calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond, AsyncSay
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from tests.standins.slack_delivery import State
from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT

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
    await web_client.chat_delete(channel=room.id, ts=ts)
    assert [one["text"] for one in slack.thread(room, said["ts"])] == ["hello"]
    opened = await web_client.conversations_open(users=ALICE.id)
    assert opened["channel"]["id"] == slack.im(ALICE.id).id
    listed = await web_client.users_conversations(types="public_channel,im", limit=1)
    assert [one["id"] async for page in listed for one in page["channels"]] == [room.id, slack.im(ALICE.id).id]
    assert (await web_client.users_info(user=BOB.id))["user"]["name"] == "bob"
