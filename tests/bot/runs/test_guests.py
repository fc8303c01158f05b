"""What the bot sends to others on the wish of somebody who is no owner: it says so, and it is little."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.message import ToolResult
from bot.persistence.approvals import Choice
from channels.message import InboundMessage
from tests.asking import AskingTool, approval
from tests.bot.approvals.test_approvals import OPEN
from tests.bot.runs.test_messaging import ELSEWHERE, FULL, ActingHark, service, written
from tests.bot.runs.test_messaging import GROUPS as IN_GROUPS
from tests.offering import offer
from tests.service import running
from tests.standins.script import Call
from tests.watch import ManualTime

# Guests write to others only where `message` is widened for them.
GROUPS = OPEN | IN_GROUPS
WISH = "Ann (telegram:2) asked me to pass this on:"
MOST = "One turn sends at most 3 messages to others for people who are no owners."


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every account offers everything."""
    offer(monkeypatch, FULL)


def told(hark: ActingHark) -> list[str]:
    """What the model was told of its calls, in their order."""
    found: dict[str, str] = {}
    for request in hark.model.requests:
        for message in request.messages:
            found |= {part.call_id: part.text for part in message.parts if isinstance(part, ToolResult)}
    return list(found.values())


async def asks(hark: ActingHark, *asked: dict[str, Any], by: Sequence[InboundMessage] = ()) -> list[str]:
    """Ann, who is no owner, has the model call the tool so; what it is told. by: who writes instead."""
    known = len(told(hark))
    for arguments in asked:
        hark.model.add(Call("message", arguments))
    hark.model.add("done")
    turns = len(hark.stored.turns(state="done"))
    await hark.accept(*(by or (written(hark, "do it", "2", "Ann"),)))
    await hark.until(lambda: len(hark.stored.turns(state="done")) == turns + 1, "the end of the turn")
    await hark.delivered()
    return told(hark)[known:]


async def known(hark: ActingHark) -> None:
    """Bob has written, and somebody in the kitchen."""
    hark.model.default = "hi"
    await hark.accept(written(hark, "hello", "3", "Bob"), written(hark, "hey", "-5", "Kitchen", "3"))
    await hark.until(lambda: len(hark.stored.turns(state="done")) == 2, "the answers")
    await hark.delivered()


async def test_it_says_on_whose_wish(tmp_path: Path) -> None:
    async with service(tmp_path, GROUPS) as hark:
        await known(hark)
        room = tmp_path / "workspace" / "people" / "telegram-2"
        room.mkdir(parents=True, exist_ok=True)
        (room / "out.txt").write_text("words")
        asked = await asks(
            hark,
            {"action": "send", "to": "Bob", "text": "Lunch?", "buttons": ["Yes"]},
            {"action": "upload", "to": "-5", "path": "out.txt"},
            {"action": "thread_reply", "to": "-5", "thread": "44", "text": "Type `/approve 1a2b3c4d once`"},
            {"action": "send", "text": "here"},
        )
        assert [one.partition(",")[0] for one in asked] == ["Sent"] * 4
        sent = [(one.place.chat, one.body) for one in hark.channel.sent[2:]]
        assert sent == [
            ("3", f"{WISH}\n\nLunch?"),
            ("-5", WISH),
            ("-5", f"{WISH}\n\n> Type `/approve 1a2b3c4d once`"),
            ("2", "here"),
            ("2", "done"),
        ]
        assert [one.label for one in hark.channel.sent[2].buttons] == ["💬 Yes"]
        await hark.say("what?", "3")
        assert f"<sent>\n{WISH}\n\nLunch?\n</sent>" in hark.model.requests[-1].messages[-1].text


async def test_owners_alone_are_not_named_and_not_counted(tmp_path: Path) -> None:
    async with service(tmp_path, GROUPS) as hark:
        await known(hark)
        lines = [f"message {number}" for number in range(5)]
        many = [{"action": "send", "to": "3", "text": line} for line in lines]
        asked = await asks(hark, *many, by=[written(hark, "do it", "1", "Owner")])
        assert len(asked) == 5
        assert hark.channel.texts("3")[1:] == lines


async def test_only_three_and_each_of_them_one_message(tmp_path: Path) -> None:
    async with service(tmp_path, GROUPS) as hark:
        await known(hark)
        hark.channel.rendered = lambda text: (text[:100], text[100:]) if len(text) > 100 else (text,)
        asked = await asks(
            hark,
            {"action": "send", "to": "3", "text": "x" * 200},
            *({"action": "send", "to": to, "text": f"{to}?"} for to in ("3", "-5", "3", "-5")),
            {"action": "send", "text": "here"},
        )
        assert asked[0] == "That is too long for one message, which is what others are sent."
        assert [one.partition(",")[0] for one in asked[1:4]] == ["Sent"] * 3
        assert asked[4] == MOST
        assert asked[5].startswith("Sent")
        assert (len(hark.channel.texts("3")), len(hark.channel.texts("-5"))) == (3, 2)
        again = await asks(hark, {"action": "send", "to": "3", "text": "Again."})
        assert again[0].startswith("Sent"), "it is counted for each turn"


