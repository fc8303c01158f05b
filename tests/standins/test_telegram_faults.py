"""Faults that a test orders from the Telegram stand-in, by raw calls."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOB
from tests.standins.test_telegram_updates import call, ids

SAY = ("sendMessage", {"chat_id": ALICE.id, "text": "x"})


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """A server whose user has not said anything yet."""
    async with TelegramServer() as made:
        yield made


async def test_ordered_errors(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    telegram.fail_next("getMe", times=2)
    for _ in range(2):
        answer = await call(http, telegram, "getMe")
        assert (answer["status"], answer["description"]) == (500, "Internal Server Error")
    assert (await call(http, telegram, "getMe"))["ok"]
    telegram.fail_next("getMe", status=429, retry_after=7)
    url = f"{telegram.base_url}{telegram.token}/getMe"
    async with http.get(url) as answer429:
        assert (answer429.status, answer429.headers["Retry-After"]) == (429, "7")
    telegram.fail_next("getWebhookInfo", status=502)
    async with http.get(f"{telegram.base_url}{telegram.token}/getWebhookInfo") as answer502:
        assert (answer502.status, answer502.content_type) == (502, "text/html")
    telegram.check()


async def test_fault_for_one_chat_only(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    telegram.write("hello")
    telegram.write("hello", user=BOB)
    telegram.fail_next("sendMessage", chat_id=BOB.id)
    assert (await call(http, telegram, "sendMessage", chat_id=ALICE.id, text="x"))["ok"]
    assert not (await call(http, telegram, "sendMessage", chat_id=BOB.id, text="x"))["ok"]


@pytest.mark.parametrize("after_apply", [False, True])
async def test_dropped_connection_before_and_after_the_call(
    http: aiohttp.ClientSession, after_apply: bool, telegram: TelegramServer
) -> None:
    telegram.write("hello")
    fault = telegram.fail_next("sendMessage", drop=True, after_apply=after_apply)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await call(http, telegram, "sendMessage", chat_id=ALICE.id, text="x")
    assert fault.fired == 1
    assert telegram.texts() == (["x"] if after_apply else [])


@pytest.mark.parametrize("after_apply", [False, True])
async def test_held_answer(http: aiohttp.ClientSession, after_apply: bool, telegram: TelegramServer) -> None:
    telegram.write("hello")
    hold = telegram.hold_next("sendMessage", after_apply=after_apply)
    answer = asyncio.create_task(call(http, telegram, "sendMessage", chat_id=ALICE.id, text="x"))
    await hold.reached.wait()
    assert telegram.texts() == (["x"] if after_apply else [])
    assert not answer.done()
    hold.release()
    assert (await answer)["result"]["text"] == "x"


@pytest.mark.parametrize("apply", [False, True])
async def test_silence_answers_neither_polls_nor_calls(
    http: aiohttp.ClientSession, apply: bool, telegram: TelegramServer
) -> None:
    update = telegram.write("hello")
    waiting = asyncio.create_task(ids(http, telegram, offset=update["update_id"] + 1, timeout=30))
    await telegram.wait_for(lambda: telegram.poll is not None, "a poll")
    silence = telegram.fall_silent(apply=apply)
    later = telegram.write("anybody there?")
    asked = [
        asyncio.create_task(call(http, telegram, method, **params))
        for method, params in (SAY, ("getMe", {}), ("getUpdates", {}), ("sendMessage", {"chat_id": 1, "text": "x"}))
    ]
    await telegram.wait_for(lambda: silence.fired == 5, "five calls")
    assert not any(one.done() for one in (waiting, *asked))
    assert telegram.texts() == (["x"] if apply else [])
    silence.release()
    outcomes = await asyncio.gather(waiting, *asked, return_exceptions=True)
    assert [type(one) for one in outcomes] == [aiohttp.ServerDisconnectedError] * 5
    assert await ids(http, telegram) == [later["update_id"]]
    assert silence.fired == 5
