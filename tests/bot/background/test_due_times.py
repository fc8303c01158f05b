"""Each due time of a job lies in exactly one firing, whatever the clock, the service and the model do."""

import asyncio
from bisect import bisect
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from bot.persistence.schedules import Job
from channels.message import ChatKind, Origin, Place
from heartbeat.schedule import At, Cron, Every, Schedule, next_after
from tests.service import Hark, running
from tests.standins.script import Fail, Hang, Say

PLACE = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
SCHEDULES: dict[str, Schedule] = {
    "every": Every(6 * 3_600_000, 0),
    "daily": Cron("30 2 * * *", "Europe/Berlin"),
    "often": Cron("*/20 9-17 * * 1-5", "America/New_York"),
}


def job(job_id: str, schedule: Schedule, now: int, *, own: bool = True) -> Job:
    """A job of the owner, as somebody asked for it in their direct messages."""
    return Job(
        job_id=job_id,
        name=job_id,
        schedule=schedule,
        prompt="look",
        origin=Origin(place=PLACE, sender="1"),
        session_key="agent:main:telegram:direct:1",
        own=own,
        next_at=next_after(schedule, now),
    )


async def settle(hark: Hark) -> None:
    """Fire what is due until nothing is, and let it end."""
    while True:
        wait = await hark.service.parts.dispatcher.tick()
        await hark.until(
            lambda: all(outcome or not turn for turn, outcome in hark.stored.firings("turn_id", "outcome"))
        )
        if wait > 2:
            return


@pytest.mark.parametrize("seed", [1, 2])
async def test_each_due_time_has_exactly_one_row(tmp_path: Path, seed: int) -> None:
    """Seeds are the parameters: pauses between minutes and months, with restarts and failures in between."""
    random, time, began = Random(seed), None, 0
    for _ in range(4):
        async with running(tmp_path, time=time) as hark:
            time = hark.time
            if not began:
                began = time.now()
                for job_id, schedule in SCHEDULES.items():
                    assert await hark.service.parts.store.schedules.put(job(job_id, schedule, began), 100)
            for _ in range(6):
                time.advance(random.choice([600, 3600, 20_000, 90_000, 1_000_000, 5_000_000]))
                failing = random.random() < 0.3
                hark.model.default = lambda request, failing=failing: [Fail(401) if failing else Say("done")]
                await settle(hark)
    for job_id, schedule in SCHEDULES.items():
        rows = sorted(hark.stored.firings("due_at", "until", job_id=job_id))
        assert all(before[1] < after[0] for before, after in pairwise(rows)), job_id
        at, count = next_after(schedule, began), 0
        while at is not None and at <= time.now():
            begun = bisect(rows, (at, 1 << 60)) - 1
            assert begun >= 0, (job_id, at)
            assert rows[begun][0] <= at <= rows[begun][1], (job_id, at, rows[begun])
            at, count = next_after(schedule, at), count + 1
        assert count > 20
        ((next_at,),) = hark.stored.jobs("next_at", job_id=job_id)
        assert next_at == at


async def test_what_was_due_while_a_job_rested_is_one_row(hark: Hark) -> None:
    schedules, began = hark.service.parts.store.schedules, hark.time.now()
    every = Every(60_000, began)
    await schedules.put(job("j", every, began), 100)
    await schedules.pause("j", True, None)
    hark.time.advance(600)
    await settle(hark)
    await schedules.pause("j", False, next_after(every, hark.time.now()))
    hark.time.advance(60)
    await settle(hark)
    assert hark.stored.firings("due_at", "until", "reason", job_id="j") == [
        (began + 60_000, began + 600_000, "paused"),
        (began + 660_000, began + 660_000, ""),
    ]


async def test_at_most_two_jobs_run_at_once(hark: Hark) -> None:
    now = hark.time.now()
    for number in range(5):
        await hark.service.parts.store.schedules.put(job(f"j{number}", Every(60_000, now), now), 100)
    hark.time.advance(61)
    wait = await hark.service.parts.dispatcher.tick()
    assert wait <= 2
    assert len(hark.stored.turns("turn_id", kind="job")) == 2
    await settle(hark)
    assert len(hark.stored.turns("turn_id", kind="job")) == 5


async def test_a_job_rests_after_failures_and_its_due_times_are_passed_over(hark: Hark) -> None:
    now = hark.time.now()
    await hark.service.parts.store.schedules.put(job("j", Every(10_000, now), now), 100)
    hark.model.add(Fail(401, "authentication_error"))
    reasons = []
    for _ in range(5):
        hark.time.advance(10)
        await settle(hark)
        reasons = hark.stored.firings("reason", "outcome")
    assert reasons == [("auth", "failed"), ("failed before", ""), ("", "said"), ("", "said")]
    assert hark.stored.jobs("failures", "retry_at", job_id="j") == [(0, 0)]


