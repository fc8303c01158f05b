"""Sub-agents and models that do not work: they wait as people's turns do, and their conversation is told once."""

from pathlib import Path
from typing import Any

from bot.runs.outages import MENDED_EVERY, PARKED_EVERY
from tests.bot.children.test_children import PARENT, child_of, settled, spawns
from tests.bot.runs.test_outages import config, pass_time
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Fail, Say
from tests.watch import ManualTime, Watch

KEYS = ("sk-first-key",)


def asks(request: Request, **more: Any) -> list[Any]:
    """What the model of the conversation says: it starts a sub-agent of the second model, and then rests."""
    text = request.last_user_text
    if "find out" in text and not request.tool_results:
        return [spawns(label="research", model="two/gpt", **more)]
    return [Say("noted" if "the sub-agent" in text else "asked")]


async def parked(hark: Hark) -> None:
    await hark.say("find out")
    await hark.until(lambda: hark.stored.turns("state", session_key=child_of(hark)) == [("parked",)], "the outage")


async def test_an_outage_delays_a_sub_agent_and_its_conversation_is_told_once(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.default = asks
        two.default = lambda request: [Fail(401)]
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            await parked(hark)
            now = hark.time.now()
        watch = Watch()
        given: dict[str, Any] = {"model": ScriptedModel(watch), "time": ManualTime(watch, now)}
        async with running(tmp_path, config=config(one, two), chosen=True, **given) as hark:
            two.default = lambda request: [Say("forty-two")]
            await pass_time(hark, MENDED_EVERY)
            await hark.until_texts(1)
            await settled(hark)
            assert hark.channel.texts() == ["noted"]
            assert sum("forty-two" in line for line in hark.stored.lines(PARENT)) == 1


async def test_it_waits_no_longer_than_it_may_take(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.default = lambda request: asks(request, timeout_seconds=60)
        two.default = lambda request: [Fail(401)]
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            await parked(hark)
            await pass_time(hark, 3 * PARKED_EVERY)
            assert hark.stored.turns("state", session_key=child_of(hark)) == [("parked",)]
            await pass_time(hark, PARKED_EVERY)
            await hark.until(lambda: "noted" in hark.channel.texts(), "the end")
            await settled(hark)
            assert '(the sub-agent "research" failed (outage). It says nothing.)' in hark.stored.lines(PARENT)[-1]
            assert not [text for text in hark.channel.texts() if "your message" in text]
            assert "API key" in hark.channel.texts()[-2]  # that is told to the owner, here once
            assert len(hark.channel.texts()) == 3
