"""The whole service between Slack and the built-in model, as the configuration makes it: all is answered once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.config.model import Config
from tests.channels.slack.manifest import manifest
from tests.serving import serving
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        install(server, manifest())
        yield server


def config(slack: SlackServer, home: Path) -> Config:
    """Alice may write, in any channel."""
    section = {
        "bot_token": slack.bot_token,
        "app_token": slack.app_token,
        "base_url": slack.base_url,
        "dm": {"policy": "allowlist", "allow_from": [ALICE.id]},
        "groups": {"policy": "open"},
    }
    return Config.model_validate(
        {
            "agent": {"model": "offline/offline", "drain_seconds": 0},
            "channels": {"console": {"enabled": False}, "slack": section},
            "queue": {"debounce_ms": 0, "mode": "followup"},
            "workspace": home / "workspace",
            "state": home / "state",
        }
    )


async def test_a_mention_is_answered_once_in_a_thread_under_it(slack: SlackServer, tmp_path: Path) -> None:
    room = slack.channel("general", ALICE, BOB)
    async with serving(config(slack, tmp_path)):
        await slack.wait_connected()
        asked = slack.mention(room, ALICE, "first question")
        slack.repeat(slack.outbox[0])
        answer = await slack.wait_text("first question")
        assert (answer.channel, answer.thread_ts) == (room.id, asked["ts"])
        slack.dm(ALICE, "second question")
        assert (await slack.wait_text("second question")).thread_ts is None
        slack.slash(slack.channel("random"), ALICE, "help")
        assert (await slack.wait_text("/hark help")).only_to == ALICE.id
        await slack.wait_acknowledged()
    assert len(slack.texts()) == 3


async def test_what_comes_again_after_a_restart_is_not_answered_again(slack: SlackServer, tmp_path: Path) -> None:
    async with serving(config(slack, tmp_path)):
        await slack.wait_connected()
        slack.dm(ALICE, "first question")
        await slack.wait_text("first question")
        await slack.wait_acknowledged()
    slack.keep_while_away = True
    slack.repeat(slack.outbox[0])
    slack.dm(ALICE, "second question")
    async with serving(config(slack, tmp_path)):
        await slack.wait_text("second question")
        await slack.wait_acknowledged()
    assert len(slack.texts()) == 2
