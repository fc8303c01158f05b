"""What is asked in one conversation and decided, answered or asked again from another one, or too early."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.tools.base import Ask, CallContext
from agent.tools.conversation import AskPersonTool
from bot.approvals.commands import LATE
from bot.approvals.decisions import NotDecided
from bot.persistence.approvals import Approval, Choice
from channels.message import InboundKind, Quoted
from channels.outgoing import Action, Delivery, Refused, SendResult, Sent
from tests.asking import approval
from tests.bot.approvals.test_approvals import (
    GROUP,
    IN_GROUPS,
    Commanding,
    Finding,
    at,
    begin,
    labels,
    order,
    press,
    shows,
)
from tests.bot.approvals.test_parking import over
from tests.service import Hark, Labelled, running, session_of
from tests.standins.script import Call


async def test_what_is_asked_again_from_elsewhere_keeps_the_tools_of_where_it_was_asked(tmp_path: Path) -> None:
    config = {**IN_GROUPS, "approvals": {"timeout_seconds": 90}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark, **at(GROUP, "2"))
        await hark.time.until_pause(90)
        hark.time.advance(90)
        await hark.until(lambda: "done" in hark.channel.texts("-100"), "the end of the turn")
        assert await order(hark, f"/approve {ident} again", "1") == ""
        await approval(hark, 2)
        await hark.delivered()
        assert labels(shows(hark, "-100")[-1]) == ["Allow once", "Always allow", "Deny"]


async def test_of_several_offers_to_ask_again_one_is_taken(tmp_path: Path) -> None:
    config = {**IN_GROUPS, "approvals": {"timeout_seconds": 90, "forward_to": "telegram:-100"}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()], made=Finding) as hark:
        await begin(hark, "2")
        await hark.time.until_pause(90)
        hark.time.advance(90)
        await hark.until(lambda: labels(shows(hark, "-100")[-1]) == labels(shows(hark, "2")[-1]), "the edits")
        await hark.delivered()
        there, here = shows(hark, "-100")[-1], shows(hark, "2")[-1]
        await press(hark, "Ask again", there)
        await approval(hark, 2)
        await hark.delivered()
        await press(hark, "Ask again", here, "2")
        assert hark.channel.sent[-1].body == "That was asked again before."
        assert len(hark.stored.approvals()) == 2


async def ask(hark: Hark, sender: str, question: str, count: int) -> None:
    """The model asks an owner, whoever writes."""
    await hark.write("do it", sender=sender, answers=[Call(AskPersonTool.name, {"question": question, "who": "owner"})])
    await hark.until(lambda: len(hark.stored.approvals()) == count, question)
    await hark.delivered()


async def test_words_that_may_mean_several_questions_answer_none(hark: Hark) -> None:
    await hark.say("hi", answers=["hello"])
    await ask(hark, "2", "Delete all?", 1)
    await ask(hark, "3", "Is it tea time?", 2)
    await hark.say("yes", answers=["Which one?"])
    assert hark.stored.approvals("state") == [("open",), ("open",)]
    hark.model.add("Then not.")
    (first,) = [one for one in shows(hark) if "Delete all?" in one.body]
    await hark.write("no", reply_to=str(hark.channel.sent.index(first) + 1))
    await hark.until(lambda: "Then not." in hark.channel.texts("2"), "the answer")
    await hark.write("yes", answers=["It is."])
    await hark.until(lambda: "It is." in hark.channel.texts("3"), "the other answer")


async def test_what_was_written_before_a_question_is_no_answer(hark: Hark) -> None:
    await ask(hark, "1", "Delete all?", 1)
    await hark.write("yes, thanks", sent_at=hark.time.now() - 60_000)
    await hark.delivered()
    assert hark.stored.approvals("state") == [("open",)]
    await hark.write("no", sent_at=hark.time.now() - 5_000, answers=["Then not.", "You are welcome."])
    await hark.until(lambda: "You are welcome." in hark.channel.texts(), "both answers")
    assert hark.stored.approvals("reason") == [("no",)]


async def test_a_request_that_was_never_shown_is_not_edited(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:

        async def refuse(delivery: Delivery) -> SendResult:
            if not delivery.source.key.startswith("ask:"):
                assert delivery.action is not Action.EDIT
                return Sent("9")
            ((ident,),) = hark.stored.approvals("approval_id")
            assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
            await hark.until(lambda: hark.stored.deliveries(source=f"told:ask:{ident}"), "the edit")
            return Refused("no")

        hark.channel.on_send = refuse
        await hark.write("do it", answers=[(Call("ask", {"label": "it"}), "done")])
        await over(hark)
        assert hark.stored.deliveries("state", "cause", action="edit") == [("expired", "nothing to edit")]


async def test_no_secret_is_in_what_is_asked(tmp_path: Path) -> None:
    config: dict[str, Any] = {"gateway": {"token": "tok-very-secret-0123"}, "tools": {"require_approval": ["write"]}}
    async with running(tmp_path, config=config) as hark:
        hark.model.add(Call("exec", {"command": "curl -H tok-very-secret-0123 example.org", "needs": "host"}))
        hark.model.add(Call("write", {"path": "a", "content": "tok-very-secret-0123"}))
        await hark.write("do it")
        await approval(hark)
        await hark.delivered()
        ((kept,),) = hark.stored.approvals("ask")
        assert "curl -H [secret] example.org" in kept
        assert "tok-very-secret-0123" not in hark.channel.sent[0].body
        await press(hark, "Deny", hark.channel.sent[0])
        await approval(hark, 2)
        await hark.delivered()
        assert not [one.body for one in hark.channel.sent if "tok-very-secret-0123" in one.body]
        assert hark.ends(session_of("1"))


async def test_an_approver_who_may_not_write_may_decide(tmp_path: Path) -> None:
    config = {"channels": {"telegram": {"dm": {"policy": "pairing"}}}, "approvals": {"approvers": ["telegram:5"]}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        await hark.write("hi", sender="5")
        ident = await begin(hark, then="")
        (shown,) = shows(hark, "5")
        await order(hark, f"/approve {ident} once", "6")
        assert await order(hark, "/status", "5") == ""
        assert hark.stored.approvals("state") == [("open",)]
        hark.model.add("done")
        await press(hark, "Allow once", shown, "5")
        await over(hark)
        assert hark.stored.approvals("state") == [("once",)]


async def test_in_a_group_an_answer_is_a_reply(tmp_path: Path) -> None:
    """The bot hears nothing else there, unless it is configured to."""
    groups: dict[str, Any] = {"channels": {"telegram": {"groups": {"allow": {"-100": {}}}}}}
    async with running(tmp_path, config=groups) as hark:
        hark.model.add(Call(AskPersonTool.name, {"question": "Which?", "options": ["red", "blue"]}))
        await hark.write("paint it", **at(GROUP, "2"), mentioned=True)
        await approval(hark)
        await hark.delivered()
        (shown,) = shows(hark, "-100")
        assert "or reply to this with other words. (whoever asked" in shown.body
        await hark.write("blue", **at(GROUP, "2"))
        hark.model.add("done")
        mine = Quoted(author="Hark", text="Which?", by_me=True)
        await hark.write("green", **at(GROUP, "2"), reply_to="1", replied=mine)
        await hark.until(lambda: "done" in hark.channel.texts("-100"), "the answer")
        assert hark.stored.approvals("reason") == [("green",)]


async def test_nobody_is_asked_to_whom_the_bot_may_not_speak(tmp_path: Path) -> None:
    pairing = {"channels": {"telegram": {"dm": {"policy": "pairing"}}}}
    async with running(tmp_path, config=pairing) as hark:
        await hark.write("hi", sender="5")
        hark.model.add(Call(AskPersonTool.name, {"question": "The key is 7. Right?", "who": "telegram:5"}), "done")
        await hark.write("do it")
        await over(hark)
        assert not [text for text in hark.channel.texts("5") if "key" in text]


# What was decided, shown or allowed earlier, and holds no more when it is used.


@pytest.mark.parametrize("gap", [" " * 41, "\n" * 6, "  \n"])
async def test_a_gap_in_what_is_shown_is_marked(tmp_path: Path, gap: str) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding(f"ls{gap}rm")]) as hark:
        await begin(hark, then="")
        (shown,) = shows(hark)
        assert "U+00" in shown.body
        assert "It holds characters that cannot be seen; they are written as ⟨U+…⟩." in shown.body


class Moving(Commanding):
    """Asks about another place each time that a test says so, and runs when nobody answers."""

    async def asks(self, parameters: Labelled, context: CallContext) -> Ask | None:
        """See Tool."""
        return Ask(digest=self.where, subject=f"make {self.where}", runs_unanswered=True, seconds=60)


async def test_what_expired_counts_for_what_was_shown(tmp_path: Path) -> None:
    tool = Moving()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await begin(hark)
        tool.where = "elsewhere"
        await hark.time.until_pause(60)
        hark.time.advance(60)
        second = await approval(hark, 2)
        assert tool.begun == [], "nobody was asked about that"
        assert await hark.service.parts.requests.decide(second, Choice(verdict="once"), "telegram:1")
        await over(hark)
        assert tool.begun == ["it"]


@pytest.mark.parametrize("typed", [True, False])
async def test_who_decides_a_moment_too_late_is_told(tmp_path: Path, typed: bool) -> None:
    """By a command, or as a program."""
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark)
        find = hark.service.parts.store.approvals.find

        async def found(named: str) -> Sequence[Approval]:
            """What somebody reads just before another one decides."""
            hark.service.parts.store.approvals.find = find  # type: ignore[method-assign]
            before = await find(named)
            assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:3")
            return before

        hark.service.parts.store.approvals.find = found  # type: ignore[method-assign]
        if typed:
            assert await order(hark, f"/approve {ident} deny") == LATE
        else:
            with pytest.raises(NotDecided, match="That was decided before") as raised:
                await hark.service.parts.requests.settle(ident, Choice(verdict="denied"))
            assert raised.value.code == "ended"
        await over(hark)
        assert hark.stored.approvals("state", "decided_by") == [("once", "telegram:3")]


async def test_who_may_no_longer_approve_does_not(tmp_path: Path) -> None:
    """Neither by a button nor by a plain word, and /approve does not exist for them, whatever they were shown."""
    before: dict[str, Any] = {"owners": ["telegram:1", "telegram:3"]}
    tool = Commanding()
    async with running(tmp_path, config=before, tools=lambda watch: [tool]) as hark:
        ident = await begin(hark, "3", then="")
        await hark.delivered()
    async with running(tmp_path, tools=lambda watch: [tool], time=hark.time) as hark:
        answer = await order(hark, f"/approve {ident} once", "3", kind=InboundKind.BUTTON)
        assert answer.startswith("An owner decides about `rm -rf build`, nobody else.")
        await hark.write("yes", sender="3", reply_to="1")
        await hark.until(lambda: len(hark.channel.sent) == 2, "the answer to the reply")
        assert hark.channel.sent[1].body.startswith("An owner decides")
        assert hark.stored.approvals("state") == [("open",)]
