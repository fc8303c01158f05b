"""Days of beats over an injected clock: when the model is asked, when not, and what the owner is told of it."""

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.scripted_model import USAGE
from tests.standins.script import Fail, Hang
from tests.wire.beats import DAY, GARDEN, HOUR, days

pytestmark = pytest.mark.xdist_group("wire-heartbeat")


async def test_a_day_has_a_beat_for_each_interval_whatever_happens_between(tmp_path: Path) -> None:
    async with days(tmp_path, "2026-05-04T10:07:13") as play:
        async with play.stage.serving():
            await play.hello()
            await play.days(0.5)
        asked = [at for at, _ in play.asked]
        assert len(asked) == 24
        play.stage.time.advance(5 * HOUR + 1111)
        async with play.stage.serving():
            await play.due()
            late = play.asked[-1]
            assert len(play.asked) == 25
            await play.days(0.25)
        due = play.stage.stored.firings("due_at", "cause", "reason")
    assert len(play.asked) == 37
    phases = {at % 1_800_000 for at, cause, _ in due if cause != "late"}
    assert len(phases) == 1
    assert "late" in {cause for _, cause, _ in due}
    assert "was due" in late[1]
    assert play.told == []
    ran = [at for at, _, reason in due if not reason]
    assert len(ran) == len(set(ran)) == 37


WINDOWS = [
    # zone, start, end, the first moment, hours, minutes between beats; spring and autumn, over midnight, odd offsets
    ("Europe/Berlin", "22:00", "06:00", "2026-03-28T20:00", 9, 15),
    pytest.param("Europe/Berlin", "22:00", "02:30", "2026-10-24T19:00", 8, 15, marks=pytest.mark.soak),
    pytest.param("America/New_York", "09:00", "17:00", "2026-03-07T13:00", 34, 60, marks=pytest.mark.soak),
    ("Australia/Lord_Howe", "01:45", "02:15", "2026-04-04T14:00", 3, 5),
    ("Asia/Kathmandu", "23:00", "24:00", "2026-06-01T16:00", 4, 15),
    pytest.param("America/Sao_Paulo", "08:00", "08:00", "2026-06-01T00:00", 24, 60, marks=pytest.mark.soak),
]


def within(at: int, zone: str, start: str, end: str) -> bool:
    """Whether the clock on a wall there shows a time in the window."""
    shown = dt.datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).strftime("%H:%M")
    return start <= shown < end if start <= end else shown >= start or shown < end


@pytest.mark.parametrize(("zone", "start", "end", "first", "hours", "minutes"), WINDOWS)
async def test_it_beats_within_its_hours_alone(
    zone: str, start: str, end: str, first: str, hours: int, minutes: int, tmp_path: Path
) -> None:
    window = {"start": start, "end": end, "timezone": zone}
    async with days(tmp_path, first, every=minutes * 60, active_hours=window) as play, play.stage.serving():
        await play.hello()
        ((due,),) = play.stage.stored.jobs("next_at", job_id="heartbeat")
        await play.days(hours / 24)
        moments = range(due, play.stage.time.now() + 1, minutes * 60_000)
        expected = [at for at in moments if within(at, zone, start, end)]
        assert [at - at % 60_000 for at, _ in play.asked] == [at - at % 60_000 for at in expected]
        assert bool(expected) == (start != end)
        assert {reason for _, reason, _ in play.receipts()} <= {"", "quiet-hours"}


async def test_the_budget_of_a_day_holds_until_midnight_there(tmp_path: Path) -> None:
    cost = USAGE.input + USAGE.output
    hours = {"timezone": "Asia/Tokyo"}
    async with (
        days(tmp_path, "2026-05-04T03:00", every=HOUR, daily_budget=5 * cost, active_hours=hours) as play,
        play.stage.serving(),
    ):
        await play.hello()
        await play.days(3)
        found: dict[str, int] = {}
        for at, _ in play.asked:
            day = dt.datetime.fromtimestamp(at / 1000, ZoneInfo("Asia/Tokyo")).strftime("%d")
            found[day] = found.get(day, 0) + 1
        assert found == {"04": 5, "05": 5, "06": 5, "07": 5}
        assert {reason for _, reason, _ in play.receipts()} == {"", "budget"}
        assert [text.partition("until ")[2][:24] for text in play.told] == [
            f"{day} 00:00 JST" for day in ("Tue 2026-05-05", "Wed 2026-05-06", "Thu 2026-05-07", "Fri 2026-05-08")
        ]


async def test_a_week_without_a_word_ends_the_beats_until_the_next(tmp_path: Path) -> None:
    async with days(tmp_path, "2026-05-04T10:00", every=12 * HOUR) as play:
        play.stage.side.may_double("Nobody has written for seven days; beats go on with the next message.")
        async with play.stage.serving():
            await play.hello()
            await play.days(9)
            assert 13 <= len(play.asked) <= 14
            assert len(play.told) == 1
            before = len(play.asked)
        async with play.stage.serving():
            await play.days(2)
            assert (len(play.asked), len(play.told)) == (before, 1)
            await play.hello("back again")
            await play.days(1)
            assert len(play.asked) == before + 2
            await play.days(8)
            assert len(play.told) == 2
    assert "seven days" in play.told[0]


