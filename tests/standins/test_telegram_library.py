"""The Telegram stand-in driven by python-telegram-bot, so that it is not a server only for raw calls."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
    Update,
)
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, NetworkError, RetryAfter

from tests.standins.odd_updates import readable_updates
from tests.standins.telegram_ledger import Rule
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


async def test_conversation(telegram: TelegramServer, bot: Bot) -> None:
    assert bot.username == telegram.bot["username"]
    assert await bot.set_my_commands([BotCommand("help", "What I can do")])
    assert [command.command for command in await bot.get_my_commands()] == ["help"]
    written = telegram.write("/help 😀 @somebody")
    (update,) = await bot.get_updates(timeout=5, allowed_updates=["message"])
    assert update.update_id == written["update_id"]
    assert update.message is not None
    assert update.effective_user is not None
    assert update.effective_user.id == ALICE.id
    assert list(update.message.parse_entities().values()) == ["/help", "@somebody"]

    assert await bot.send_chat_action(ALICE.id, "typing")
    sent = await bot.send_message(
        ALICE.id,
        "😀 bold link",
        entities=[
            MessageEntity("bold", 3, 4),
            MessageEntity("text_link", 8, 4, url="https://example.org/"),
        ],
        link_preview_options=LinkPreviewOptions(is_disabled=True),
        reply_parameters=ReplyParameters(update.message.message_id),
    )
    assert list(sent.parse_entities().values()) == ["bold", "link"]
    assert sent.reply_to_message is not None
    assert telegram.sent[-1].reply_to == update.message.message_id
    assert telegram.sent[-1].params["link_preview_options"] == {"is_disabled": True}
    assert await bot.edit_message_text("changed", ALICE.id, sent.message_id)
    assert await bot.set_message_reaction(ALICE.id, update.message.message_id, ReactionTypeEmoji("👀"))
    assert await bot.delete_message(ALICE.id, sent.message_id)
    assert [one.method for one in telegram.sent] == [
        "sendMessage",
        "editMessageText",
        "setMessageReaction",
        "deleteMessage",
    ]
    assert await bot.get_updates(offset=update.update_id + 1) == ()
    assert telegram.confirmed == update.update_id
    assert (await bot.get_chat(ALICE.id)).first_name == "Alice"


async def test_click(telegram: TelegramServer, bot: Bot) -> None:
    telegram.write("ask me")
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
    sent = await bot.send_message(ALICE.id, "Sure?", reply_markup=keyboard)
    telegram.click(sent.message_id, "yes")
    query = (await bot.get_updates())[-1].callback_query
    assert query is not None
    assert query.data == "yes"
    assert await query.answer("Thanks")


async def test_file(telegram: TelegramServer, bot: Bot) -> None:
    telegram.attach("document", b"four", caption="#read this")
    (update,) = await bot.get_updates()
    assert update.message is not None
    assert update.message.document is not None
    file = await update.message.document.get_file()
    assert bytes(await file.download_as_bytearray()) == b"four"


async def test_webhook(telegram: TelegramServer, bot: Bot) -> None:
    assert await bot.set_webhook("https://example.org/hook", secret_token="s3cret")
    assert (await bot.get_webhook_info()).url == "https://example.org/hook"
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates()
    assert await bot.delete_webhook()
    assert await bot.get_updates() == ()


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


async def test_second_poller(telegram: TelegramServer, bot: Bot) -> None:
    telegram.tolerate(Rule.SECOND_POLLER)
    first = asyncio.create_task(bot.get_updates(timeout=30))
    await telegram.wait_for(lambda: telegram.poll is not None, "a poll")
    async with Bot(telegram.token, base_url=telegram.base_url) as other:
        second = asyncio.create_task(other.get_updates(timeout=30))
        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await first
        update = telegram.write("hello")
        assert [one.update_id for one in await second] == [update["update_id"]]


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