async def test_who_is_no_owner_any_more_has_no_jobs(tmp_path: Path) -> None:
    async with running(tmp_path, config={"owners": ["telegram:2"]}) as hark:
        now = hark.time.now()
        await hark.service.parts.store.schedules.put(job("j", Every(10_000, now), now), 100)
        hark.time.advance(10)
        await settle(hark)
        assert hark.stored.firings("reason") == [("no owner",)]
        await hark.service.parts.store.schedules.put(job("once", At(now + 20_000), now), 100)
        await hark.say("hi", sender="2", answers=["hello"])
        hark.time.advance(10)
        await settle(hark)
        assert "did not run (no owner)" in (await hark.until_texts(2, "2"))[1]
        assert len(hark.model.requests) == 1


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_a_reminder_that_waits_behind_what_is_stopped_comes_all_the_same(command: str, hark: Hark) -> None:
    hang = Hang()
    await hark.write("a long story", answers=[hang])
    await hark.until(lambda: hark.model.requests, "the run")
    now = hark.time.now()
    await hark.service.parts.store.schedules.put(job("j", At(now + 5000), now, own=False), 100)
    hark.time.advance(5)
    await hark.service.parts.dispatcher.tick()
    await hark.write(command, answers=["take the cake out"])
    await hark.until(lambda: hark.stored.firings("outcome") != [("",)], "the end of the reminder")
    assert hark.stored.firings("outcome") == [("said",)]
    assert (await hark.until_texts(2))[1] == "take the cake out"
    assert hark.stored.jobs("job_id") == [("heartbeat",)]
    assert "message" not in hark.channel.texts()[0]


async def test_what_people_wrote_goes_before_a_job_that_was_cut(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        time, now = hark.time, hark.time.now()
        await hark.service.parts.store.schedules.put(job("j", At(now + 5000), now, own=False), 100)
        hark.model.add(Hang())
        hark.model.add(Hang())
        time.advance(5)
        await hark.service.parts.dispatcher.tick()
        await hark.until(lambda: hark.model.requests, "the run")
        await hark.write("what is for dinner?")
        await hark.model.until_requests(2)
    async with running(tmp_path, time=time) as hark:
        hark.model.add("fish")
        hark.model.add("take the cake out")
        assert await hark.until_texts(2) == ["fish", "take the cake out"]
        assert [request.messages[-1].text.split("\n")[-1] for request in hark.model.requests] == [
            "what is for dinner?",
            "look",
        ]


async def test_a_reminder_is_not_swallowed_by_its_run_by_hand(hark: Hark) -> None:
    now = hark.time.now()
    reminder = job("j", At(now + 10_000), now)
    await hark.service.parts.store.schedules.put(reminder, 100)
    held = asyncio.Event()
    hark.model.add(Say("by hand", gate=held))
    assert await hark.service.parts.dispatcher.run_now(reminder) == "fired"
    await hark.model.until_requests(1)
    hark.time.advance(10)
    await hark.service.parts.dispatcher.tick()
    held.set()
    await hark.until_texts(1)
    hark.model.add("on time")
    hark.time.advance(2)
    await settle(hark)
    assert await hark.until_texts(2) == ["by hand", "on time"]


async def test_a_reminder_that_fails_is_tried_three_times_more(hark: Hark) -> None:
    now = hark.time.now()
    await hark.service.parts.store.schedules.put(job("j", At(now + 10_000), now), 100)
    for seconds in (10, 30, 60, 5 * 60, 3600, 24 * 3600):
        if len(hark.model.requests) < 4:
            hark.model.add(Fail(401, "authentication_error"))
        hark.time.advance(seconds)
        await settle(hark)
    assert hark.stored.firings("outcome", job_id="j") == [("failed",)] * 4
    assert hark.stored.jobs("failures", "next_at", job_id="j") == [(4, None)]
    assert len(hark.channel.texts()) == 1, "its first failure is told"


async def test_a_reminder_waits_for_its_platform(hark: Hark) -> None:
    now = hark.time.now()
    await hark.service.parts.store.schedules.put(job("j", At(now + 10_000), now), 100)
    hark.channel.account = ""
    hark.model.add("call her")
    hark.time.advance(10)
    await settle(hark)
    assert hark.stored.firings("outcome", job_id="j") == [("said",)]
    hark.channel.account = "bot"
    hark.service.parts.outbox.can_send("telegram", "bot")
    assert await hark.until_texts(1) == ["call her"]


async def test_silent_runs_in_a_conversation_are_in_no_later_request(hark: Hark) -> None:
    now = hark.time.now()
    await hark.say("hi", answers=["hello"])
    await hark.service.parts.store.schedules.put(job("j", Every(10_000, now), now, own=False), 100)
    for words in ("NO_REPLY", "Something is up."):
        hark.model.add(words)
        hark.time.advance(10)
        await settle(hark)
    await hark.write("and now?", answers=["yes"])
    last = await hark.model.until_requests(4)
    assert [message.role for message in last.messages] == ["user", "assistant", "user", "assistant", "user"]
