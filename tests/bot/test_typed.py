"""Commands in sentences of the service stand there as people type them on the platform that they read."""

from pathlib import Path

import pytest

from bot import wording
from bot.commands.registry import nearest
from channels.base import Capabilities
from channels.discord.adapter import DiscordChannel
from channels.message import InboundKind
from channels.slack.adapter import SlackChannel
from channels.telegram.adapter import TelegramChannel
from tests.bot.approvals.test_approvals import OPEN, Commanding, begin, order, shows
from tests.service import RecordingChannel, running

SLACK, DISCORD = SlackChannel.capabilities.commands, DiscordChannel.capabilities.commands
TEXT = "`/approve 1a once`, or /answer 2b, or (/help). In /tmp/help, ls /x/help, `cat /help` and a/help they are paths."


def test_each_platform_has_its_own_signs() -> None:
    assert wording.typed(TEXT, TelegramChannel.capabilities.commands) == TEXT
    _, paths = TEXT.split(". ", 1)
    assert wording.typed(TEXT, SLACK) == f"`/hark approve 1a once`, or /hark answer 2b, or (/hark help). {paths}"
    assert wording.typed(TEXT, DISCORD) == f"`/approve 1a once`, or !answer 2b, or (/help). {paths}"
    block = "```\n/new\n```\n\n/new"
    assert wording.typed(block, SLACK) == "```\n/new\n```\n\n/hark new"


async def test_every_command_is_known_by_how_it_is_listed(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        registry = hark.service.parts.pipeline.registry
        menu = {info.name for info in registry.infos()}
        listed = {name for one in registry.commands if one.name in menu for name in (one.name, *one.aliases)}
        others = {name for one in registry.commands for name in (one.name, *one.aliases)} - listed
        assert listed == set(wording.LISTED) & (listed | others)
        assert others <= set(wording.UNLISTED)


class Slackish(RecordingChannel):
    """Has Slack's way of commands."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.capabilities = Capabilities(block_chars=4000, typing_seconds=0, rules="x", commands=SLACK)


async def test_a_request_names_commands_as_they_are_typed_and_leaves_what_is_asked_alone(tmp_path: Path) -> None:
    tool = Commanding("ls /help", why=("/help is a folder",))
    async with running(tmp_path, config=OPEN, tools=lambda watch: [tool], made=Slackish) as hark:
        ident = await begin(hark, then="")
        (shown,) = shows(hark)
        assert "ls /help\n```\n\nWhy I ask:\n- /help is a folder" in shown.body
        assert f"`/hark approve {ident[:8]} once`" in shown.body
        assert "/hark stop" in await order(hark, "/help")
        await hark.write("what?")
        await hark.until(
            lambda: f"`ls /help` (`/hark approve {ident[:8]} once`)" in hark.channel.texts()[-1], "the answer"
        )


NEAR = [("stat", "status"), ("frobnicate", None), ("hlep", "help"), ("sto", "stop"), ("tmp", None), ("s", None)]


@pytest.mark.parametrize(("typed", "name"), NEAR)
def test_the_nearest_command(typed: str, name: str | None) -> None:
    assert nearest(typed, ["approve", "help", "new", "start", "status", "stop"]) == name


async def test_what_is_mistyped_gets_the_right_neighbour(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        assert (
            await order(hark, "/stat") == "There is no command `stat`; the nearest is `/status`, and /help lists all."
        )
        told = await order(hark, "/frobnicate", kind=InboundKind.COMMAND)
        assert told == "There is no command `frobnicate`; /help lists what there is."
        for text in ("/tmp is full", "/etc/hosts", "/stopping", "stat", "!stat"):
            hark.model.add(f"about {text}")
            assert (await hark.say(text)).texts == [f"about {text}"]
        hark.model.add("for a guest")
        assert (await hark.say("/pairing list", "2")).texts == ["for a guest"], "it is as if it did not exist"
