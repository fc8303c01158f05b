"""Each request is looked at by itself: one whose look fails holds up no other, and is tried again by and by."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

from structlog.testing import capture_logs

from bot.persistence.approvals import Choice
from tests.bot.approvals.test_approvals import OPEN, Commanding, begin, shows
from tests.service import Hark, running


def change(home: Path, statement: str, *values: object) -> None:
    """Something beside the service changes its store."""
    with contextlib.closing(sqlite3.connect(home / "state" / "hark.db")) as db, db:
        db.execute(statement, values)


async def told(hark: Hark, chat: str, words: str) -> None:
    """Return when a message shows what became of the request in a chat."""
    await hark.until(lambda: any(words in one.body for one in shows(hark, chat)), f"{words!r} in {chat}")


# What the log says of a request that could not be looked at.
FAILED = "a request could not be looked after"


async def test_one_that_cannot_be_read_does_not_keep_the_others_from_being_shown(tmp_path: Path) -> None:
    async with running(tmp_path, config=OPEN, tools=lambda watch: [Commanding()]) as hark:
        broken, other = await begin(hark, "2", then=""), await begin(hark, "3", count=2, then="")
        change(tmp_path, "UPDATE approval SET approvers='[' WHERE approval_id=?", broken)
        hark.model.default = "done"
        decide = hark.service.parts.requests.decide
        with capture_logs() as lines:
            assert await decide(broken, Choice(verdict="once"), "telegram:1")
            await hark.until(lambda: any(line["event"] == FAILED for line in lines), "the first try")
            await hark.time.until_pause(1)
            assert await decide(other, Choice(verdict="once"), "telegram:1")
            await told(hark, "3", "Allowed once")
            for pause in (1, 2, 4):
                await hark.time.until_pause(pause)
                hark.time.advance(pause)
            await hark.time.until_pause(8)
        logged = [line for line in lines if line["event"] == FAILED]
        assert [line["request"] for line in logged] == [broken], "once"
        assert not any("Allowed" in one.body for one in shows(hark, "2"))
        change(tmp_path, "UPDATE approval SET approvers='[]' WHERE approval_id=?", broken)
        hark.time.advance(8)
        await told(hark, "2", "Allowed once")


async def test_one_that_cannot_expire_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    config = OPEN | {"approvals": {"timeout_seconds": 90}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        broken = await begin(hark, "2", then="")
        await begin(hark, "3", count=2, then="")
        refuse = f"NEW.approval_id='{broken}' BEGIN SELECT raise(ABORT, 'a fault'); END"
        change(tmp_path, f"CREATE TRIGGER faulty BEFORE UPDATE ON approval WHEN {refuse}")
        hark.model.default = "done"
        await hark.time.until_pause(90)
        hark.time.advance(90)
        await told(hark, "3", "Nobody decided in time")
        assert hark.stored.approvals("state", approval_id=broken) == [("open",)]
        await hark.time.until_pause(1)
        change(tmp_path, "DROP TRIGGER faulty")
        for _ in range(64):  # whoever looks after it, and however often it was tried before
            hark.time.advance(1)
            await asyncio.sleep(0)
        await told(hark, "2", "Nobody decided in time")