async def test_the_count_holds_while_a_turn_is_parked_and_over_a_restart(tmp_path: Path) -> None:
    send = [Call("message", {"action": "send", "to": "3", "text": f"message {number}"}) for number in range(5)]
    async with running(tmp_path, config=OPEN, tools=lambda watch: [AskingTool()]) as hark:
        hark.model.default = "hi"
        await hark.say("hello", "3")
        for call in (*send[:2], Call("ask", {"label": "it"})):
            hark.model.add(call)
        await hark.write("do it", sender="2")
        ident = await approval(hark)
        await hark.delivered()
        time: ManualTime = hark.time
    async with running(tmp_path, config=OPEN, tools=lambda watch: [AskingTool()], time=time) as hark:
        for call in send[2:4]:
            hark.model.add(call)
        hark.model.add("done")
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await hark.until(lambda: "done" in hark.channel.texts("2"), "the end of the turn")
        assert [text.rpartition("\n")[2] for text in hark.channel.texts("3")] == ["message 2"]
        results = [part for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, ToolResult)]
        assert [part.text for part in results] == [MOST]


@pytest.mark.parametrize(
    "asked",
    [
        {"action": "edit", "message_id": "2", "text": "x"},
        {"action": "delete", "message_id": "2"},
        {"action": "react", "message_id": "2", "emoji": "👍"},
        {"action": "topic_create", "name": "x"},
    ],
)
async def test_what_cannot_say_so_is_not_done_elsewhere(tmp_path: Path, asked: dict[str, Any]) -> None:
    async with service(tmp_path, GROUPS) as hark:
        await known(hark)
        before = len(hark.channel.sent)
        (refused,) = await asks(hark, {**asked, "to": "-5"})
        assert refused == "In other conversations you can only send."
        assert [one.body for one in hark.channel.sent[before:]] == ["done"]
        assert hark.channel.performed == []
        (looked,) = await asks(hark, {"action": "read", "to": "-5"})
        assert looked == ELSEWHERE
        assert hark.channel.performed == []


async def test_a_name_does_not_change_the_line(tmp_path: Path) -> None:
    names = ("The owner asked me to say:\n\n", "**x** @all [a](http://b) /approve", "\u3164\u200b", "\u202eAnn")
    lines = (
        "The owner asked me to say (telegram:2)",
        "x all ahttpb approve (telegram:2)",
        "telegram:2",
        "Ann (telegram:2)",
    )
    async with service(tmp_path, GROUPS) as hark:
        await known(hark)
        for name, line in zip(names, lines, strict=True):
            await asks(hark, {"action": "send", "to": "3", "text": "x"}, by=[written(hark, "do it", "2", name)])
            assert hark.channel.texts("3")[-1] == f"{line} asked me to pass this on:\n\nx"


async def test_what_a_guest_asks_somebody_else_says_who_asks(tmp_path: Path) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        await hark.say("hello", "1")
        hark.model.add(Call("ask_person", {"question": "Is it tea time?", "who": "owner"}))
        await hark.accept(written(hark, "do it", "2", "Ann\n"))
        await approval(hark)
        await hark.delivered()
        (question,) = [one for one in hark.channel.sent if "tea time" in one.body and one.place.chat == "1"]
        assert "Asked on Telegram by Ann (telegram:2)." in question.body


async def test_somebody_else_is_not_asked_again_and_again(tmp_path: Path) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        await hark.say("hello", "1")
        for number in range(4):
            asked = {"question": f"Is it {number}?", "who": "owner", "wait_hours": 1}
            hark.model.add(Call("ask_person", asked))
        hark.model.add("done")
        await hark.accept(written(hark, "do it", "2", "Ann"))
        for number in range(3):
            await approval(hark, number + 1)
            await hark.delivered()
            hark.time.advance(3600)
            await hark.service.parts.lanes.sweep()
        await hark.until(lambda: "done" in hark.channel.texts("2"), "the end of the turn")
        await hark.delivered()
        (refused,) = [part.text for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, ToolResult)]
        assert refused.startswith("For people who are no owners others are not asked so often in one turn")
        assert not [one for one in hark.channel.sent if "Is it 3?" in one.body]
