"""Reminders, jobs and wakes over the platforms: asked for, run in time, late, failing, gone; and only for owners."""

import asyncio
import contextlib
import datetime as dt
import itertools
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest

from tests.standins.script import Call, Fail, Hang, Say
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.wire.beats import DAY, HOUR, Days, days

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
every = pytest.mark.parametrize("name", ["telegram", "discord", "slack"])


class Jobs(Days):
    """A stage without beats. ran: when the model was asked by a job, and what."""

    def _answer(self, request: Any) -> Any:
        text = request.last_user_text
        if "scheduled" not in text:
            return f"re: {text.splitlines()[-1]}"
        self.asked.append((self.stage.time.now(), text))
        return self.answer(text) if callable(self.answer) else self.answer

    async def says(self, text: str, who: Any = "alice", room: Any = None, **more: Any) -> str:
        """What somebody is answered."""
        side = self.stage.side
        before = len(side.posts(room, who=who, **more))
        side.say(text, who, room, **more)
        await self.stage.until(lambda: len(side.posts(room, who=who, **more)) > before and self.stage.at_rest(), text)
        return str(side.posts(room, who=who, **more)[-1])

    async def asks(self, **arguments: Any) -> str:
        """The model schedules something for Alice; what the tool told it."""
        self.stage.model.on("please", Call("schedule", arguments))
        self.stage.model.add(f"Done, {len(self.stage.model.requests)}.")
        await self.says("please")
        return list(self.stage.stored.results().values())[-1][-1]

    def job(self) -> str:
        """The id of the newest job."""
        return str(self.stage.stored.jobs("job_id")[-1][0])

    def ids(self) -> list[str]:
        return [found for (found,) in self.stage.stored.jobs("job_id") if found != "heartbeat"]


@contextlib.asynccontextmanager
async def jobs(home: Path, start: str = "2026-05-04T10:00", **options: Any) -> AsyncIterator[Jobs]:
    async with days(home, start, every=0, **options) as play:
        yield Jobs(play.stage, 0)


LATER = "2026-05-04T12:30:00+02:00"


async def test_a_reminder_is_echoed_made_once_and_gone(tmp_path: Path) -> None:
    async with jobs(tmp_path) as play:
        async with play.stage.serving():
            told = await play.asks(at=LATER, prompt="Call Ada.")
            assert "10:30" in told
            play.answer = "Time to call Ada."
            await play.after(HOUR / 4)
            assert play.asked == []
        async with play.stage.serving():
            await play.after(HOUR / 4)
            assert [text for text in play.told if "Ada" in text] == ["Time to call Ada."]
            assert "Call Ada." in play.asked[0][1]
            await play.after(DAY)
            assert len(play.asked) == 1
            assert play.ids() == []
            assert "Time to call Ada." in str(await knows(play))


async def knows(play: Jobs) -> Any:
    """What the model is sent with Alice's next message."""
    await play.says("what was that?")
    return play.stage.model.requests[-1].messages


@every
async def test_a_job_is_ordered_by_a_command_listed_and_handled(name: str, tmp_path: Path) -> None:
    async with jobs(tmp_path, name=name) as play, play.stage.serving():
        play.stage.side.may_double("Nothing new there.")
        typed = "!schedule" if name != "telegram" else "/schedule"
        told = await play.says(f"{typed} every 2h Look at the mail.")
        assert all(time in told for time in ("12:00", "14:00", "16:00")), told
        job = play.job()
        assert job in await play.says(typed)
        play.answer = "Nothing new there."
        await play.after(2 * HOUR)
        assert play.told[-1] == "Nothing new there."
        await play.says(f"{typed} pause {job}")
        await play.after(4 * HOUR)
        assert len(play.asked) == 1
        await play.says(f"{typed} resume {job}")
        await play.after(2 * HOUR)
        assert len(play.asked) == 2
        play.stage.time.advance(1)
        await play.says(f"{typed} run {job}")
        await play.stage.until(lambda: len(play.asked) == 3 and play.over(), "the run")
        history = await play.says(f"{typed} history {job}")
        assert history.count("said") + history.count("ran") >= 3, history
        await play.says(f"{typed} delete {job}")
        assert play.ids() == []
        await play.after(DAY)
        assert len(play.asked) == 3


