"""Two bots of one platform in one service, as the configuration names them: each has its own people and answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.config.model import Config
from bot.service import Service
from channels.base import HealthState
from tests.scripted_model import ScriptedModel
from tests.serving import serving
from tests.standins.script import Call
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOB, BOT_ID, private
from tests.stored import Stored
from tests.watch import Watch

WORK_ID = 222
WORK_TOKEN = f"{WORK_ID}:AAHk5vQ_theSecondStandInOnly0123456"
pytestmark = pytest.mark.xdist_group("wire-service")


@asynccontextmanager
async def two_bots(
    folder: Path, work: dict[str, Any], model: ScriptedModel | None = None
) -> AsyncIterator[tuple[TelegramServer, TelegramServer, Any]]:
    """Both servers, and what starts the service on `folder`."""
    async with TelegramServer() as plain, TelegramServer(token=WORK_TOKEN) as second:
        second.bot = {**second.bot, "id": WORK_ID, "username": "work_bot"}

        @asynccontextmanager
        async def bots() -> AsyncIterator[Service]:
            accounts = {"work": {"token": WORK_TOKEN, "base_url": second.base_url, **work}}
            telegram = {
                "token": plain.token,
                "base_url": plain.base_url,
                "dm": {"policy": "allowlist", "allow_from": [ALICE.id]},
                "accounts": accounts,
            }
            config = Config.model_validate(
                {
                    "agent": {"drain_seconds": 0},
                    "queue": {"debounce_ms": 0},
                    "channels": {"console": {"enabled": False}, "telegram": telegram},
                    "workspace": folder / "workspace",
                    "state": folder / "state",
                }
            )
            async with serving(config, model=model or ScriptedModel(Watch())) as service:
                yield service

        yield plain, second, bots


async def test_each_account_has_its_own_people_answers_and_session(tmp_path: Path) -> None:
    async with (
        two_bots(tmp_path, {"dm": {"policy": "allowlist", "allow_from": [BOB.id]}}) as (plain, second, bots),
        bots() as service,
    ):
        plain.write("to the first", chat=private(BOB), user=BOB)
        second.write("to the second", chat=private(ALICE), user=ALICE)
        plain.write("to the first", user=ALICE)
        second.write("to the second", chat=private(BOB), user=BOB)
        await plain.wait_sent(1)
        await second.wait_sent(1)
        assert (plain.texts(private(BOB)), second.texts(private(ALICE))) == ([], [])
        health = service.parts.health.view()
        assert health.ready
        assert list(health.channels) == ["telegram", "telegram:work"]
        assert health.channels["telegram:work"].detail.startswith("receiving as @work_bot")
        kept = Stored(tmp_path / "state").messages("session_key")
        assert {key for (key,) in kept if key} == {
            f"agent:main:telegram:{BOT_ID}:direct:{ALICE.id}",
            f"agent:main:telegram:{WORK_ID}:direct:{BOB.id}",
        }


TABLE = "|a|b|\n|-|-|\n|1|2|"


@pytest.mark.parametrize("answer", [[TABLE], [Call("message", {"action": "send", "text": TABLE}), Call("stay_silent")]])
async def test_each_account_renders_by_its_own_settings(tmp_path: Path, answer: list[Any]) -> None:
    """The words of answers, and those that the `message` tool sends."""
    model = ScriptedModel(Watch())
    model.add(*answer)
    model.add(*answer)
    async with two_bots(tmp_path, {"rich": "auto"}, model) as (plain, second, bots), bots():
        for server, method in ((second, "sendRichMessage"), (plain, "sendMessage")):
            server.write("a table", user=ALICE)
            await server.wait_for(lambda server=server: server.sent, "the table")  # type: ignore[misc]
            assert [sent.method for sent in server.sent] == [method]


async def test_two_accounts_that_are_one_bot_are_said(tmp_path: Path) -> None:
    async with two_bots(tmp_path, {}) as (plain, second, bots):
        second.bot = plain.bot
        async with bots() as service:
            health = service.parts.health.view
            await second.wait_for(lambda: "same bot as telegram" in health().channels["telegram:work"].detail, "that")
            assert health().channels["telegram:work"].state == HealthState.DOWN
            assert not health().ready
