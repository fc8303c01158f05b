"""What was decided, shown or allowed earlier, and holds no more when it is used."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.tools.base import Ask, CallContext
from bot.approvals.commands import LATE
from bot.approvals.decisions import NotDecided
from bot.persistence.approvals import Approval, Choice
from channels.message import InboundKind
from tests.asking import approval
from tests.bot.approvals.test_approvals import Commanding, begin, order, shows
from tests.bot.approvals.test_parking import over
from tests.service import Labelled, running


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
