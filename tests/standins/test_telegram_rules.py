"""The rules of the Telegram stand-in, each broken by a raw HTTP call and kept by its counterpart.

The tables are in telegram_rows and telegram_text_rows; rules that need more than one call follow below.
No Telegram library takes part.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from tests.standins.telegram_ledger import Json, Rule
from tests.standins.telegram_rows import (
    BLOCKER,
    CLICK,
    FILE,
    FORUM,
    HERS,
    METHOD_ROWS,
    MINE,
    QUIET,
    Row,
    text,
)
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_text_rows import TEXT_ROWS
from tests.standins.telegram_updates import ALICE, BOB, Room

ROWS = TEXT_ROWS + METHOD_ROWS
OLD_GROUP = Room(-4_000_222, "group", "Grown")


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """A server with every chat that the rows name; violations are the subject here and fail no test."""
    async with TelegramServer() as server:
        server.meet(FORUM)
        server.meet(QUIET)
        server.closed_topics.add((FORUM.id, 6))
        server.rights[FORUM.id] = {"can_manage_topics"}
        server.block(BLOCKER)
        server.tolerate(*Rule)
        yield server


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: Json
    retry_after: str | None = None


async def call(
    http: aiohttp.ClientSession, server: TelegramServer, method: str, params: Json, *, token: str = ""
) -> Answer:
    """POST with a JSON body."""
    url = f"{server.base_url}{token or server.token}/{method}"
    async with http.post(url, json=params) as answer:
        return Answer(answer.status, await answer.json(), answer.headers.get("Retry-After"))


def broken_rules(server: TelegramServer) -> list[Rule]:
    return [violation.rule for violation in server.ledger.violations]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.heading}: {row.name}")
async def test_rule(row: Row, telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    assert telegram.write("from Alice")["message"]["message_id"] == HERS
    own = await call(http, telegram, "sendMessage", text("from the bot"))
    assert own.body["result"]["message_id"] == MINE
    assert telegram.click(MINE, "yes")["callback_query"]["id"] == CLICK
    assert telegram.attach("document", b"pdf")["message"]["document"]["file_id"] == FILE

    broken = await call(http, telegram, row.method, row.broken)
    assert broken.code == row.code
    assert broken.body["ok"] == (row.code == 200)
    if row.code != 200:
        assert broken.body["error_code"] == row.code
        assert broken.body["description"].startswith(row.says)
    assert broken_rules(telegram) == ([row.rule] if row.rule else [])
    telegram.ledger.violations.clear()

    kept = await call(http, telegram, row.method, row.kept)
    assert (kept.code, kept.body["ok"]) == (200, True), kept.body
    assert broken_rules(telegram) == []


# Making requests


async def test_authorizing_your_bot(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    refused = await call(http, telegram, "getMe", {}, token="1:wrong")
    assert (refused.code, refused.body) == (
        401,
        {"ok": False, "error_code": 401, "description": "Unauthorized"},
    )
    accepted = await call(http, telegram, "getMe", {})
    assert accepted.body["result"]["username"] == telegram.bot["username"]


async def test_unknown_methods_are_not_found(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    refused = await call(http, telegram, "sendTelepathy", {})
    assert (refused.code, refused.body["description"]) == (404, "Not Found: method not found")
    assert broken_rules(telegram) == [Rule.UNKNOWN_METHOD]
    assert (await call(http, telegram, "GETME", {})).code == 200  # "case-insensitive"


async def test_upgraded_group_names_its_new_id(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    telegram.upgrade(OLD_GROUP)
    refused = await call(http, telegram, "sendMessage", {"chat_id": OLD_GROUP.id, "text": "x"})
    assert (refused.code, refused.body["description"]) == (
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
    )
    new = refused.body["parameters"]["migrate_to_chat_id"]
    accepted = await call(http, telegram, "sendMessage", {"chat_id": new, "text": "x"})
    assert accepted.body["result"]["chat"]["type"] == "supergroup"


def test_message_ids_are_counted_per_supergroup_and_for_all_other_chats_together() -> None:
    world = TelegramServer()
    first = world.write("one")["message"]["message_id"]
    assert world.write("two", user=BOB)["message"]["message_id"] == first + 1
    assert world.write("three", chat=FORUM, thread_id=7)["message"]["message_id"] == first


async def test_a_message_takes_the_place_of_a_draft(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    telegram.write("hello")
    assert (await call(http, telegram, "sendMessageDraft", text("half of", draft_id=1))).body["result"] is True
    assert telegram.drafts[ALICE.id]["text"] == "half of"
    await call(http, telegram, "sendMessage", text("half of it"))
    assert telegram.drafts == {}


async def test_a_topic_takes_the_right_to_it(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    made = await call(http, telegram, "createForumTopic", {"chat_id": FORUM.id, "name": "Plans"})
    topic = {"chat_id": FORUM.id, "message_thread_id": made.body["result"]["message_thread_id"]}
    assert (await call(http, telegram, "sendMessage", topic | {"text": "x"})).code == 200
    assert (await call(http, telegram, "editForumTopic", topic | {"name": "Plans"})).body["description"] == (
        "Bad Request: TOPIC_NOT_MODIFIED"
    )
    telegram.rights.clear()
    for method, what in (("createForumTopic", "create a topic"), ("editForumTopic", "edit the topic")):
        refused = await call(http, telegram, method, topic | {"name": "Other plans"})
        assert refused.body["description"] == f"Bad Request: not enough rights to {what}"


async def test_file_download(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    document = telegram.attach("document", b"four", caption="read this")["message"]["document"]
    found = await call(http, telegram, "getFile", {"file_id": document["file_id"]})
    path = found.body["result"]["file_path"]
    base = f"{telegram.base_file_url}{telegram.token}"
    async with http.get(f"{base}/{path}") as answer:
        assert (answer.status, await answer.read()) == (200, b"four")
    async with http.get(f"{base}/documents/none") as answer:
        assert answer.status == 404
    async with http.get(f"{telegram.base_file_url}1:wrong/{path}") as answer:
        assert answer.status == 401
