"""/heartbeat: how it stands, on, off and now."""

from dataclasses import replace
from pathlib import Path

from bot.background.views import receipt
from bot.persistence.schedules import HEARTBEAT, Firing
from tests.bot.background.test_beats import BEATS, HALF_AN_HOUR, checklist, receipts, say_hello, tick, with_beats
from tests.bot.background.test_schedule import command
from tests.scripted_model import texts
from tests.service import Hark, running, session_of

PRICED = {
    "providers": {
        "mine": {
            "api": "openai-chat",
            "base_url": "http://127.0.0.1:9/v1",
            "models": {"m": {"price": {"input": 100, "output": 1000}}},
        }
    },
    "agent": {"model": "mine/m"},
}


async def rows(hark: Hark, text: str = "/heartbeat") -> dict[str, list[str]]:
    """The answer to a command, by what its lines are about."""
    await hark.delivered()
    found: dict[str, list[str]] = {}
    for line in (await command(hark, text)).split("\n"):
        name, _, words = line.removeprefix("- **").partition("** ")
        found.setdefault(name, []).append(words)
    return found


async def test_the_status_has_all_that_an_owner_asks(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS | PRICED) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add("The tomatoes are dry.")
        await tick(hark)
        hark.model.add("HEARTBEAT_OK")
        await tick(hark)
        checklist(hark, "# Garden\n")
        await tick(hark)
        await tick(hark)
        assert await rows(hark) == {
            "Heartbeat": ["on, every 30 minutes"],
            "Session": [session_of("1")],
            "Next": ["Tue 2026-07-14 06:03 UTC"],
            "Now": ["HEARTBEAT.md holds nothing to look at."],
            "Today": ["30 of 300,000 tokens"],
            "Beat": [
                "Tue 2026-07-14 05:03 UTC to Tue 2026-07-14 05:33 UTC: skipped (empty)",
                "Tue 2026-07-14 04:33 UTC: quiet, 15 tokens, $0.0060",
                "Tue 2026-07-14 04:03 UTC: said, 15 tokens, $0.0060",
            ],
        }
        checklist(hark)
        assert (await rows(hark))["Now"] == ["A beat would ask the model."]


async def test_a_budget_in_money_is_shown_in_money(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(daily_budget="$2") | PRICED) as hark:
        checklist(hark)
        await say_hello(hark)
        await tick(hark)
        assert (await rows(hark))["Today"] == ["$0.01 of $2.00"]


def test_what_never_ran_cost_nothing() -> None:
    skipped = Firing(job_id=HEARTBEAT, due_at=1, cause="due", reason="empty")
    assert receipt(skipped, lambda usage: 0.0).cost is None
    assert receipt(replace(skipped, turn_id="t"), lambda usage: 0.5).cost == 0.5


async def test_off_lasts_over_a_restart_until_it_is_on(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark)
        await say_hello(hark)
        off = await rows(hark, "/heartbeat off")
        assert (off["Heartbeat"], off["Now"]) == (["off, every 30 minutes"], ["Heartbeats are off."])
        assert "Next" not in off
        time = hark.time
    async with running(tmp_path, config=BEATS, time=time) as hark:
        await tick(hark, 3 * HALF_AN_HOUR + 60)
        assert len(hark.model.requests) == 0
        assert receipts(hark) == []
        assert (await rows(hark, "/heartbeat on"))["Next"] == ["Tue 2026-07-14 05:33 UTC"]
        await tick(hark)
        assert len(hark.model.requests) == 1, "what was due while it was off is not made up for"


async def test_a_beat_now_is_one_also_where_none_is_due(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(every="0")) as hark:
        checklist(hark)
        await say_hello(hark)
        assert (await rows(hark, "/heartbeat on"))["Heartbeat"] == ["off, heartbeat.every is 0"]
        hark.model.add("The tomatoes are dry.")
        assert await command(hark, "/heartbeat now") == "I am having a look."
        await hark.until(lambda: hark.stored.firings("outcome") == [("said",)])
        assert "tomatoes" in texts(hark.model.requests[-1], "user")[-1]
        await hark.delivered()
        assert (await rows(hark))["Beat"] == ["Tue 2026-07-14 03:33 UTC: said, by hand, 15 tokens"]


async def test_why_there_is_no_beat_now(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS) as hark:
        await say_hello(hark)
        fresh = await command(hark, "/heartbeat now")
        assert fresh == "No beat now: HEARTBEAT.md holds nothing to look at.", "what it was made with is not missing"
        checklist(hark, "")
        answer = await command(hark, "/heartbeat now")
        assert answer == "No beat now: HEARTBEAT.md holds nothing to look at."
        assert len(hark.model.requests) == 1


async def test_nonsense_is_explained(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        assert "'status', 'on', 'off' or 'now'" in await command(hark, "/heartbeat soon")
