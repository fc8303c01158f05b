"""The Telegram stand-in driven by python-telegram-bot, so that it is not a server only for raw calls."""

from collections.abc import AsyncIterator

import pytest
from telegram import (
    Bot,
    Update,
)
from telegram.error import BadRequest, ChatMigrated, Forbidden, NetworkError, RetryAfter

from tests.standins.odd_updates import readable_updates
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOB, Room, private

GROUP = Room(-4_000_111, "group", "Kitchen")


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
async def bot(telegram: TelegramServer) -> AsyncIterator[Bot]:
    async with Bot(telegram.token, base_url=telegram.base_url, base_file_url=telegram.base_file_url) as bot:
        yield bot


async def test_errors_have_the_meaning_that_the_library_knows(
    telegram: TelegramServer, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")  # else RetryAfter warns of its int
    telegram.write("hello")
    telegram.write("hello", user=BOB)
    telegram.block(BOB)
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await bot.send_message(BOB.id, "x")
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(1, "x")
    new = telegram.upgrade(GROUP)
    with pytest.raises(ChatMigrated) as migrated:
        await bot.send_message(GROUP.id, "x")
    assert migrated.value.new_chat_id == new.id
    telegram.fail_next("sendMessage", status=429, retry_after=9)
    with pytest.raises(RetryAfter, match="0:00:09"):
        await bot.send_message(ALICE.id, "x")
    telegram.fail_next("getMe", status=502)
    with pytest.raises(NetworkError, match="Bad Gateway"):
        await bot.get_me()


@pytest.mark.parametrize("name", readable_updates())
async def test_payloads_are_what_the_library_expects(telegram: TelegramServer, bot: Bot, name: str) -> None:
    pushed = telegram.push_raw(readable_updates()[name])
    (update,) = await bot.get_updates()
    assert isinstance(update, Update)
    kind = next(key for key in pushed if key != "update_id")
    seen = update.to_dict()[kind]
    assert missing(pushed[kind], seen) == []


def missing(sent: object, seen: object, where: str = "") -> list[str]:
    """Paths of values that the library did not understand."""
    if isinstance(sent, dict) and isinstance(seen, dict):
        return [
            path
            for key, value in sent.items()
            for path in (missing(value, seen[key], f"{where}.{key}") if key in seen else [f"{where}.{key}"])
        ]
    if isinstance(sent, list) and isinstance(seen, list | tuple):
        return [
            path
            for index, (one, other) in enumerate(zip(sent, seen, strict=True))
            for path in missing(one, other, f"{where}[{index}]")
        ]
    return [] if sent == seen else [f"{where}: {sent!r} != {seen!r}"]


async def test_private_chat_is_the_default(telegram: TelegramServer, bot: Bot) -> None:
    telegram.write("hello", user=BOB)
    telegram.write("hello", user=BOB, chat=GROUP)
    direct, group = await bot.get_updates()
    assert direct.effective_chat is not None
    assert group.effective_chat is not None
    assert (direct.effective_chat.type, direct.effective_chat.id) == ("private", private(BOB).id)
    assert (group.effective_chat.type, group.effective_chat.title) == ("group", "Kitchen")
