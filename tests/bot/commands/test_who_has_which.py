"""Every command, by who types it and where: it is carried out, or for them it does not exist and the model answers."""

from pathlib import Path
from typing import Any

import pytest

from bot import wording
from bot.commands.registry import Registry, nearest
from channels.base import Capabilities
from channels.discord.adapter import DiscordChannel
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.slack.adapter import SlackChannel
from channels.telegram.adapter import TelegramChannel
from tests.bot.approvals.test_approvals import OPEN, Commanding, begin, order, shows
from tests.service import Hark, RecordingChannel, running

# Who has each command besides owners, who have all of them everywhere.
TABLE = {
    **dict.fromkeys(("help", "start", "status", "whoami", "stop", "retry", "tools", "answer"), "everybody everywhere"),
    "reanswer": "everybody everywhere",
    **dict.fromkeys(("new", "reset", "compact", "model", "models", "think", "verbose", "reasoning"), "guests directly"),
    **dict.fromkeys(("usage", "context", "queue", "undo", "redo", "fork", "activation", "memory"), "guests directly"),
    "voice": "guests directly",
    **dict.fromkeys(("approve", "approvals"), "approvers"),
    **dict.fromkeys(("freeze", "thaw", "restart", "config", "pairing", "allowlist", "people", "send"), "owners"),
    **dict.fromkeys(("why", "budget", "heartbeat", "schedule", "sessions", "export"), "owners"),
    **dict.fromkeys(("skills", "skill", "subagents"), "owners"),
}
# What is typed so that the command changes nothing here; else its name alone.
TYPED = {"restart": "/restart nothing", "freeze": "/freeze nothing"}
PEOPLE = {"owner": "1", "guest": "2", "approver": "3"}
PLACES = {
    "direct": lambda sender: Place(channel="telegram", account="bot", chat=sender, kind=ChatKind.DIRECT),
    "group": lambda _: Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP),
    "thread": lambda _: Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP, thread="7"),
}
CONFIG: dict[str, Any] = {
    "approvals": {"approvers": ["telegram:3"]},
    "channels": {"telegram": {"groups": {"allow": {"-5": {"require_mention": False}}}}},
}


def has(who: str, where: str, row: str) -> bool:
    """Whether somebody has a command there, by the table."""
    return {
        "everybody everywhere": True,
        "guests directly": who == "owner" or where == "direct",
        "approvers": who in ("owner", "approver"),
        "owners": who == "owner",
    }[row]


def typed(hark: Hark, registry: Registry) -> list[tuple[str, str]]:
    """Each name that can be typed, with its command; first those that need a model once something was said."""
    names = [(name, one.name) for one in registry.commands for name in (one.name, *one.aliases)]
    return sorted(names, key=lambda pair: pair[1] not in ("retry", "compact"))


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("who", PEOPLE)
async def test_a_command_is_there_for_who_may_use_it_and_for_nobody_else(tmp_path: Path, who: str, where: str) -> None:
    wrong = []
    async with running(tmp_path, config=CONFIG) as hark:
        registry = hark.service.parts.pipeline.registry
        for number, (name, command) in enumerate(typed(hark, registry)):
            text = TYPED.get(name, f"/{name}")
            place, ident = PLACES[where](PEOPLE[who]), f"9{number}"
            origin = Origin(place=place, sender=PEOPLE[who], message_id=ident)
            said: InboundMessage = hark.message(text, PEOPLE[who], origin=origin, event_key=f"m:{place.chat}:{ident}")
            asked = len(hark.model.requests)
            await hark.accept(said)
            await hark.until(lambda: not hark.stored.unfinished(), f"the answer to {text}")
            carried_out = len(hark.model.requests) == asked
            if carried_out is not has(who, where, TABLE[command]):
                wrong.append(f"{text}: {'carried out' if carried_out else 'answered by the model'}")
    assert wrong == []


async def test_menus_name_what_somebody_but_owners_has(tmp_path: Path) -> None:
    async with running(tmp_path, config=CONFIG) as hark:
        menu = {info.name for info in hark.service.parts.pipeline.commands()}
        names = {one.name for one in hark.service.parts.pipeline.registry.commands}
    assert menu == {name for name in names if TABLE[name] != "owners"} - {"answer", "reanswer"}


# Commands in sentences of the service stand there as people type them on the platform that they read.

SLACK, DISCORD = SlackChannel.capabilities.commands, DiscordChannel.capabilities.commands
TEXT = "`/approve 1a once`, or /answer 2b, or (/help). In /tmp/help, ls /x/help, `cat /help` and a/help they are paths."


def test_each_platform_has_its_own_signs() -> None:
    assert wording.typed(TEXT, TelegramChannel.capabilities.commands) == TEXT
    _, paths = TEXT.split(". ", 1)
    assert wording.typed(TEXT, SLACK) == f"`/hark approve 1a once`, or /hark answer 2b, or (/hark help). {paths}"
    assert wording.typed(TEXT, DISCORD) == f"`/approve 1a once`, or !answer 2b, or (/help). {paths}"
    block = "```\n/new\n```\n\n/new"
    assert wording.typed(block, SLACK) == "```\n/new\n```\n\n/hark new"


async def test_every_command_is_known_by_how_it_is_listed(hark: Hark) -> None:
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


async def test_what_is_mistyped_gets_the_right_neighbour(hark: Hark) -> None:
    assert await order(hark, "/stat") == "There is no command `stat`; the nearest is `/status`, and /help lists all."
    told = await order(hark, "/frobnicate", kind=InboundKind.COMMAND)
    assert told == "There is no command `frobnicate`; /help lists what there is."
    for text in ("/tmp is full", "/etc/hosts", "/stopping", "stat", "!stat"):
        assert (await hark.say(text, answers=[f"about {text}"])).texts == [f"about {text}"]
    hark.model.add("for a guest")
    assert (await hark.say("/pairing list", "2")).texts == ["for a guest"], "it is as if it did not exist"
