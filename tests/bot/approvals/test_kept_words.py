"""What people's own words decide, as it is kept: carried out after a start, also in the form of earlier versions."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from channels.message import ReplyDecision
from tests.bot.approvals.test_approvals import Commanding, at, begin, press, shows
from tests.bot.approvals.test_plain_words import DIRECT, state
from tests.bot.approvals.test_questions import OPEN, asked
from tests.service import Hark, running


async def written(hark: Hark, text: str, **fields: Any) -> dict[str, Any]:
    """Somebody writes, and the service ends before it is carried out; the command as it is kept."""
    hark.service.parts.commands.begin = lambda *_: None  # type: ignore[method-assign]
    await hark.write(text, **at(DIRECT, "1"), **fields)
    ((payload,),) = hark.stored.messages("payload", kind="command", state="waiting")
    kept: dict[str, Any] = json.loads(payload)
    return kept


def as_before(home: Path, kept: dict[str, Any], text: str) -> None:
    """Keep a command as earlier versions did: as words to be parsed, and nothing beside them."""
    older = json.dumps({name: value for name, value in kept.items() if name != "decides"} | {"text": text})
    with contextlib.closing(sqlite3.connect(home / "state" / "hark.db")) as db, db:
        db.execute("UPDATE inbox SET payload=? WHERE kind='command' AND state='waiting'", (older,))


@pytest.mark.parametrize(
    ("said", "decision", "become"),
    [("Yes.", "once", "once"), ("no", "denied", "denied"), ("/tmp instead, please", "ask", "open")],
)
@pytest.mark.parametrize("older", [False, True])
async def test_a_reply_is_carried_out_after_a_start(
    tmp_path: Path, said: str, decision: ReplyDecision, become: str, older: bool
) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark, then="", **at(DIRECT, "1"))
        kept = await written(hark, said, reply_to="1")
        assert (kept["text"], kept["decides"]) == (said, {"request_id": ident, "decision": decision, "picked": []})
    if older:
        order = {"once": "once", "denied": "deny", "ask": f"ask {said}"}[decision]
        as_before(tmp_path, kept, f"/approve {ident} {order}")
    async with running(tmp_path, tools=lambda watch: [Commanding()], time=hark.time) as hark:
        hark.model.add("done")
        hark.model.tolerate("unused")
        assert await state(hark) == [become]
        if become == "open":
            await press(hark, "Deny and pass on these words", shows(hark)[-1])
            assert hark.stored.approvals("state", "reason") == [("denied", said)]


@pytest.mark.parametrize("older", [False, True])
async def test_an_answer_is_carried_out_after_a_start(tmp_path: Path, older: bool) -> None:
    said = "/green, rather\nor none"  # no command, though it looks like one
    async with running(tmp_path) as hark:
        ident = await asked(hark, OPEN)
        kept = await written(hark, said)
        assert (kept["text"], kept["decides"]) == (said, {"request_id": ident, "decision": "answered", "picked": []})
        hark.model.tolerate("unused")
    if older:
        as_before(tmp_path, kept, f"/answer {ident} {said}")
    async with running(tmp_path, time=hark.time) as hark:
        hark.model.add("As you like.")
        hark.model.tolerate("unused")
        assert await state(hark) == ["answered"]
        assert hark.stored.approvals("reason") == [(said,)]