async def test_missed_runs_come_once_and_say_that_they_are_late(tmp_path: Path) -> None:
    async with jobs(tmp_path) as play:
        async with play.stage.serving():
            await play.asks(every="1h", prompt="Count the ships.")
            await play.asks(at=LATER, prompt="Call Ada.")
        play.stage.time.advance(6 * HOUR + 600)
        play.answer = lambda text: f"Ships: {len(play.asked)}." if "ships" in text else "Ada."
        async with play.stage.serving():
            await play.due()
            assert [text.partition(":")[0] for text in sorted(play.told[-2:])] == ["Ada.", "Ships"]
            assert len(play.asked) == 2
            assert all("late" in text or "was due" in text for _, text in play.asked)
            await play.after(50 * 60)
            assert len(play.asked) == 3
            assert "was due" not in play.asked[-1][1]
        rows = play.stage.stored.firings("due_at", "until", "cause", "reason", "outcome")
    ships = [row for row in rows if row[0] % (HOUR * 1000) != 1_800_000]
    assert sum(row[3] == "missed" for row in rows) == 1
    covered = sorted((row[0], row[1]) for row in ships)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(covered))


async def test_a_failing_job_is_told_once_and_rests(tmp_path: Path) -> None:
    async with jobs(tmp_path) as play, play.stage.serving():
        play.stage.side.server.tolerate(TelegramRule.REPEATED_TEXT)
        await play.asks(every="10m", prompt="Read the log.")
        before = len(play.told)
        play.answer = [Fail(400, message="no such thing")]
        for _ in range(12):
            await play.after(600)
        assert len(play.told) == before + 1, play.told
        assert len(play.asked) < 12
        play.answer = "All is well again."
        for _ in range(12):
            await play.after(600)
        assert play.told[before + 1] == "All is well again."
        play.answer = [Fail(400, message="no such thing")]
        for _ in range(3):
            await play.after(600)
        assert len([text for text in play.told if "fail" in text.lower()]) == 2, play.told


async def test_a_reminder_that_fails_is_tried_again_and_then_kept_for_nobody(tmp_path: Path) -> None:
    async with jobs(tmp_path) as play, play.stage.serving():
        await play.asks(at=LATER, prompt="Call Ada.")
        before = len(play.told)
        play.answer = [Fail(400, message="no such thing")]
        await play.after(1800)
        assert len(play.told) == before + 1
        play.answer = "Call Ada, now."
        for _ in range(4):
            await play.after(60)
        assert play.told[-1] == "Call Ada, now."
        assert play.ids() == []


CRONS = [
    # crontab, zone, from, days, the local times at which it runs
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", 3, ["28 02:30", "29 03:00", "30 02:30"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00", 3, ["24 02:30", "25 02:30", "26 02:30"]),
    ("0 9 * * 1-5", "America/New_York", "2026-03-06T00:00", 4, ["06 09:00", "09 09:00"]),
]


@pytest.mark.parametrize(("cron", "zone", "start", "count", "times"), CRONS)
async def test_a_crontab_goes_by_the_clock_of_its_zone(
    cron: str, zone: str, start: str, count: int, times: list[str], tmp_path: Path
) -> None:
    async with jobs(tmp_path, start) as play, play.stage.serving():
        told = await play.asks(cron=cron, zone=zone, prompt="Good morning.")
        assert times[0].split()[1] in told, told
        end = play.stage.time.now() + count * DAY * 1000
        numbers = iter(range(99))
        play.answer = lambda text: f"Morning number {next(numbers)} of these."
        while True:
            due = [at for (at,) in play.stage.stored.jobs("next_at", job_id=play.job())]
            if due[0] > end:
                break
            await play.after((due[0] - play.stage.time.now()) / 1000)
        ran = [dt.datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).strftime("%d %H:%M") for at, _ in play.asked]
        assert ran == times


@every
async def test_who_is_no_owner_gets_nothing(name: str, tmp_path: Path) -> None:
    async with jobs(tmp_path, name=name) as play, play.stage.serving():
        side = play.stage.side
        typed = "!{}" if name != "telegram" else "/{}"
        for text in ("schedule every 1h Look.", "heartbeat now"):
            said = await play.says(typed.format(text), "bob")
            assert said == f"re: {typed.format(text)}"  # for whom they do not exist
        play.stage.model.on("please", Call("schedule", {"every": "1h", "prompt": "Look."}))
        play.stage.model.add("I cannot.")
        await play.says("please", "bob")
        await play.says("hello")
        offered = [[tool.name for tool in request.tools] for request in play.stage.model.requests]
        assert ["schedule" in tools for tools in offered] == [False] * 4 + [True]
        side.say("in a group", room=side.room, mention=True)
        await play.stage.until(lambda: len(play.stage.model.requests) == 6 and play.stage.at_rest(), "an answer")
        assert "schedule" not in [tool.name for tool in play.stage.model.requests[-1].tools]
        assert play.ids() == []


