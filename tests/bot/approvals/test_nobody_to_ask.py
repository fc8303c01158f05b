"""A command that no sandbox of this machine holds is refused at once where nobody can be asked, and never parked."""

from pathlib import Path
from typing import Any

import pytest

from channels.message import ChatKind, InboundKind, Origin, Place
from tests.bot.approvals.test_approvals import OPEN, Commanding, begin
from tests.bot.approvals.test_parking import results
from tests.service import running
from tests.standins.script import Call

WHY = "It was not executed: nobody can be asked here."
PROGRAM = Place(channel="http", account="", chat="ci", kind=ChatKind.API)
ALONE: dict[str, dict[str, Any]] = {
    "a job": {"kind": InboundKind.JOB},
    "a heartbeat turn": {"kind": InboundKind.WAKE},
    "a program": {"kind": InboundKind.API, "origin": Origin(place=PROGRAM, sender="owner", message_id="7")},
}


@pytest.mark.parametrize("runs", [False, True], ids=["", "ask_fallback: full"])
@pytest.mark.parametrize("fields", ALONE.values(), ids=ALONE)
async def test_it_is_refused_at_once(tmp_path: Path, fields: dict[str, Any], runs: bool) -> None:
    tool = Commanding(alone=WHY, runs_unanswered=runs)
    async with running(tmp_path, config=OPEN, tools=lambda watch: [tool]) as hark:
        hark.model.add(Call("ask", {"label": "it"}))
        hark.model.add("so be it")
        await hark.write("do it", **fields)
        await hark.until(lambda: not hark.stored.turns(state={"queued", "running", "parked"}), "the end")
        await hark.until(lambda: len(hark.stored.turns(state="done")) == 1, "the end")
        assert hark.stored.approvals() == [], "nothing waits"
        assert tool.begun == (["it"] if runs else [])
        assert (results(hark) == [WHY]) != runs


async def test_a_person_is_asked_as_ever(tmp_path: Path) -> None:
    tool = Commanding(alone=WHY)
    async with running(tmp_path, config=OPEN, tools=lambda watch: [tool]) as hark:
        await begin(hark, then="")
        assert hark.stored.turns("state") == [("parked",)]
        assert tool.begun == []
