"""Questions to people: the turn waits for an answer as it waits for a decision, and the answer is used once."""

from pathlib import Path

import pytest

from agent.tools.conversation import AskPersonTool
from bot.persistence.approvals import Choice
from channels.message import Attachment, InboundKind, Origin
from tests.asking import approval
from tests.bot.approvals.test_approvals import GROUP, IN_GROUPS, at
from tests.bot.approvals.test_parking import results
from tests.service import Hark, running, session_of
from tests.standins.script import Call

KEY = session_of("1")
OPEN: dict[str, object] = {"question": "Which colour?"}
WHICH = {"question": "Which colour?", "options": ["red", "blue"], "default": "red"}


async def asked(hark: Hark, arguments: dict[str, object] = WHICH) -> str:
    """The model asks, and the turn is parked."""
    await hark.write("paint it", answers=[Call(AskPersonTool.name, arguments), "As you like."])
    ident = await approval(hark)
    await hark.delivered()
    return ident


async def ended(hark: Hark) -> None:
    await hark.until(lambda: [end for end in hark.ends(KEY) if end.is_last], "the end of the turn")
    await hark.delivered()


async def test_what_is_written_next_is_the_answer(hark: Hark) -> None:
    await asked(hark, OPEN)
    (question,) = hark.channel.sent
    assert question.body.startswith("❓ Which colour?\n\nSimply write the answer.")
    await hark.write("green, rather\nor none")
    await ended(hark)
    assert results(hark) == ["They answered: green, rather\nor none"]
    assert hark.stored.approvals("state", "reason") == [("answered", "green, rather\nor none")]
    assert hark.stored.turns("state") == [("done",)], "the answer is no message of its own"


@pytest.mark.parametrize("said", ["what time is it in Tokyo?", "wie spät ist es? ", "真的吗？", "(sure?)", "why?!"])
async def test_a_question_back_is_no_answer(said: str, hark: Hark) -> None:
    ident = await asked(hark, OPEN)
    await hark.write(said)
    told = f"⏳ I am still waiting for an answer about `Which colour?` (`/answer {ident[:8]} …`)"
    told += f", and read “{said.strip()}” then."
    await hark.until(lambda: told in hark.channel.texts(), "what is waited for")
    assert hark.stored.approvals("state") == [("open",)]
    await hark.write("green")
    hark.model.add("It is late.")
    await hark.until(lambda: "It is late." in hark.channel.texts(), "what was asked meanwhile is read")
    assert hark.stored.approvals("reason") == [("green",)]


ANSWERS = [
    (["1", "6", "24"], "24", "24"),
    (["1", "6", "24"], "3", None),
    (["1.5", "other"], "2", None),
    (["red", "blue"], "2", "blue"),
    (["red", "blue"], "3", None),
    (["red", "blue"], "0", None),
    (["red", "blue"], " BLUE ", "blue"),
    (["red", "Red"], "Red", "Red"),
    (["red", "blue"], "green, rather", None),
    (["Yes", "No"], "what time is it in Tokyo?", None),
]


@pytest.mark.parametrize(("options", "said", "answer"), ANSWERS)
async def test_an_option_its_number_or_a_reply_answers(
    options: list[str], said: str, answer: str | None, hark: Hark
) -> None:
    await asked(hark, {"question": "Which?", "options": options})
    (question,) = hark.channel.sent
    assert [button.label for button in question.buttons] == [f"💬 {one}" for one in options]
    await hark.write(said)
    if answer is None:
        await hark.until(lambda: len(hark.channel.sent) == 2, "what is waited for")
        assert hark.channel.sent[1].buttons == question.buttons
        assert hark.stored.approvals("state") == [("open",)]
        await hark.write(said, reply_to="1", answers=["As for the rest."])
    await ended(hark)
    assert hark.stored.approvals("reason") == [(answer or said.strip(),)]


async def test_a_file_is_no_answer(hark: Hark) -> None:
    """It would be lost: an answer is words."""
    await asked(hark, OPEN)
    hark.model.tolerate("unused")
    await hark.write("green", attachments=(Attachment(kind="file", ref="f", name="green.txt"),))
    await hark.until(lambda: hark.stored.messages("kind", state="waiting") == [("message",)], "the message waits")
    assert hark.stored.approvals("state") == [("open",)]


async def test_another_bot_answers_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS) as hark:
        await hark.write("paint it", **at(GROUP, "1"), answers=[Call(AskPersonTool.name, {**OPEN, "who": "anyone"})])
        await approval(hark)
        await hark.delivered()
        for reply in ("", "1"):
            number = f"5{reply}"
            bot = Origin(place=GROUP, sender="7", message_id=number, by_bot=True)
            await hark.write("green", origin=bot, event_key=f"m:-100:{number}", reply_to=reply)
        await hark.delivered()
        assert hark.stored.messages("kind", state="waiting") == [("message",)] * 2
        assert hark.stored.approvals("state") == [("open",)]
        await hark.write("which?", **at(GROUP, "2"))
        await hark.until(lambda: "“which?”" in hark.channel.sent[-1].body, "a person is told what is waited for")
        await hark.delivered()
        assert len(hark.channel.sent) == 2, "bots are told nothing, or they would answer that"


async def test_nobody_is_asked_who_does_not_read_it(hark: Hark) -> None:
    await hark.write("paint it", answers=[Call(AskPersonTool.name, {**WHICH, "who": "telegram:2"}), "As you like."])
    await ended(hark)
    assert results(hark) == ["They do not read this conversation, so they were not asked. Go on with: red"]
    assert hark.stored.approvals("state") == []


async def test_nobody_answers(hark: Hark) -> None:
    await asked(hark, {**WHICH, "wait_hours": 2})
    hark.time.advance(2 * 3600)
    await hark.service.parts.lanes.sweep()
    await ended(hark)
    assert results(hark) == ["Nobody answered in 2 hours. Go on with: red"]


async def test_a_command_is_no_answer(hark: Hark) -> None:
    ident = await asked(hark)
    await hark.write("/status", kind=InboundKind.COMMAND)
    await hark.delivered()
    assert hark.stored.approvals("state") == [("open",)]
    assert await hark.service.parts.requests.decide(ident, Choice(verdict="answered", reason="red"), "telegram:1")
    await ended(hark)
