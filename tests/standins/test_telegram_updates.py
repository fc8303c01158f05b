"""getUpdates, webhooks, limits and the checks at the end, by raw calls to the Telegram stand-in."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.standins.inspection import inspected
from tests.standins.odd_updates import broken_updates, readable_updates
from tests.standins.telegram_ledger import Json, Rule
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, TOKEN, Room

GROUP = Room(-4_000_111, "group", "Kitchen")


async def call(http: aiohttp.ClientSession, server: TelegramServer, method: str, **params: object) -> Json:
    """The answer's body, with the HTTP status as "status"."""
    async with http.post(f"{server.base_url}{server.token}/{method}", json=params) as answer:
        body: Json = await answer.json()
        return body | {"status": answer.status}


async def ids(http: aiohttp.ClientSession, server: TelegramServer, **params: object) -> list[int]:
    return [update["update_id"] for update in (await call(http, server, "getUpdates", **params))["result"]]


# getUpdates


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """A server whose user has not said anything yet."""
    async with TelegramServer() as made:
        yield made


async def test_unconfirmed_updates_come_again_and_an_offset_confirms(
    http: aiohttp.ClientSession, telegram: TelegramServer
) -> None:
    first, second, third = (telegram.write(word)["update_id"] for word in ("one", "two", "three"))
    assert second == first + 1
    assert await ids(http, telegram) == [first, second, third]
    assert await ids(http, telegram, limit=2) == [first, second]
    assert await ids(http, telegram, offset=second) == [second, third]
    assert telegram.confirmed == first
    assert await ids(http, telegram) == [second, third]
    assert await ids(http, telegram, offset=third + 1) == []
    assert [poll.answered for poll in telegram.polls[-2:]] == [[second, third], []]


