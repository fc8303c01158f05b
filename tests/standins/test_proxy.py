"""The fault proxy between a raw HTTP client and the Telegram stand-in: every fault happens on the wire."""

import asyncio
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


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def address(proxy: FaultProxy, telegram: TelegramServer, method: str) -> str:
    return f"http://127.0.0.1:{proxy.port}/bot{telegram.token}/{method}"


async def say(http: aiohttp.ClientSession, proxy: FaultProxy, telegram: TelegramServer, text: str) -> bool:
    url = address(proxy, telegram, "sendMessage")
    async with http.post(url, json={"chat_id": ALICE.id, "text": text}) as answer:
        return bool((await answer.json())["ok"])


async def test_forwards_many_requests_on_one_connection(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    async with FaultProxy(telegram.port) as proxy:
        for number in range(3):
            assert await say(http, proxy, telegram, f"{number}")
        long = "ä" * 4096
        assert await say(http, proxy, telegram, long)
        assert telegram.texts() == ["0", "1", "2", long]
        assert len(proxy.requests) == 4
        assert proxy.connections == 1


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


async def test_rule_waits_for_the_request_that_contains_its_bytes(
    telegram: TelegramServer, http: aiohttp.ClientSession
) -> None:
    async with FaultProxy(telegram.port) as proxy:
        proxy.cut_answer(b'"text": "poison"')
        async with http.get(address(proxy, telegram, "getMe")) as answer:
            assert answer.status == 200
        assert await say(http, proxy, telegram, "harmless")
        with pytest.raises(aiohttp.ClientError):
            await say(http, proxy, telegram, "poison")


async def test_client_that_leaves_closes_the_upstream_connection(telegram: TelegramServer) -> None:
    after = telegram.last_update_id + 1
    async with FaultProxy(telegram.port) as proxy:
        async with aiohttp.ClientSession() as gone:
            poll = asyncio.create_task(
                gone.post(address(proxy, telegram, "getUpdates"), json={"offset": after, "timeout": 30})
            )
            await telegram.wait_for(lambda: telegram.poll is not None, "a poll")
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)
        async with aiohttp.ClientSession() as http:
            url = address(proxy, telegram, "getUpdates")
            second = asyncio.create_task(http.post(url, json={"offset": after, "timeout": 30}))
            await telegram.wait_for(lambda: len(telegram.polls) == 2, "another poll")
            telegram.write("for the second poll")
            async with await second as answer:
                assert len((await answer.json())["result"]) == 1
        assert proxy.connections == 2


async def test_server_that_is_down_closes_the_client_connection(http: aiohttp.ClientSession) -> None:
    async with TelegramServer() as telegram, FaultProxy(telegram.port) as proxy:
        await telegram.stop()
        with pytest.raises(aiohttp.ClientError):
            await say(http, proxy, telegram, "nobody there")


async def test_fault_that_does_not_happen_fails_the_test(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    proxy = FaultProxy(telegram.port)

    async def converse() -> None:
        async with proxy:
            proxy.cut_request(b"sendMessage", nth=2)
            await say(http, proxy, telegram, "only one")

    with pytest.raises(AssertionError, match="faults that did not happen"):
        await converse()
