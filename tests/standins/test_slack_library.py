"""The Slack stand-in driven by slack_sdk and slack_bolt, so that it is not a server only for raw calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
async def web_client(slack: SlackServer) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(slack.bot_token, base_url=slack.base_url, session=session, retry_handlers=[])


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
