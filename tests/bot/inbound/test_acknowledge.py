"""A reaction says that a message was seen, once, and goes when the answer is there, whatever became of it."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from bot.replies.reactions import acknowledge
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Action
from channels.settings import Acknowledgement
from tests.asking import AskingTool, approval
from tests.service import Hark, running
from tests.standins.script import Call, Fail
from tests.stored import Like

ACK = {"channels": {"telegram": {"ack": {"emoji": "👀"}}}}


def reactions(hark: Hark) -> list[tuple[str, str]]:
    return [(sent.body, sent.target) for sent in hark.channel.sent if sent.action is Action.REACT]


async def test_it_stands_from_acceptance_to_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        message = hark.message("hello")
        await hark.accept(message)
        await hark.accept(message)
        await hark.until(lambda: len(reactions(hark)) == 2, "the reaction and its end")
        await hark.delivered()
    assert reactions(hark) == [("👀", "1"), ("", "1")]
    actions = [sent.action for sent in hark.channel.sent]
    assert actions == [Action.REACT, Action.SEND, Action.REACT]


async def test_it_goes_when_the_answer_fails(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        await hark.write("hello", answers=[Fail(404)])
        await hark.until(lambda: len(reactions(hark)) == 2, "the end of the reaction")


async def test_it_goes_with_what_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        await hark.hanging("hello")
        await hark.write("one more", "and one more")
        await hark.until(lambda: len(reactions(hark)) == 3, "the reactions")
        await hark.write("/stop")
        await hark.until(lambda: len(reactions(hark)) == 6, "their ends")
    assert sorted(reactions(hark)) == [("", "1"), ("", "2"), ("", "3"), ("👀", "1"), ("👀", "2"), ("👀", "3")]


async def test_it_goes_with_a_reply_that_decides(tmp_path: Path) -> None:
    asking = AskingTool()
    async with running(tmp_path, config=ACK, tools=lambda watch: [asking]) as hark:
        await hark.write("hello", answers=[Call("ask", {"label": "shut it"})])
        await approval(hark)
        await hark.delivered()
        (shown,) = hark.stored.deliveries("platform_id", source=Like("ask:%"))
        await hark.write("no", reply_to=shown[0], answers=["I leave it."])
        await hark.until(lambda: {("", "1"), ("", "2")} <= set(reactions(hark)), "both ends")


async def test_it_goes_after_a_silent_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        await hark.write("hello", answers=[(Call("read", {"path": "USER.md"}), "  "), " "])
        await hark.until(lambda: len(reactions(hark)) == 2, "the end of the reaction")


async def test_it_goes_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, config=ACK) as hark:
        await hark.hanging("hello")
        await hark.until(lambda: reactions(hark), "the reaction")
    async with running(tmp_path, config=ACK) as hark:
        await hark.until(lambda: reactions(hark) == [("", "1")], "its end")


@pytest.mark.parametrize(
    ("scope", "kind", "mentioned", "seen"),
    [
        ("direct", ChatKind.DIRECT, False, True),
        ("direct", ChatKind.GROUP, True, False),
        ("mention", ChatKind.DIRECT, True, False),
        ("mention", ChatKind.GROUP, True, True),
        ("mention", ChatKind.GROUP, False, False),
        ("all", ChatKind.GROUP, False, True),
    ],
)
def test_on_what(scope: Literal["direct", "mention", "all"], kind: ChatKind, mentioned: bool, seen: bool) -> None:
    place = Place(channel="telegram", account="bot", chat="1", kind=kind)
    message = InboundMessage(
        origin=Origin(place=place, sender="1", message_id="7"),
        event_key="m:1:7",
        kind=InboundKind.MESSAGE,
        text="hello",
        sent_at=0,
        mentioned=mentioned,
    )
    wanted = Acknowledgement(emoji="👀", scope=scope)
    assert [(one.body, one.target) for one in acknowledge(message, wanted)] == ([("👀", "7")] if seen else [])
    assert acknowledge(message, Acknowledgement(emoji="", scope=scope)) == ()
    assert acknowledge(replace(message, kind=InboundKind.COMMAND), wanted) == ()
