"""Which tools there are for whom and where, why not the rest, and that `/tools` says the same."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.message import ToolResult
from bot.people.accounts import Account, Accounts
from bot.people.people import People
from bot.persistence.inbox import AcceptedMessage
from bot.runs.permissions import FOR_GUESTS, Permissions
from bot.runs.rooms import Rooms
from channels.message import ChatKind, Origin, Place
from tests.bot.store.opened import accept_and_claim, message, opened
from tests.scripted_model import ScriptedModel
from tests.service import Hark, RecordingChannel, ScriptedTool, running, settings
from tests.standins.script import Call
from tests.watch import Watch

CHAT = "-5"
TELEGRAM: Mapping[str, Any] = {
    "dm": {"policy": "open"},
    "groups": {"policy": "open", "require_mention": False},
}


class Mine(ScriptedTool):
    """Of owners."""

    owner_only = True


async def done(label: str) -> str:
    return f"did {label}"


def config(tools: Mapping[str, Any] | None = None, /, **telegram: Any) -> dict[str, Any]:
    return {"tools": tools or {}, "channels": {"telegram": {**TELEGRAM, **telegram}}}


def offered(hark: Hark) -> set[str]:
    return {tool.name for tool in hark.model.requests[-1].tools}


async def listed(hark: Hark, sender: str = "1") -> dict[str, str]:
    """What /tools says: names, with why not."""
    sent = len(hark.channel.texts(sender))
    await hark.write("/tools", sender=sender)
    lines = (await hark.until_texts(sent + 1, sender))[sent].splitlines()
    return {name: why for name, _, why in (line.removeprefix("- ").partition(": ") for line in lines)}


def in_group(hark: Hark, text: str, sender: str = "1", **fields: Any) -> Any:
    place = Place(channel="telegram", account="bot", chat=CHAT, kind=ChatKind.GROUP)
    return hark.message(text, sender, origin=Origin(place=place, sender=sender, message_id=text), **fields)


@pytest.mark.parametrize(
    ("settings", "without"),
    [
        (config(), {}),
        (config({"profile": "minimal"}), dict.fromkeys(("read", "exec", "message", "xec"), "tools.profile: minimal")),
        (config({"profile": "messaging"}), dict.fromkeys(("write", "process"), "tools.profile: messaging")),
        (config({"profile": "coding"}), {"xec": "tools.profile: coding"}),
        (config({"allow": ["group:fs"]}), dict.fromkeys(("message", "exec", "stay_silent"), "tools.allow")),
        (config({"deny": ["GROUP:FS", "*xec"]}), dict.fromkeys(("read", "write", "xec"), "tools.deny")),
        (config({"exec": {"security": "deny"}}), dict.fromkeys(("exec", "process"), "tools.exec.security: deny")),
        (config({}, tools={"deny": ["*xec"]}), {"xec": "channels.telegram.tools.deny"}),
        (config({"by_sender": {"telegram:1": {"deny": ["*xec"]}}}), {"xec": "tools.by_sender.telegram:1.deny"}),
        (config({"by_sender": {"telegram:2": {"deny": ["*xec"]}}}), {}),
        (
            config(
                {"allow": ["read", "*xec"], "by_sender": {"telegram:*": {"allow": ["write", "*xec"]}}},
                tools={"deny": ["*xec"]},
            ),
            {"xec": "channels.telegram.tools.deny", "write": "tools.allow", "read": "tools.by_sender.telegram:*.allow"},
        ),
    ],
)
async def test_tools_says_what_the_model_gets(
    tmp_path: Path, settings: dict[str, Any], without: dict[str, str]
) -> None:
    """What is refused at the call alone is offered, and answered with the same reason."""
    async with running(tmp_path, config=settings, tools=lambda watch: [ScriptedTool("xec", done, watch)]) as hark:
        said = await listed(hark)
        for name, key in without.items():
            assert said[name] == f"not allowed by `{key}`"
        reached = {name for name, why in said.items() if not why}
        at_call = {name for name, why in said.items() if "by_sender" in why}
        assert reached.isdisjoint(without)
        await hark.say("go", answers=[Call("xec", {"label": "it"}), "done"])
        assert offered(hark) == reached | at_call
        (result,) = hark.model.requests[-1].messages[-1].parts
        assert isinstance(result, ToolResult)
        expected = f"xec was not executed: {said['xec']}." if said["xec"] else "did it"
        assert result.text == expected


async def test_the_rules_of_an_account_come_upon_those_of_its_channel(tmp_path: Path) -> None:
    accounts = {"b": {"token": "2:b", "tools": {"allow": ["read", "write"]}}}
    made = settings(tmp_path, config({"deny": ["message"]}, token="1:a", tools={"deny": ["read"]}, accounts=accounts))
    plain = made.channels.sections()["telegram"]
    channel = RecordingChannel(Watch())
    found = Accounts([Account("telegram:b", channel, plain.bots()["b"])])
    async with opened(tmp_path / "state") as store:
        turn = await accept_and_claim(store)
        people = People(store, made.owners)
        rooms = Rooms(root=tmp_path, people=people, accounts=found, scope="per-peer", links={}, has_token=False)
        permissions = Permissions(
            tools=made.tools, channels={"telegram": plain}, accounts=found, people=people, rooms=rooms
        )
        tools = [ScriptedTool(name, done, Watch()) for name in ("read", "write", "message", "xec")]
        offer = permissions.offer(turn, rooms.of(turn.session_key), tools)
    assert offer.names == ("write",)
    assert {name: offer.refused[name] for name in ("read", "message", "xec")} == {
        "read": "not allowed by `channels.telegram.tools.deny`",
        "message": "not allowed by `tools.deny`",
        "xec": "not allowed by `channels.telegram.accounts.b.tools.allow`",
    }


async def test_a_channel_in_a_server_has_less_than_the_server(tmp_path: Path) -> None:
    allow = {CHAT: {"tools": {"deny": ["message"]}}, "s": {"tools": {"deny": ["*xec", "write"]}}}
    settings = config({}, groups={"policy": "allowlist", "require_mention": False, "allow": allow})
    async with running(tmp_path, config=settings, tools=lambda watch: [ScriptedTool("xec", done, watch)]) as hark:
        place = Place(channel="telegram", account="bot", chat=CHAT, kind=ChatKind.GROUP)
        origin = Origin(place=place, sender="1", message_id="7", space="s")
        hark.model.add("yes")
        await hark.accept(hark.message("hello", origin=origin))
        await hark.until_texts(1, CHAT)
        assert offered(hark).isdisjoint({"message", "xec", "write"})
        assert "read" in offered(hark)
        await hark.accept(hark.message("/tools", origin=origin))
        said = (await hark.until_texts(2, CHAT))[1]
        assert f"- message: not allowed by `channels.telegram.groups.allow.{CHAT}.tools.deny`" in said
        assert "- xec: not allowed by `channels.telegram.groups.allow.s.tools.deny`" in said


async def test_the_tools_of_a_session_are_the_same_bytes_whoever_writes(tmp_path: Path) -> None:
    """In a group, and in a session that all share: who writes decides at the call."""
    by_sender = {
        "telegram:2": {"allow": ["read"]},
        "telegram:3": {"deny": ["*xec"]},
        "telegram:4": {"profile": "full"},
    }
    settings = config({"by_sender": by_sender}) | {"sessions": {"dm_scope": "main"}}
    async with running(
        tmp_path, config=settings, tools=lambda watch: [ScriptedTool("xec", done, watch), Mine("mine", done, watch)]
    ) as hark:
        told: dict[str, list[str]] = {}
        for sender in ("1", "2", "3", "4", "5"):
            await hark.write("go", sender=sender, answers=[(Call("xec"), Call("mine")), f"for {sender}"])
            await hark.until_texts(1, sender)
            parts = hark.model.requests[-1].messages[-1].parts
            told[sender] = [part.text for part in parts if isinstance(part, ToolResult)]
        assert len({(request.tools, request.system) for request in hark.model.requests}) == 1
        not_owner = "mine was not executed: only owners of this bot may use it."
        assert told == {
            "1": ["did ", "did "],
            "2": [
                "xec was not executed: not allowed by `tools.by_sender.telegram:2.allow`.",
                "mine was not executed: not allowed by `tools.by_sender.telegram:2.allow`.",
            ],
            "3": ["xec was not executed: not allowed by `tools.by_sender.telegram:3.deny`.", not_owner],
            "4": ["did ", not_owner],
            "5": [f"xec was not executed: {FOR_GUESTS}.", not_owner],
        }


async def test_what_only_owners_may_use_is_there_where_only_they_write(tmp_path: Path) -> None:
    async with running(tmp_path, config=config(), tools=lambda watch: [Mine("mine", done, watch)]) as hark:
        assert (await listed(hark))["mine"] == ""
        why = "only where nobody but owners of this bot writes"
        said = await listed(hark, "2")
        assert (said["mine"], said["schedule"]) == (why, why)
        await hark.say("go", "2", answers=[Call("mine"), "done"])
        assert offered(hark).isdisjoint({"mine", "schedule"})
        (result,) = hark.model.requests[-1].messages[-1].parts
        assert isinstance(result, ToolResult)
        assert result.text == f"mine was not executed: {why}."
        await hark.accept(in_group(hark, "/tools"))
        assert f"- mine: {why}" in (await hark.until_texts(1, CHAT))[0]


@pytest.mark.parametrize(("first", "second"), [("1", "2"), ("2", "1")])
async def test_all_who_wrote_a_turn_count(tmp_path: Path, first: str, second: str) -> None:
    """One of them may less: the turn may as little."""
    place = Place(channel="telegram", account="bot", chat=CHAT, kind=ChatKind.GROUP)
    one, two = (replace(message(), origin=Origin(place=place, sender=by, message_id=by)) for by in (first, second))
    async with opened(tmp_path / "state") as store:
        key = f"agent:main:telegram:group:{CHAT}"
        await store.inbox.accept([AcceptedMessage(message=one, session_key=key, turn_id="t1")])
        assert await store.inbox.steer("t1", two)
    model = ScriptedModel()
    model.add(Call("xec"))
    model.add("done")
    settings = config({"by_sender": {"telegram:2": {"deny": ["*xec"]}}})
    tools = [ScriptedTool("xec", done, model.watch)]
    async with running(tmp_path, config=settings, model=model, tools=lambda watch: tools) as hark:
        assert await hark.until_texts(1, CHAT) == ["done"]
        (result,) = model.requests[-1].messages[-1].parts
        assert isinstance(result, ToolResult)
        assert result.text == "xec was not executed: not allowed by `tools.by_sender.telegram:2.deny`."
        assert tools[0].begun == []
