"""The Telegram stand-in driven by python-telegram-bot, so that it is not a server only for raw calls."""

from collections.abc import AsyncIterator

import pytest
from telegram import (
    Bot,
    Update,
)

from tests.standins.odd_updates import readable_updates
from tests.standins.telegram_server import TelegramServer


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
async def bot(telegram: TelegramServer) -> AsyncIterator[Bot]:
    async with Bot(telegram.token, base_url=telegram.base_url, base_file_url=telegram.base_file_url) as bot:
        yield bot


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
