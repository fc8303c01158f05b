"""The reaction to a message says what the bot is doing with it, where that is configured."""

from pathlib import Path

import pytest

from channels.outgoing import Action
from tests.asking import AskingTool, approval
from tests.service import Hark, ScriptedTool, running
from tests.standins.script import Call, Fail

ACK = {"channels": {"telegram": {"ack": {"emoji": "👀", "states": {"done": "👌"}}}}}


def changes(hark: Hark) -> list[str]:
    return [what for kind, what in hark.channel.log if kind == "react"]


def planned(hark: Hark) -> list[str]:
    return [sent.body for sent in hark.channel.sent if sent.action is Action.REACT]


async def test_it_follows_the_run(tmp_path: Path) -> None:
    async def act(label: str) -> str:
        await hark.until(lambda: changes(hark) == ["👀>🤔 on 1"], "the sign of thinking")
        await hark.time.until_pause(1.5)
        hark.time.advance(1.5)
        await hark.until(lambda: changes(hark)[-1:] == ["🤔>⚡ on 1"], "the sign of a tool")
        return label

    async with running(tmp_path, config=ACK, tools=lambda watch: [ScriptedTool("act", act, watch)]) as hark:
        hark.model.add(Call("act", {"label": "it"}))
        hark.model.add("There.")
        await hark.write("hello")
        await hark.until(lambda: planned(hark) == ["👀", "", "👌"], "the end")
    assert changes(hark) == ["👀>🤔 on 1", "🤔>⚡ on 1"]


async def test_it_says_that_a_person_is_awaited(tmp_path: Path) -> None:
    asking = AskingTool()
    async with running(tmp_path, config=ACK, tools=lambda watch: [asking]) as hark:
        hark.model.add(Call("ask", {"label": "shut it"}))
        await hark.write("hello")
        await approval(hark)
        await hark.until(lambda: changes(hark)[-1:] != [] and changes(hark)[-1].endswith(">🙏 on 1"), "the sign")
        assert planned(hark) == ["👀"]


async def test_a_failure_stays(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        hark.model.add(Fail(404))
        await hark.write("hello")
        await hark.until(lambda: planned(hark) == ["👀", "", "😢"], "the end")


@pytest.mark.parametrize(("ack", "last"), [({"emoji": "👀"}, ""), ({"scope": "all"}, "There.")])
async def test_it_stays_as_it_is_where_nothing_is_configured(tmp_path: Path, ack: dict[str, object], last: str) -> None:
    async with running(tmp_path, config={"channels": {"telegram": {"ack": ack}}}) as hark:
        hark.model.add("There.")
        await hark.write("hello")
        await hark.until(lambda: hark.channel.sent and hark.channel.sent[-1].body == last, "the end")
        await hark.delivered()
    assert changes(hark) == []
