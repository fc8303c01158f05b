"""Rich messages: only where they show more, never with what Telegram would fetch, and as entities when refused."""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from channels.base import Times
from channels.message import ChatKind, Place
from channels.outgoing import Action, NotSent, Sent
from channels.telegram.adapter import TelegramChannel
from channels.telegram.render import call_of
from channels.telegram.settings import TelegramAccount
from tests.channels.sections import account
from tests.deliveries import delivery
from tests.standins.telegram_ledger import Rule
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOT_ID

PLACE = Place(channel="telegram", account=str(BOT_ID), chat=str(ALICE.id), kind=ChatKind.DIRECT)
TABLE = "Look:\n\n|a|b|\n|-|-|\n|**1**|2|"


async def no_pause(seconds: float) -> None: ...


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.write("hello")
        yield server


@pytest.fixture
async def channel(telegram: TelegramServer) -> AsyncIterator[TelegramChannel]:
    urls = {"base_url": telegram.base_url, "base_file_url": telegram.base_file_url}
    settings = account(TelegramAccount, token=telegram.token, rich="auto", **urls)
    channel = TelegramChannel(settings, Times(now=lambda: 0, monotonic=lambda: 0.0, sleep=no_pause))
    yield channel
    await channel.close()


async def test_a_table_is_a_rich_message(telegram: TelegramServer, channel: TelegramChannel) -> None:
    (body,) = channel.render(TABLE)
    result = await channel.send(delivery(body, PLACE))
    sent = telegram.sent[-1]
    assert (sent.method, sent.text, result) == ("sendRichMessage", TABLE, Sent(str(sent.message_id)))
    assert sent.params["rich_message"]["skip_entity_detection"] is True


@pytest.mark.parametrize(("status", "why"), [(400, "Bad Request: RICH_INVALID"), (404, "Not Found: method not found")])
async def test_one_that_is_refused_is_sent_with_entities(
    telegram: TelegramServer, channel: TelegramChannel, status: int, why: str
) -> None:
    telegram.fail_next("sendRichMessage", status=status, description=why)
    (body,) = channel.render(TABLE)
    refused = await channel.send(delivery(body, PLACE))
    assert isinstance(refused, NotSent)
    assert refused.retry_after == 0
    assert refused.body is not None
    assert isinstance(await channel.send(delivery(refused.body, PLACE)), Sent)
    assert telegram.sent[-1].method == "sendMessage"
    assert [entity["type"] for entity in telegram.sent[-1].entities] == ["pre"]


def test_which_blocks_are(channel: TelegramChannel) -> None:
    def methods(markdown: str) -> list[str]:
        return ["rich" if "rich_message" in json.loads(body) else "text" for body in channel.render(markdown)]

    for markdown in (TABLE, "- [ ] a\n- [x] b", "so $x^2$", "$$\nx\n$$"):
        assert methods(markdown) == ["rich"], markdown
    plain = ("**bold** `code`\n\n- a\n\n```py\nx\n```", "costs $5")
    unsafe = (f"{TABLE}\n\n![x](https://e.org/?secret)", f"{TABLE}\n\n<img src=x>", f"{TABLE} [x](tg://user?id=1)")
    differs = (f"{TABLE}\n\n\\(x\\)", f"{TABLE}\n\na == b == c")
    for markdown in (*plain, *unsafe, *differs):
        assert methods(markdown) == ["text"], markdown
    assert set(methods(TABLE + "\n\nword" * 2000)) == {"text"}


async def test_rules_of_the_stand_in(telegram: TelegramServer) -> None:
    telegram.tolerate(Rule.FORMATTING)
    wide = "|" + "a|" * 21
    for rich, status, broken in (
        ({"markdown": "x"}, 200, 0),
        ({"markdown": "x", "html": "x"}, 400, 1),
        ({}, 400, 1),
        ({"markdown": "x" * 32_769}, 400, 1),
        ({"markdown": wide}, 400, 1),
        ({"markdown": "![a](https://b.c)"}, 200, 1),
    ):
        telegram.ledger.violations.clear()
        call = {"chat_id": ALICE.id, "rich_message": rich}
        url = f"{telegram.base_url}{telegram.token}/sendRichMessage"
        async with aiohttp.ClientSession() as session, session.post(url, json=call) as answer:
            assert answer.status == status, rich
        assert len(telegram.ledger.violations) == broken, rich


def test_the_method_is_for_sends_alone() -> None:
    body = json.dumps({"rich_message": {"markdown": "x"}})
    assert call_of(delivery(body, PLACE))[0] == "sendRichMessage"
    assert call_of(delivery(body, PLACE, action=Action.EDIT, target="7"))[0] == "editMessageText"