@every
async def test_a_job_answers_in_the_thread_where_it_was_ordered(name: str, tmp_path: Path) -> None:
    async with jobs(tmp_path, name=name) as play, play.stage.serving():
        side = play.stage.side
        said = side.say("start", room=side.room)
        thread = side.thread(said)
        side.say("in here", room=side.room, mention=True, thread=thread)
        await play.stage.until(lambda: side.posts(side.room, thread) and play.stage.at_rest(), "an answer")
        typed = "!schedule" if name != "telegram" else "/schedule"
        side.say(f"{typed} every 2h Look.", room=side.room, thread=thread, mention=name != "telegram")
        await play.stage.until(lambda: play.ids() and play.stage.at_rest(), "the job")
        play.answer = "I have looked."
        await play.after(2 * HOUR)
        assert side.posts(side.room, thread)[-1] == "I have looked."
        assert "I have looked." not in side.posts(side.room)
        assert play.told == []


async def test_two_jobs_run_at_the_same_time_and_the_others_after_them(tmp_path: Path) -> None:
    async with jobs(tmp_path) as play, play.stage.serving():
        for number in range(4):
            await play.asks(at=LATER, prompt=f"Job {number}.")
        hangs = [Hang() for _ in range(4)]
        play.answer = lambda text: [hangs[len(play.asked) - 1], Say("Done with " + re.findall(r"Job \d", text)[0])]
        play.stage.time.advance(1800)
        dispatcher = play.stage.service.parts.dispatcher  # type: ignore[union-attr]
        await dispatcher.tick()
        await play.stage.until(lambda: len(play.asked) == 2, "two")
        await dispatcher.tick()
        await asyncio.sleep(0.05)
        assert len(play.asked) == 2
        for hang in hangs:
            hang.release()
        for _ in range(3):
            await play.after(60)
        assert sorted(text for text in play.told if "Done with" in text) == [f"Done with Job {n}" for n in range(4)]


async def test_nonsense_is_answered_and_schedules_nothing(tmp_path: Path) -> None:
    async with jobs(tmp_path) as play, play.stage.serving():
        play.stage.side.server.tolerate(TelegramRule.REPEATED_TEXT)
        for wrong in (
            {"prompt": "Look."},
            {"at": "2026-05-04T09:00:00Z", "prompt": "Look."},
            {"at": "tomorrow", "prompt": "Look."},
            {"at": LATER, "every": "1h", "prompt": "Look."},
            {"every": "0s", "prompt": "Look."},
            {"every": "soon", "prompt": "Look."},
            {"cron": "61 * * * *", "prompt": "Look."},
            {"cron": "* * * *", "prompt": "Look."},
            {"cron": "0 0 30 2 *", "prompt": "Look."},
            {"cron": "0 9 * * *", "zone": "Europe/Nowhere", "prompt": "Look."},
            {"every": "1h"},
            {"every": "1h", "prompt": "  "},
            {"action": "delete", "id": "nothing"},
        ):
            told = await play.asks(**wrong)
            assert play.ids() == [], wrong
            assert told, wrong
            assert "Traceback" not in told
        for typed in (
            "every",
            "at",
            "cron 1 2 3",
            "every 1h",
            "nothing",
            "delete",
            "delete nothing",
            'cron "0 9 * * *',
        ):
            told = await play.says(f"/schedule {typed}")
            assert play.ids() == [], typed
            assert told, typed