async def test_second_poller_terminates_the_first(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    first = asyncio.create_task(call(http, telegram, "getUpdates", timeout=30))
    await telegram.wait_for(lambda: telegram.poll is not None, "a poll")
    second = asyncio.create_task(call(http, telegram, "getUpdates", timeout=30))
    assert await first == {
        "ok": False,
        "error_code": 409,
        "status": 409,
        "description": "Conflict: terminated by other getUpdates request;"
        " make sure that only one bot instance is running",
    }
    update = telegram.write("hello")
    assert (await second)["result"] == [update]
    assert [one.rule for one in telegram.violations] == [Rule.SECOND_POLLER]
    telegram.tolerate(Rule.SECOND_POLLER)


async def test_allowed_updates_hold_from_then_on(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    before = telegram.write("before")
    assert await ids(http, telegram, allowed_updates=["edited_message"]) == [before["update_id"]]
    telegram.write("left out")
    edit = telegram.edit(before, "changed")
    assert await ids(http, telegram, offset=before["update_id"] + 1) == [edit["update_id"]]
    assert await ids(http, telegram, allowed_updates=[]) == [edit["update_id"]]
    again = telegram.write("back")
    assert await ids(http, telegram, offset=edit["update_id"] + 1) == [again["update_id"]]


async def test_repeated_update_comes_once_more_whatever_the_offset(
    http: aiohttp.ClientSession, telegram: TelegramServer
) -> None:
    update = telegram.write("hello")
    after = update["update_id"] + 1
    assert await ids(http, telegram, offset=after) == []
    telegram.repeat(update)
    assert await ids(http, telegram, offset=after) == [update["update_id"]]
    assert await ids(http, telegram, offset=after) == []


async def test_odd_updates_are_delivered_as_they_are(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    for odd in [*readable_updates().values(), *broken_updates().values()]:
        pushed = telegram.push_raw(odd)
        answer = await call(http, telegram, "getUpdates", offset=pushed["update_id"])
        assert answer["result"] == [pushed]


# setWebhook, deleteWebhook, getWebhookInfo


async def test_no_polling_while_a_webhook_is_set(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    poll = asyncio.create_task(call(http, telegram, "getUpdates", timeout=30))
    await telegram.wait_for(lambda: telegram.poll is not None, "a poll")
    assert (await call(http, telegram, "setWebhook", url="https://example.org/h"))["result"] is True
    assert (await poll)["description"] == "Conflict: terminated by setWebhook request"
    refused = await call(http, telegram, "getUpdates")
    assert (refused["status"], refused["description"]) == (
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
    )
    telegram.write("waits")
    info = (await call(http, telegram, "getWebhookInfo"))["result"]
    assert (info["url"], info["pending_update_count"]) == ("https://example.org/h", 1)
    await call(http, telegram, "deleteWebhook", drop_pending_updates=True)
    assert await ids(http, telegram) == []


# Limits


# Checks at the end


async def broken_by(http: aiohttp.ClientSession, *steps: tuple[str, Json]) -> list[Rule]:
    """The rules that calls to a fresh server break, as the check at its end finds them."""

    async def converse(telegram: TelegramServer) -> None:
        async with telegram:
            telegram.write("hello")
            for method, params in steps:
                await call(http, telegram, method, **params)

    with pytest.raises(AssertionError, match="the client broke rules of the Bot API") as found, inspected():
        await converse(telegram := TelegramServer())
    rules = [one.rule for one in telegram.violations]
    assert all(str(rule) in str(found.value) for rule in rules)
    return rules


SAY = ("sendMessage", {"chat_id": ALICE.id, "text": "x"})
TYPE = ("sendChatAction", {"chat_id": ALICE.id, "action": "typing"})
LEAK = ("sendMessage", {"chat_id": ALICE.id, "text": f"my key is {TOKEN}"})


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        (Rule.LATE_TYPING, (TYPE, SAY, TYPE)),
        (Rule.REPEATED_TEXT, (SAY, SAY)),
        (Rule.FORMATTING, (("sendMessage", {"chat_id": ALICE.id, "text": ""}),)),
        (Rule.UNKNOWN_FIELD, (("getMe", {"verbose": True}),)),
        (Rule.TOKEN_LEAK, (LEAK,)),
    ],
)
async def test_a_rule_that_is_broken_is_found(
    rule: Rule, steps: tuple[tuple[str, Json], ...], http: aiohttp.ClientSession
) -> None:
    assert await broken_by(http, *steps) == [rule]


async def test_typing_after_a_turn_that_the_test_marked_is_found(
    http: aiohttp.ClientSession, telegram: TelegramServer
) -> None:
    for late in (False, True):
        telegram.write("hello")
        for method, params in (TYPE, ("sendMessage", {"chat_id": ALICE.id, "text": f"{late}"})):
            await call(http, telegram, method, **params)
        telegram.turn_over()
        assert not telegram.violations
    await call(http, telegram, TYPE[0], **TYPE[1])
    await call(http, telegram, "sendMessage", chat_id=ALICE.id, text="more")
    assert [one.rule for one in telegram.violations] == [Rule.LATE_TYPING]
    telegram.tolerate(Rule.LATE_TYPING)


async def test_open_click_and_unfired_fault_are_found(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    telegram.write("hello")
    message = (await call(http, telegram, SAY[0], **SAY[1]))["result"]
    query = telegram.click(message["message_id"], "yes")["callback_query"]
    telegram.fail_next("getMe")
    assert [one.rule for one in telegram.violations] == [Rule.UNANSWERED_CLICK, Rule.FAULT_NOT_FIRED]
    with pytest.raises(AssertionError, match="getMe: 0 of 1"):
        telegram.check()
    await call(http, telegram, "getMe")
    await call(http, telegram, "answerCallbackQuery", callback_query_id=query["id"])


async def test_waiting_in_vain_tells_the_last_calls(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    await call(http, telegram, "getMe")
    with pytest.raises(AssertionError, match=r"in vain for 1 messages; last calls:\n.*getMe"):
        await telegram.wait_sent(1, seconds=0.01)


async def test_log_holds_no_token(http: aiohttp.ClientSession, telegram: TelegramServer) -> None:
    async with http.get(f"{telegram.base_url}{telegram.token}/getMe") as answer:
        assert answer.status == 200
    assert [one.url for one in telegram.ledger.calls] == ["/bot<token>/getMe"]
