"""Questions to people: the turn waits for an answer as it waits for a decision, and the answer is used once."""

from pathlib import Path

from agent.tools.ask_person import AskPersonTool
from channels.message import InboundKind
from tests.asking import approval
from tests.bot.test_parking import results
from tests.service import Hark, running, session_of
from tests.standins.script import Call

KEY = session_of("1")
WHICH = {"question": "Which colour?", "options": ["red", "blue"], "default": "red"}


async def asked(hark: Hark, arguments: dict[str, object] = WHICH) -> str:
    """The model asks, and the turn is parked."""
    hark.model.add(Call(AskPersonTool.name, arguments))
    hark.model.add("As you like.")
    await hark.write("paint it")
    ident = await approval(hark)
    await hark.delivered()
    return ident


async def ended(hark: Hark) -> None:
    await hark.until(lambda: [end for end in hark.ends(KEY) if end.is_last], "the end of the turn")
    await hark.delivered()


async def test_what_is_written_next_is_the_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await asked(hark)
        (question,) = hark.channel.sent
        assert "Which colour?" in question.body
        assert [button.label for button in question.buttons] == ["💬 red", "💬 blue"]
        await hark.write("green, rather\nor none")
        await ended(hark)
        assert results(hark) == ["They answered: green, rather\nor none"]
        assert hark.stored.approvals("state", "reason") == [("answered", "green, rather\nor none")]
        assert hark.stored.turns("state") == [("done",)], "the answer is no message of its own"


async def test_nobody_is_asked_who_does_not_read_it(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.add(Call(AskPersonTool.name, {**WHICH, "who": "telegram:2"}))
        hark.model.add("As you like.")
        await hark.write("paint it")
        await ended(hark)
        assert results(hark) == ["They do not read this conversation, so they were not asked. Go on with: red"]
        assert hark.stored.approvals("state") == []


async def test_nobody_answers(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await asked(hark, {**WHICH, "wait_hours": 2})
        hark.time.advance(2 * 3600)
        await hark.service.parts.lanes.sweep()
        await ended(hark)
        assert results(hark) == ["Nobody answered in 2 hours. Go on with: red"]


async def test_a_command_is_no_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        ident = await asked(hark)
        await hark.write("/status", kind=InboundKind.COMMAND)
        await hark.delivered()
        assert hark.stored.approvals("state") == [("open",)]
        assert await hark.service.parts.requests.decide(ident, "answered", "telegram:1", "red")
        await ended(hark)
