"""A turn that ends in silence, and what people are told of what was to be changed and was not."""

from pathlib import Path

import pytest

from agent.events import MessageStart, Outcome, ToolExecutionEnd
from agent.tools.conversation import STAY_SILENT
from bot.people.access import OWNER
from bot.persistence.approvals import Choice
from tests.agent.test_loop import answer_label, results, tool
from tests.asking import ASKED, AskingTool, approval, said
from tests.scripted_model import texts
from tests.service import Json, running, session_of
from tests.standins.script import Call

SAID = {"channels": {"telegram": {"streaming": {"min_chars": 10, "max_chars": 64}}}}


async def test_silence_ends_the_turn_without_another_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=SAID, tools=tool("act", answer_label)) as hark:
        hark.model.add(
            "This stands in a paragraph.\n\nThis was not on its way.",
            Call("act", {"label": "a"}, id="one"),
            Call(STAY_SILENT, {"reason": "nothing to say"}, id="two"),
        )
        reply = await hark.say("(to somebody else)")
        rows = hark.stored.calls("call_id", "state")
        hark.model.add("Yes?")
        after = await hark.say("hello?")
    assert reply.texts == ["This stands in a paragraph."]
    assert (reply.outcome, len(reply.of(MessageStart))) == (Outcome.COMPLETED, 1)
    assert rows == [("one", "done"), ("two", "done")]
    assert [(end.call_id, end.state) for end in reply.of(ToolExecutionEnd)] == [("one", "done"), ("two", "done")]
    assert after.texts == ["Yes?"]
    assert [result.call_id for result in results(hark, 2)] == ["one", "two"]


async def test_silence_that_is_called_wrongly_is_none(tmp_path: Path) -> None:
    async with running(tmp_path, config={"tools": {"deny": ["stay_*"]}}) as hark:
        hark.model.add(Call(STAY_SILENT))
        hark.model.add("It is denied here.")
        denied = await hark.say("hello")
    async with running(tmp_path) as hark:
        hark.model.add(Call(STAY_SILENT, '{"reason": '))
        hark.model.add("So I speak.")
        wrong = await hark.say("hello")
    assert (denied.texts, wrong.texts) == (["It is denied here."], ["So I speak."])


async def test_what_came_meanwhile_is_answered(tmp_path: Path) -> None:
    async def steered(label: str) -> str:
        ((turn_id,),) = hark.stored.turns("turn_id")
        assert await hark.service.parts.api.steer(turn_id, "and this?", OWNER)
        return "done"

    async with running(tmp_path, tools=tool("act", steered)) as hark:
        hark.model.add(Call(STAY_SILENT), Call("act"))
        hark.model.add("That, yes.")
        reply = await hark.say("hello")
        assert texts(hark.model.requests[1], "user")[-1].endswith("and this?")
    assert reply.texts == ["That, yes."]


GOOD = Call("write", {"path": "a.txt", "content": "a"})
BAD = Call("write", {"path": "../a.txt", "content": "a"})
LINE = "(`write` failed: "


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([[BAD]], True),
        ([[BAD], [GOOD]], True),  # another file
        ([[GOOD], [GOOD]], True),  # it exists by then
        ([[GOOD], [GOOD], [Call("write", {"path": "a.txt", "content": "b", "mode": "overwrite"})]], False),
        ([[Call("write", '{"path": ')], [GOOD]], False),
        ([[Call("read", {"path": "../a.txt"})]], False),
        ([[GOOD]], False),
    ],
)
async def test_a_change_that_failed_for_good_is_told(tmp_path: Path, answers: list[list[Call]], told: bool) -> None:
    async with running(tmp_path) as hark:
        for calls in answers:
            hark.model.add(*calls)
        hark.model.add("All is well.")
        reply = await hark.say("write it down")
        hark.model.add("Good day.")
        later = await hark.say("hello")
    assert reply.texts[0] == "All is well."
    assert [text.startswith(LINE) for text in reply.texts[1:]] == [True] * told
    assert later.texts == ["Good day."]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ({"command": "printf 'a\\n' | grep b"}, []),
        ({"command": "exit 4", "background": True}, []),
        ({"command": "true", "cwd": "../elsewhere"}, ["(`exec` failed: "]),
        ({"command": "sleep 60", "timeout_seconds": 0.1}, ["(`exec` failed: stopped after its time limit"]),
    ],
)
async def test_an_exit_code_is_a_result_and_no_failure(tmp_path: Path, command: Json, told: list[str]) -> None:
    async with running(tmp_path, config={"tools": {"exec": {"security": "full"}}}) as hark:
        hark.model.add(Call("exec", command))
        hark.model.add("There is none.")
        reply = await hark.say("is there a b?")
    assert reply.texts[0] == "There is none."
    assert [text.startswith(line) for text, line in zip(reply.texts[1:], told, strict=True)] == [True] * len(told)


async def test_what_people_denied_is_no_failure(tmp_path: Path) -> None:
    tool = AskingTool()
    tool.changes = True
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        hark.model.add(Call("ask", {"label": "it"}))
        hark.model.add("As you like.")
        await hark.write("do it")
        assert await hark.service.parts.requests.decide(await approval(hark), Choice(verdict="denied"), "telegram:1")
        await hark.until(lambda: [end for end in hark.ends(session_of("1")) if end.is_last], "the end of the turn")
        await hark.delivered()
        assert said(hark) == [ASKED, "As you like."]