@pytest.mark.parametrize("status", [401, pytest.param(402, marks=pytest.mark.soak)])
async def test_three_refusals_end_the_beats_until_the_next_word(status: int, tmp_path: Path) -> None:
    async with days(tmp_path, "2026-05-04T10:00", every=HOUR) as play:
        async with play.stage.serving():
            await play.hello()
            play.answer = [Fail(status)]
            await play.beat()
            await play.beat()
            play.answer = "HEARTBEAT_OK"
            await play.beat()
            play.answer = [Fail(status)]
            await play.days(0.5)
            assert len(play.asked) == 6
            assert len(play.told) == 1
        async with play.stage.serving():
            await play.days(0.25)
            assert (len(play.asked), len(play.told)) == (6, 1)
            await play.hello("again")
            play.answer = "HEARTBEAT_OK"
            await play.days(0.25)
            assert (len(play.asked), len(play.told)) == (12, 1)


TASKS = """# What to do

tasks:
- name: mail
  interval: 1h
  prompt: "Is there urgent mail?"
- name: news
  interval: 3h
  prompt: Read the news.
- name: backup
  prompt: Look at the backup.
  interval: 1d

# Besides
- The cat is called Mia.
"""


async def test_only_due_tasks_are_asked_for_and_only_completed_turns_count(tmp_path: Path) -> None:
    def tasks(text: str) -> str:
        return "".join(
            letter
            for letter, words in (("m", "urgent mail"), ("n", "Read the news"), ("b", "backup."))
            if words in text
        )

    async with days(tmp_path, "2026-05-04T10:00", every=1800, text=TASKS) as play:
        async with play.stage.serving():
            await play.hello()
            await play.days(0.5)
            assert [tasks(text) for _, text in play.asked] == ["mnb", *["m", "m", "mn"] * 4][: len(play.asked)]
            assert len(play.asked) == 12
            assert all("Mia" in text for _, text in play.asked)
            assert {reason for _, reason, _ in play.receipts()} == {"", "no-task-due"}
            play.asked.clear()
            play.answer = [Fail(400, message="no such thing")]
            await play.beat()
            await play.beat()
            await play.beat()
            assert [tasks(text) for _, text in play.asked] == ["mn", "mn", "mn"]
            play.answer = "HEARTBEAT_OK"
        play.asked.clear()
        async with play.stage.serving():
            await play.beat()
            await play.beat()
            await play.beat()
    assert [tasks(text) for _, text in play.asked] == ["mn", "m"]


async def test_what_is_malformed_is_told_once_and_the_rest_runs(tmp_path: Path) -> None:
    broken = TASKS.replace("interval: 3h", "interval: now and then")
    async with days(tmp_path, "2026-05-04T10:00", every=HOUR, text=broken) as play:
        async with play.stage.serving():
            await play.hello()
            await play.days(0.25)
        async with play.stage.serving():
            await play.days(0.25)
            assert len(play.told) == 1
            assert "line 8" in play.told[0]
            assert "now and then" in play.told[0]
            assert len(play.asked) == 12
            play.note(TASKS.replace("name: backup\n", "nome: backup\n"))
            await play.beat()
            await play.beat()
    assert all("line 1" in text for text in play.told[1:])
    assert "Read the news" in play.asked[12][1]


async def test_a_busy_session_is_left_alone_and_the_beat_comes_soon(tmp_path: Path) -> None:
    async with days(tmp_path, "2026-05-04T10:00") as play, play.stage.serving():
        await play.hello()
        hang = Hang()
        play.stage.model.on("think long", hang, "re: think long")
        play.stage.side.say("think long")
        await hang.entered()
        play.stage.time.advance(1800)
        dispatcher = play.stage.service.parts.dispatcher  # type: ignore[union-attr]
        wait = await dispatcher.tick()
        assert 0 < wait <= 60
        assert play.asked == []
        hang.release()
        await play.stage.until(lambda: "re: think long" in play.stage.side.posts() and play.stage.at_rest(), "it")
        await play.after(wait)
        assert len(play.asked) == 1
        await play.after(wait)
        assert len(play.asked) == 1
        assert play.receipts() == [("due", "", "quiet")]


@pytest.mark.parametrize(
    ("changes", "who", "text", "reason"),
    [
        ({}, "bob", GARDEN, "no-session"),
        ({}, "alice", "# Title\n\n- [ ]\n* \n<!-- a\nremark -->\n", "empty"),
        ({"show_alerts": False}, "alice", GARDEN, "not-shown"),
        ({"active_hours": {"start": "09:00", "end": "09:00"}}, "alice", GARDEN, "quiet-hours"),
    ],
)
async def test_the_gate_asks_nobody(changes: Any, who: str, text: str, reason: str, tmp_path: Path) -> None:
    async with days(tmp_path, "2026-05-04T10:00", text=text, **changes) as play, play.stage.serving():
        await play.hello(who=who)
        await play.days(0.25)
        assert play.asked == []
        assert {why for _, why, _ in play.receipts()} == {reason}
        assert play.told == []


async def test_no_interval_no_beats(tmp_path: Path) -> None:
    async with days(tmp_path, "2026-05-04T10:00", every=0) as play, play.stage.serving():
        play.stage.side.say("hello")
        await play.stage.until(lambda: play.stage.side.posts() and play.stage.at_rest(), "an answer")
        play.stage.time.advance(DAY)
        await play.due()
        assert (play.asked, play.receipts()) == ([], [])
