"""The fault proxy between a raw HTTP client and the Telegram stand-in: every fault happens on the wire."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.standins.proxy import FaultProxy
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.write("hello")
        yield server


def address(proxy: FaultProxy, telegram: TelegramServer, method: str) -> str:
    return f"http://127.0.0.1:{proxy.port}/bot{telegram.token}/{method}"


async def say(http: aiohttp.ClientSession, proxy: FaultProxy, telegram: TelegramServer, text: str) -> bool:
    url = address(proxy, telegram, "sendMessage")
    async with http.post(url, json={"chat_id": ALICE.id, "text": text}) as answer:
        return bool((await answer.json())["ok"])


@pytest.mark.parametrize("after", [0, 1, 120])
async def test_cut_request_is_not_carried_out(
    telegram: TelegramServer, http: aiohttp.ClientSession, after: int
) -> None:
    async with FaultProxy(telegram.port) as proxy:
        rule = proxy.cut_request(b"sendMessage", after=after, nth=2)
        assert await say(http, proxy, telegram, "first")
        with pytest.raises(aiohttp.ClientError):
            await say(http, proxy, telegram, "second")
        assert rule.reached.is_set()
        assert await say(http, proxy, telegram, "third")
        assert telegram.texts() == ["first", "third"]


@pytest.mark.parametrize("after", [0, 1, 300])
async def test_cut_answer_leaves_the_outcome_unknown(
    telegram: TelegramServer, http: aiohttp.ClientSession, after: int
) -> None:
    async with FaultProxy(telegram.port) as proxy:
        proxy.cut_answer(b"sendMessage", after=after)
        with pytest.raises(aiohttp.ClientError):
            await say(http, proxy, telegram, "carried out")
        assert telegram.texts() == ["carried out"]


async def test_fault_that_does_not_happen_fails_the_test(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    proxy = FaultProxy(telegram.port)

    async def converse() -> None:
        async with proxy:
            proxy.cut_request(b"sendMessage", nth=2)
            await say(http, proxy, telegram, "only one")

    with pytest.raises(AssertionError, match="faults that did not happen"):
        await converse()
