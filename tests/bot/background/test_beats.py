"""Beats: when the heartbeat asks the model, in which session, and what stays of it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from channels.message import InboundKind
from tests.service import Hark, running, session_of
from tests.standins.script import Call, Fail, Hang, Say

BEATS: dict[str, Any] = {"heartbeat": {"every": "30m"}}
HALF_AN_HOUR = 1800.0
GARDEN = "# Garden\n- look whether the tomatoes are dry\n"
TASKS = """tasks:
  - name: mail
    interval: 30m
    prompt: urgent mail?
  - name: news
    interval: 1h
    prompt: news?
"""


@pytest.fixture
async def hark(tmp_path: Path) -> AsyncIterator[Hark]:
    """A service that looks every half an hour."""
    async with running(tmp_path, config=BEATS) as made:
        yield made


def with_beats(**changes: Any) -> dict[str, Any]:
    """A configuration with a heartbeat of its own."""
    return {"heartbeat": BEATS["heartbeat"] | changes}


def checklist(hark: Hark, text: str = GARDEN) -> None:
    """Put something to look at into the workspace."""
    (hark.state.parent / "workspace" / "HEARTBEAT.md").write_text(text)


async def say_hello(hark: Hark) -> None:
    """The owner writes, so that there is a session to beat in."""
    await hark.say("hi", answers=["hello"])
    await hark.until(lambda: hark.stored.jobs("job_id"), "the job of the heartbeat")


async def tick(hark: Hark, seconds: float = HALF_AN_HOUR) -> float:
    """Let time pass and fire what is due; returns once that is over."""
    hark.time.advance(seconds)
    wait = await hark.service.parts.dispatcher.tick()
    await hark.until(lambda: all(became or not turn for turn, became in hark.stored.firings("turn_id", "outcome")))
    return wait


def receipts(hark: Hark) -> list[tuple[str, str, str]]:
    """Cause, reason and outcome of each, oldest first."""
    return hark.stored.firings("cause", "reason", "outcome")


async def test_an_alert_is_delivered_where_the_owner_wrote_last(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    hark.model.add("The tomatoes are dry.")
    await tick(hark)
    assert await hark.until_texts(2) == ["hello", "The tomatoes are dry."]
    assert receipts(hark) == [("due", "", "said")]
    assert "tomatoes" in hark.model.requests[-1].messages[-1].text


async def test_missed_beats_come_once_and_late(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    hark.model.add("late")
    await tick(hark, 5 * HALF_AN_HOUR + 100)
    assert receipts(hark) == [("late", "", "said"), ("late", "missed", "")]
    assert "was due at" in hark.model.requests[-1].messages[-1].text


async def test_the_phase_is_kept_over_restarts_and_other_intervals(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS) as hark:
        await say_hello(hark)
        ((first,),) = hark.stored.jobs("next_at")
        time = hark.time
    time.advance(700)
    async with running(tmp_path, config=BEATS, time=time) as hark:
        await say_hello(hark)
        assert hark.stored.jobs("next_at") == [(first,)]
    async with running(tmp_path, config=with_beats(every="10m"), time=time) as hark:
        await hark.until(lambda: hark.stored.jobs("next_at") != [(first,)])
        assert hark.stored.jobs("next_at") == [(first - 600_000,)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("# Garden\n- [ ] \n<!-- later -->\n", "empty"), (TASKS, None), (GARDEN, None)],
)
async def test_what_speaks_against_a_beat_is_found_before_the_model_is_asked(
    text: str, reason: str | None, hark: Hark
) -> None:
    checklist(hark, text)
    await say_hello(hark)
    if not reason:
        hark.model.add("HEARTBEAT_OK")
    await tick(hark)
    assert len(hark.model.requests) == (1 if reason else 2)
    assert receipts(hark)[0][1] == (reason or "")


async def test_only_tasks_that_are_due_are_asked_for(hark: Hark) -> None:
    checklist(hark, TASKS)
    await say_hello(hark)
    asked = []
    for _ in range(4):
        hark.model.add("something is up")
        await tick(hark)
        text = hark.model.requests[-1].messages[-1].text
        asked.append(("mail" in text, "news" in text))
    assert asked == [(True, True), (True, False), (True, True), (True, False)]


async def test_a_task_counts_as_done_only_when_its_turn_was_completed(hark: Hark) -> None:
    checklist(hark, TASKS.replace("1h", "1d"))
    await say_hello(hark)
    hark.model.add(Fail(401, "authentication_error"))
    await tick(hark)
    hark.model.add("fine")
    await tick(hark)
    assert receipts(hark) == [("due", "auth", "failed"), ("due", "", "said")]
    assert "news" in hark.model.requests[-1].messages[-1].text


async def test_without_an_owner_who_has_written_there_is_no_beat(hark: Hark) -> None:
    checklist(hark)
    await hark.say("hi", sender="2", answers=["hello"])
    await hark.until(lambda: hark.stored.jobs("job_id"))
    await tick(hark)
    assert receipts(hark) == [("due", "no-session", "")]


async def test_a_beat_waits_for_the_run_of_its_session(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    held = asyncio.Event()
    await hark.write("more", answers=[Say("a long answer", gate=held)])
    await hark.until(lambda: len(hark.model.requests) == 2)
    assert await tick(hark) == 15.0
    assert receipts(hark) == []
    held.set()
    await hark.until_texts(2)
    hark.model.add("dry")
    await tick(hark, 15)
    assert receipts(hark) == [("due", "", "said")]


async def test_seven_days_without_a_word_end_the_beats_until_the_next(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(every="1d")) as hark:
        checklist(hark)
        await say_hello(hark)
        for day in range(6):
            hark.model.add(f"alert of day {day}: {'x' * day}")
        for _ in range(10):
            await tick(hark, 24 * 3600)
        assert [reason for _, reason, _ in receipts(hark)] == [""] * 6 + ["idle"]
        lines = [text for text in hark.channel.texts() if "seven days" in text]
        assert len(lines) == 1


async def test_where_nobody_has_ever_written_beats_end_seven_days_behind_their_beginning(tmp_path: Path) -> None:
    config = with_beats(every="1d", session="agent:main:main", target="none")
    async with running(tmp_path, config=config) as hark:
        checklist(hark)
        await hark.until(lambda: hark.stored.jobs("job_id"), "the job of the heartbeat")
        hark.model.default = lambda request: "HEARTBEAT_OK"
        for _ in range(10):
            await tick(hark, 24 * 3600)
        assert [reason for _, reason, _ in receipts(hark)] == [""] * 6 + ["idle"]


async def test_three_errors_of_the_key_end_the_beats_until_the_next_message(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    for _ in range(3):
        hark.model.add(Fail(402, "billing_error"))
    for _ in range(5):
        await tick(hark)
    assert len(hark.model.requests) == 4
    assert len([text for text in hark.channel.texts() if "in a row" in text]) == 1


async def test_an_error_now_and_then_does_not_end_the_beats(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    for failing in (True, True, False, True, False):
        hark.model.add(Fail(402, "billing_error") if failing else f"alert {len(hark.model.requests)}")
        await tick(hark)
    assert [outcome for _, _, outcome in receipts(hark)] == ["failed", "failed", "said", "failed", "said"]


async def test_the_budget_of_a_day_ends_with_the_day(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(every="6h", daily_budget=1)) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add("alert 1")
        hark.model.add("alert 2")
        for _ in range(6):
            await tick(hark, 6 * 3600)
        assert [reason for _, reason, _ in receipts(hark)] == ["", "budget", "", "budget"]


async def test_that_the_budget_is_spent_is_told_once_a_day_with_the_moment_when_beats_go_on(tmp_path: Path) -> None:
    config = with_beats(every="3h", daily_budget=1, active_hours={"timezone": "Asia/Tokyo"})
    async with running(tmp_path, config=config) as hark:
        checklist(hark)
        await say_hello(hark)
        for number in range(2):
            hark.model.add(f"alert {number}")
        for _ in range(6):
            await tick(hark, 3 * 3600)
            await hark.delivered()
        told = [text for text in hark.channel.texts() if "budget" in text]
        rest = "The budget of today is spent: 15 tokens of 1 tokens. Beats rest until {} 00:00 JST."
        assert [text.partition(" `")[0] for text in told] == [
            rest.format("Wed 2026-07-15"),
            rest.format("Thu 2026-07-16"),
        ]


async def test_an_event_that_finds_the_budget_spent_says_so_too(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(every="6h", daily_budget=1)) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add("alert")
        await tick(hark, 6 * 3600)
        for _ in range(2):
            await hark.service.parts.dispatcher.beats.wake("the backup has failed", now=True)
        await hark.delivered()
        assert [text.partition(":")[0] for text in hark.channel.texts()[2:]] == ["The budget of today is spent"]


async def test_the_budget_of_an_owner_is_spent_by_their_own_beats(tmp_path: Path) -> None:
    """What the commands of others report is paid by a budget of their conversation, of which no owner is told."""
    async with running(tmp_path, config=with_beats(daily_budget=40) | {"owners": ["telegram:1", "telegram:3"]}) as hark:
        checklist(hark)
        for sender in ("2", "3", "1"):
            await hark.say("hi", sender=sender, answers=["hello"])
        beats, begun = hark.service.parts.dispatcher.beats, []
        for number, sender in enumerate("22223131"):
            beat = await beats.look("wake", session_of(sender))
            begun.append(beat.skip is None)
            if begun[-1]:
                hark.model.add(f"alert {'x' * number}")
            await beats.wake(f"event {number}", session_of(sender), now=True)
            await tick(hark, 60)
            await hark.delivered()
            assert any("budget" in sent.body for sent in hark.channel.sent) == (number == 7)
        assert begun == [True, True, True, False, True, True, True, False]


async def test_an_event_reaches_the_next_turn_once(hark: Hark) -> None:
    checklist(hark, "")
    await say_hello(hark)
    beats = hark.service.parts.dispatcher.beats
    told = await beats.wake("the backup is done")
    assert told is not None
    hark.model.add("all right")
    await tick(hark)
    assert "the backup is done" in hark.model.requests[-1].messages[-1].text
    await hark.write("anything new?", answers=["yes"])
    await hark.model.until_requests(3)
    assert "the backup is done" not in hark.model.requests[-1].messages[-1].text


async def test_an_event_can_ask_for_a_beat_at_once(hark: Hark) -> None:
    checklist(hark, "")
    await say_hello(hark)
    hark.model.add("the build is red")
    await hark.service.parts.dispatcher.beats.wake("the build has ended", now=True)
    assert await hark.until_texts(2) == ["hello", "the build is red"]
    assert receipts(hark)[0][0] == "wake"


async def test_events_that_one_beat_has_seen_cause_no_other(hark: Hark) -> None:
    checklist(hark, "")
    await say_hello(hark)
    held = asyncio.Event()
    hark.model.add(Say("two things", gate=held))
    beats = hark.service.parts.dispatcher.beats
    await asyncio.gather(beats.wake("one", now=True), beats.wake("two", now=True))
    await hark.model.until_requests(2)
    await beats.wake("three", now=True)
    held.set()
    await hark.until_texts(2)
    hark.model.add("a third thing")
    await tick(hark, 15)
    for _ in range(3):
        await tick(hark, 15)
    texts = [request.messages[-1].text for request in hark.model.requests[1:]]
    assert ["one" in texts[0] and "two" in texts[0], "three" in texts[1], len(texts)] == [True, True, 2]


async def test_an_event_that_another_turn_has_seen_meanwhile_causes_no_beat(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    held = asyncio.Event()
    await hark.write("more", answers=[Say("a long answer", gate=held)])
    await hark.model.until_requests(2)
    await hark.service.parts.dispatcher.beats.wake("the build is red", now=True)
    held.set()
    await hark.until_texts(2)
    await hark.say("and now?", answers=["I know"])
    assert "the build is red" in hark.model.requests[-1].messages[-1].text
    await tick(hark, 15)
    assert receipts(hark) == []


async def test_by_default_a_beat_costs_the_same_however_much_was_said_before(tmp_path: Path, hark: Hark) -> None:
    """It has neither the history nor the files; but what it shows stands in the history."""
    checklist(hark)
    (tmp_path / "workspace" / "SOUL.md").write_text("You love gardens above everything.")
    await say_hello(hark)
    cost = []
    for alert in ("One tomato is dry.", "Two cucumbers have withered."):
        hark.model.add(alert)
        await tick(hark)
        request = hark.model.requests[-1]
        assert "You love gardens" not in request.system
        cost.append((len(request.messages), len(request.system), len(request.messages[0].text)))
        for _ in range(10):
            await hark.say("tell me more", answers=["word " * 200])
    assert cost[0] == cost[1]
    hark.model.add("An owl has died.")
    await tick(hark)
    await hark.until(lambda: "An owl has died." in hark.channel.texts(), "the alert")
    await hark.say("which one?", answers=["The one in the barn."])
    asked = hark.model.requests[-1].messages
    assert asked[-1].text.index("An owl has died.") < asked[-1].text.index("which one?")
    assert "One tomato is dry." in str(asked)


async def test_isolated_beats_know_nothing_of_the_session_and_tell_it_what_they_said(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(isolated=True)) as hark:
        checklist(hark)
        await say_hello(hark)
        for words in ("one is dry", "two are dry, really"):
            hark.model.add(words)
            await tick(hark)
            assert len(hark.model.requests[-1].messages) == 1
        await hark.write("what do I do?", answers=["water them"])
        await hark.model.until_requests(4)
        asked = hark.model.requests[-1].messages[-1].text
        assert "one is dry" in asked
        assert "two are dry" in asked
        assert {key for (key,) in hark.stored.turns("session_key", kind="beat")} == {
            "agent:main:telegram:direct:1:heartbeat"
        }


async def test_what_could_not_be_delivered_is_said_again_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS | {"delivery": {"max_age": "1h"}}) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.channel.wait = 2 * 3600
        hark.model.add("dry")
        hark.time.advance(HALF_AN_HOUR)
        await hark.service.parts.dispatcher.tick()
        await hark.until(lambda: hark.time.pauses(2 * 3600))
        hark.channel.wait = 0
        hark.time.advance(2 * 3600)
        await hark.until(lambda: hark.stored.deliveries("source", state="expired"))
        checklist(hark, "")
        await tick(hark)
        texts = await hark.until_texts(2)
        assert texts[1].startswith("(From ")
        assert texts[1].endswith("dry")
        await tick(hark)
        assert len(hark.channel.texts()) == 2


async def test_a_mistake_in_the_file_is_told_once(hark: Hark) -> None:
    checklist(hark, TASKS.replace("1h", "soon"))
    await say_hello(hark)
    for _ in range(2):
        hark.model.add("fine")
        await tick(hark)
    lines = [text for text in hark.channel.texts() if "line 6" in text]
    assert len(lines) == 1
    assert "soon" in lines[0]


async def test_a_target_that_cannot_be_found_is_named_and_costs_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(target="telegram:-77")) as hark:
        checklist(hark)
        await say_hello(hark)
        await tick(hark)
        assert receipts(hark) == [("due", "not-shown", "")]
        found = await hark.service.parts.dispatcher.beats.look("now")
        assert found.skip is not None
        assert "telegram:-77" in found.skip.words


async def test_an_alert_is_new_in_another_conversation(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats() | {"owners": ["telegram:1", "telegram:2"]}) as hark:
        checklist(hark)
        for sender in ("1", "2"):
            await hark.write("hi", sender=sender, answers=["hello"])
            await hark.until_texts(1, sender)
            hark.model.add("The tomatoes are dry.")
            await tick(hark)
            await hark.until_texts(2, sender)
        assert hark.channel.texts("2") == ["hello", "The tomatoes are dry."]


async def test_a_beat_costs_no_more_than_a_bounded_file(hark: Hark) -> None:
    tasks = "".join(f"  - name: t{n}\n    interval: 1h\n    prompt: {'y' * 5000}\n" for n in range(100))
    checklist(hark, f"{'x' * 400_000}\ntasks:\n{tasks}")
    await say_hello(hark)
    hark.model.add("fine")
    await tick(hark)
    assert len(hark.model.requests[-1].messages[-1].text) < 40_000


async def test_a_quiet_beat_leaves_what_was_edited_to_the_next_turn(hark: Hark) -> None:
    checklist(hark)
    hark.model.add("hello")
    written = hark.message("meet at five")
    await hark.accept(written)
    await hark.until_texts(1)
    await hark.accept(replace(written, kind=InboundKind.EDIT, text="meet at seven", event_key="e:1"))
    hark.model.add("HEARTBEAT_OK")
    await tick(hark)
    assert "seven" not in hark.model.requests[-1].messages[-1].text
    await hark.write("when?", answers=["at seven"])
    assert "meet at seven" in (await hark.model.until_requests(3)).messages[-1].text


@pytest.mark.parametrize("isolated", [False, True])
async def test_an_event_that_a_failed_beat_has_seen_reaches_the_next_turn(tmp_path: Path, isolated: bool) -> None:
    async with running(tmp_path, config=with_beats(isolated=isolated)) as hark:
        checklist(hark)
        await say_hello(hark)
        await hark.service.parts.dispatcher.beats.wake("the backup has failed")
        hark.model.add(Fail(401, "authentication_error"))
        await tick(hark)
        assert "backup" in hark.model.requests[-1].messages[-1].text
        await hark.write("what is new?", answers=["I see"])
        assert "the backup has failed" in (await hark.model.until_requests(3)).messages[-1].text


async def test_of_very_many_events_the_newest_are_told_and_the_rest_counted(hark: Hark) -> None:
    checklist(hark)
    await say_hello(hark)
    for number in range(60):
        await hark.service.parts.dispatcher.beats.wake(f"event number {number}.")
    hark.model.add("so many")
    await tick(hark)
    text = hark.model.requests[-1].messages[-1].text
    assert [number for number in range(60) if f"event number {number}." not in text] == list(range(10))
    assert "10 more events" in text


async def test_an_alert_goes_to_an_owner_where_others_share_the_session(tmp_path: Path) -> None:
    config = with_beats(prompt="Look whether there is mail.") | {"sessions": {"dm_scope": "main"}}
    async with running(tmp_path, config=config) as hark:
        for sender in ("1", "2"):
            await hark.write("hi", sender=sender, answers=["hello"])
            await hark.until_texts(1, sender)
        hark.model.add("There is mail for you.")
        await tick(hark)
        await hark.until_texts(2, "1")
        assert hark.channel.texts("2") == ["hello"]


async def test_a_beat_that_answers_elsewhere_makes_no_prompt_for_its_session(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(target="none")) as hark:
        checklist(hark)
        await say_hello(hark)
        await hark.write("/new")
        await hark.until_texts(2)
        hark.model.add("HEARTBEAT_OK")
        await tick(hark)
        await hark.write("still there?", answers=["yes"])
        first, _, last = [await hark.model.until_requests(count) for count in (1, 2, 3)]
        assert last.system == first.system


async def test_two_sessions_at_work_both_get_the_beat_that_an_event_asks_for(hark: Hark) -> None:
    checklist(hark, "")
    held = asyncio.Event()
    for sender in ("1", "2"):
        await hark.write("hi", sender=sender, answers=[Say("a long answer", gate=held)])
    await hark.model.until_requests(2)
    beats = hark.service.parts.dispatcher.beats
    for sender in ("1", "2"):
        await beats.wake(f"news for {sender}", f"agent:main:telegram:direct:{sender}", now=True)
    held.set()
    await hark.until_texts(1, "1")
    await hark.until_texts(1, "2")
    for _ in range(3):
        hark.model.default = lambda request: "noted"
        await tick(hark, 15)
    texts = [request.messages[-1].text for request in hark.model.requests[2:]]
    assert [sum(f"news for {sender}" in text for text in texts) for sender in "12"] == [1, 1]


async def test_events_and_the_owners_place_outlive_what_is_forgotten(tmp_path: Path) -> None:
    day = 24 * 3600
    async with running(tmp_path, config=with_beats(every="0")) as hark:
        await say_hello(hark)
        beats = hark.service.parts.dispatcher.beats
        await beats.wake("the backup has failed")
        hark.time.advance(40 * day)
        pruning = asyncio.create_task(hark.service.parts.store.prune())
        while not pruning.done():
            await asyncio.sleep(0)
            hark.time.advance(0.05)
        assert (await beats.look("now")).facts.session == "agent:main:telegram:direct:1"
        await hark.write("what is new?", answers=["I see"])
        assert "the backup has failed" in (await hark.model.until_requests(2)).messages[-1].text


async def test_a_beat_late_at_night_counts_for_the_day_on_which_it_ran(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(every="6h", daily_budget=1)) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add("late")
        await tick(hark, 24 * 3600)
        await tick(hark, 6 * 3600)
        assert [reason for _, reason, _ in receipts(hark)] == ["", "missed", "budget"]


async def test_stop_reaches_isolated_beats(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(isolated=True)) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add(Hang())
        hark.time.advance(HALF_AN_HOUR)
        await hark.service.parts.dispatcher.tick()
        await hark.model.until_requests(2)
        await hark.write("/stop")
        assert "Stopped" in (await hark.until_texts(2))[1]
        await hark.until(lambda: receipts(hark) == [("due", "", "stopped")])


async def test_beats_and_jobs_of_owners_are_theirs_and_turns_of_others_are_not(tmp_path: Path) -> None:
    """What a model is told that answers owners alone."""
    async with running(tmp_path, config=with_beats(target="none")) as hark:
        checklist(hark)
        await say_hello(hark)
        assert hark.model.requests[-1].for_owners
        hark.model.add("The tomatoes are dry.")
        await tick(hark)
        assert hark.model.requests[-1].for_owners
        await hark.say("hi", sender="2", answers=["hello"])
        assert not hark.model.requests[-1].for_owners
        hark.model.add(Call("schedule", {"every": "1h", "prompt": "the garden?"}), "Yes.", "It is fine.", "It is fine.")
        await hark.say("ask every hour")
        asked = len(hark.model.requests)
        await tick(hark, 3600)
        assert any("the garden?" in one.messages[-1].text for one in hark.model.requests[asked:])
        assert all(one.for_owners for one in hark.model.requests[asked:])