async def test_what_happened_is_told_to_the_next_turn_or_at_once(tmp_path: Path) -> None:
    async with days(tmp_path, every=HOUR, text="# Nothing") as play:
        play.stage.given["gateway"] = True
        play.stage.changes["gateway"] = {"port": 0}
        async with play.stage.serving():
            transport = httpx2.AsyncHTTPTransport(uds=str(tmp_path / "state" / "hark.sock"))
            async with httpx2.AsyncClient(base_url="http://hark", transport=transport) as http:
                early = await http.post("/v1/heartbeat/wake", json={"text": "Too early."})
                assert early.status_code == 409
                await play.hello()
                for body in ({}, {"text": ""}, {"text": 1}, {"text": "x", "now": "perhaps"}):
                    assert (await http.post("/v1/heartbeat/wake", json=body)).status_code == 422, body
                told = await http.post("/v1/heartbeat/wake", json={"text": "The backup has failed."})
                assert told.status_code == 202, told.text
                assert play.asked == []
                play.answer = "The backup has failed, look at the disk."
                await play.beat()
                assert "The backup has failed." in play.asked[0][1]
                assert play.told == [play.answer]
                play.answer = "HEARTBEAT_OK"
                await play.beat()
                assert len(play.asked) == 1
                play.stage.time.advance(1)  # each receipt has a moment of its own
                await asyncio.gather(
                    *(http.post("/v1/heartbeat/wake", json={"text": f"Build {n}.", "now": True}) for n in range(3))
                )
                await play.stage.until(lambda: len(play.asked) >= 2 and play.over(), "a beat at once")
                await play.after(15)
                seen = "".join(text for _, text in play.asked[1:])
                assert [seen.count(f"Build {n}.") for n in range(3)] == [1, 1, 1]
                assert len(play.asked) <= 4
                found = (await http.get("/v1/heartbeat")).json()
                assert found["on"] is True
                assert len(found["beats"]) >= 3
                assert found["next_at"] > play.stage.time.now()
                dry = (await http.post("/v1/heartbeat/run", json={"dry": True})).json()
                assert (dry["begun"], dry["reason"]) == (False, "empty")
                play.note("- look at the cat\n")
                dry = (await http.post("/v1/heartbeat/run", json={"dry": True})).json()
                assert (dry["begun"], dry["reason"]) == (False, "")
                await play.beat()
                assert play.asked[-1][1].partition("\n")[2] == dry["prompt"].partition("\n")[2]
                code, said = await hark(tmp_path, "heartbeat", "wake", "--text", "By hand.", "--now")
                assert code == 0, said
                await play.stage.until(lambda: "By hand." in play.asked[-1][1] and play.over(), "a beat at once")


async def hark(home: Path, *words: str) -> tuple[int, str]:
    """The command line beside the service."""
    file = home / "config.yaml"
    file.write_text("state: ./state\nworkspace: ./workspace\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", *words, "--config", str(file), stdout=asyncio.subprocess.PIPE, stderr=-2
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_an_owner_lets_the_heartbeat_rest_over_a_restart(tmp_path: Path) -> None:
    async with days(tmp_path, every=HOUR) as play:
        async with play.stage.serving():
            await play.hello()
            play.stage.side.say("/heartbeat off")
            await play.stage.until(lambda: play.told and play.stage.at_rest(), "an answer")
            await play.days(0.25)
            assert play.asked == []
        async with play.stage.serving():
            await play.days(0.25)
            assert play.asked == []
            play.stage.side.say("/heartbeat now")
            await play.stage.until(lambda: play.asked and play.over(), "a beat")
            play.stage.side.say("/heartbeat on")
            await play.stage.until(lambda: len(play.told) == 3 and play.stage.at_rest(), "an answer")
            await play.days(0.25)
            assert len(play.asked) == 7
            play.stage.side.say("/heartbeat")
            await play.stage.until(lambda: len(play.told) == 4 and play.stage.at_rest(), "the status")
    assert "quiet" in play.told[-1]


@pytest.mark.parametrize("ends", ["fails", "dies"])
async def test_an_event_outlives_the_beat_that_should_have_seen_it(ends: str, tmp_path: Path) -> None:
    async with days(tmp_path, every=HOUR, text="# Nothing") as play:
        hang = Hang()
        async with play.stage.serving() as service:
            await play.hello()
            play.answer = [hang] if ends == "dies" else [Fail(400, message="no such thing")]
            await service.parts.dispatcher.beats.wake("The house burns.", now=True)
            await play.stage.until(lambda: play.asked and (ends == "dies" or play.over()), "the beat")
            play.stage.dead = ends == "dies"
        play.answer = "HEARTBEAT_OK"
        before = len(play.stage.model.requests)
        async with play.stage.serving():
            await play.hello("and now?")
            told = play.stage.model.requests[before:]
        assert any("The house burns." in request.messages[-1].text for request in told)
