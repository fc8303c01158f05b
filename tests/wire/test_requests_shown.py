"""Requests on each platform: all of a long one is there, and what was decided takes the place of the buttons."""

import re
from pathlib import Path
from typing import Any

import pytest

from bot.persistence.approvals import Choice
from tests.bot.approvals.test_approvals import Commanding
from tests.standins.script import Call
from tests.wire.platforms import SIDES, Discord, Side, Slack, Telegram
from tests.wire.stage import staged

pytestmark = pytest.mark.xdist_group("wire-platforms")
every = pytest.mark.parametrize("name", list(SIDES))
LINES = [f"echo {number:04} `date` && <&{'x' * 20}>" for number in range(850)]
LONG = "\n".join(LINES) + "\n" + "y" * 3000 + "\u202e"


def offers(side: Side) -> int:
    """How many buttons stand below the bot's messages to Alice now."""
    server: Any = side.server
    person, where = side._where("alice", None)  # type: ignore[attr-defined]
    match side:
        case Telegram():
            last: dict[int, Any] = {one.message_id: one for one in server.sent if one.chat_id == where.id}
            return sum(len(one.params.get("reply_markup", {}).get("inline_keyboard", ())) for one in last.values())
        case Slack():
            return sum(len(server.buttons_of(one)) for one in server.messages(where))
        case Discord():
            return sum(len(row["components"]) for one in server.messages(where) for row in one["components"])
    raise AssertionError(person)


@every
async def test_a_command_of_thirty_thousand_characters(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        tool = Commanding(LONG, granted="that")
        stage.given["tools"] = [tool]
        stage.model.on("go", Call("ask", {"label": "it"}))
        stage.model.add("It is done.")
        async with stage.serving():
            side = stage.side
            assert len(LONG) > 30_000
            side.say("go")
            await stage.passing(lambda: offers(side) == 3, "the buttons")
            text = "\n".join(side.posts()[:-1])
            assert re.findall(r"echo (\d{4}) ", text) == [line[5:9] for line in LINES]
            assert sum(map(len, re.findall("yy+", text))) == 3000
            assert "⟨U+202E⟩" in text
            assert "\u202e" not in text
            assert "(all of it stands above)" in side.posts()[-1]
            side.click(0)
            await stage.passing(lambda: tool.begun == ["it"] and stage.at_rest() and offers(side) == 0, "the edit")
            ((edit, state),) = stage.stored.deliveries("body", "state", action="edit")
            assert ("Allowed once" in edit, "(all of it" in edit, state) == (True, False, "sent")
            assert side.posts()[-1] == "It is done."


@every
async def test_who_may_not_decide_is_told_so(name: str, tmp_path: Path) -> None:
    """In Slack nobody else sees that."""
    async with staged(name, tmp_path) as stage:
        tool = Commanding()
        stage.given["tools"] = [tool]
        stage.changes["approvals"] = {"approvers": [f"{stage.side.name}:{stage.side.bob}"]}
        stage.model.on("go", Call("ask", {"label": "it"}))
        async with stage.serving() as service:
            side = stage.side
            asked = side.say("go", "alice", side.room, mention=True)
            thread = side.answers_below(asked)
            await stage.passing(lambda: side.posts(side.room, thread), "the request")
            ((ident,),) = stage.stored.approvals("approval_id")
            assert "An approver decides" in side.posts(side.room, thread)[0]
            side.say(f"!approve {ident[:8]} once", "alice", side.room, thread=thread)
            await stage.passing(lambda: len(side.posts(side.room, thread)) == 2, "the answer")
            assert "nobody else. It still waits." in side.posts(side.room, thread)[1]
            assert stage.stored.approvals("state") == [("open",)]
            assert await service.parts.requests.decide(
                ident, Choice(verdict="denied", reason="no"), f"{side.name}:{side.bob}"
            )
            stage.model.add("As you like.")
            await stage.passing(lambda: side.posts(side.room, thread)[-1] == "As you like.", "the answer")
        assert tool.begun == []
