"""Where beats speak: where the owner is reached at present; and what could not go out, once it can and may."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.events import SAID, Notice
from bot.background.views import receipt
from bot.people.access import OWNER
from bot.persistence.schedules import HEARTBEAT, Firing
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatKind, Origin, Place
from channels.session_key import console_key
from tests.bot.background.test_beats import BEATS, HALF_AN_HOUR, checklist, receipts, say_hello, tick, with_beats
from tests.bot.background.test_schedule import command
from tests.scripted_model import texts
from tests.service import Hark, RecordingChannel, running, session_of
from tests.watch import Watch

ALERT = "Two of the tomatoes are dry."


def account(name: str) -> Any:
    """Makes the platform as another bot."""

    def made(watch: Watch, **fields: Any) -> RecordingChannel:
        channel = RecordingChannel(watch, **fields)
        channel.account = name
        return channel

    return made


async def say_in_terminal(hark: Hark) -> None:
    """One message of the owner in `hark chat`, and its answer."""
    hark.model.add("hello, terminal")
    api = hark.service.parts.api
    await api.submit("hi", console_key(), CONSOLE, OWNER)
    await hark.until(lambda: hark.ends(console_key()), "the answer")


@contextmanager
def open_terminal(hark: Hark) -> Iterator[None]:
    """A terminal reads the events of its session."""
    bus = hark.service.parts.bus
    reading = bus.subscribe(console_key())
    try:
        yield
    finally:
        bus.unsubscribe(reading)


def shown_in_terminal(hark: Hark) -> list[str]:
    """What beats and the service itself say in the session that terminals read."""
    found = (event for event in hark.events if isinstance(event, Notice) and event.kind == SAID)
    return [event.detail for event in found if event.run.session_key == console_key()]


async def lose(hark: Hark) -> None:
    """A beat speaks up, and its words cannot be delivered in time."""
    hark.channel.wait = 2 * 3600
    hark.model.add(ALERT)
    hark.time.advance(HALF_AN_HOUR)
    await hark.service.parts.dispatcher.tick()
    await hark.until(lambda: hark.time.pauses(2 * 3600), "the wait for the rate limit")
    hark.channel.wait = 0
    hark.time.advance(2 * 3600)
    await hark.until(lambda: hark.stored.deliveries("source", state="expired"), "the end of its time")
    checklist(hark, "")


async def test_a_terminal_that_is_closed_hears_nothing_while_a_platform_is_there(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark)
        await say_hello(hark)
        await say_in_terminal(hark)
        hark.model.add(ALERT)
        await tick(hark)
        assert await hark.until_texts(2) == ["hello", ALERT]
        assert shown_in_terminal(hark) == []


async def test_a_terminal_that_is_open_is_where_the_owner_is(tmp_path: Path) -> None:
    """Also when the beat knows nothing of its session: terminals read the events of that alone."""
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark)
        await say_hello(hark)
        await say_in_terminal(hark)
        with open_terminal(hark):
            hark.model.add(ALERT)
            await tick(hark)
            await hark.until(lambda: shown_in_terminal(hark), "the alert")
        assert shown_in_terminal(hark) == [ALERT]
        assert hark.channel.texts() == ["hello"]
        hark.model.add("The third one. Really dry, too.")
        await tick(hark)
        assert (await hark.until_texts(2))[1:] == ["The third one. Really dry, too."]


async def test_who_is_nowhere_else_finds_it_in_the_terminal_later(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark)
        await say_in_terminal(hark)
        hark.model.add(ALERT)
        await tick(hark)
        await hark.until(lambda: shown_in_terminal(hark), "the alert")
        assert shown_in_terminal(hark) == [ALERT]


async def test_an_account_that_is_gone_is_no_place(tmp_path: Path) -> None:
    """Nothing is asked for it and nothing said again there; the next place hears what was lost, and knows of it."""
    given = BEATS | {"delivery": {"max_age": "1h"}}
    async with running(tmp_path, config=given) as hark:
        checklist(hark)
        await say_hello(hark)
        await lose(hark)
        checklist(hark)
        time = hark.time
    async with running(tmp_path, config=given, time=time, made=account("other")) as hark:
        await tick(hark)
        assert ("late", "not-shown", "") in receipts(hark)
        assert hark.stored.deliveries("source", state={"planned", "sending"}) == []
        hark.model.add("hello again")
        place = Place(channel="telegram", account="other", chat="1", kind=ChatKind.DIRECT)
        await hark.write("hi", origin=Origin(place=place, sender="1", message_id="99"))
        await hark.until_texts(1)
        checklist(hark, "")
        await tick(hark)
        (_, again) = await hark.until_texts(2)
        assert again.startswith("(From ")
        assert again.endswith(ALERT)


@pytest.mark.parametrize(
    "closed", [{"active_hours": {"start": "00:00", "end": "00:00"}}, {"show_alerts": False, "show_ok": True}]
)
async def test_what_was_lost_is_said_again_only_through_the_gate(tmp_path: Path, closed: dict[str, Any]) -> None:
    given = {"delivery": {"max_age": "1h"}}
    async with running(tmp_path, config=BEATS | given) as hark:
        checklist(hark)
        await say_hello(hark)
        await lose(hark)
        time = hark.time
    async with running(tmp_path, config=with_beats(**closed) | given, time=time) as hark:
        await tick(hark)
        assert hark.stored.deliveries("source", state={"planned", "sending"}) == []
        assert hark.channel.texts() == []
        time = hark.time
    async with running(tmp_path, config=BEATS | given, time=time) as hark:
        await tick(hark)
        (again,) = await hark.until_texts(1)
        assert again.endswith(ALERT)
        await tick(hark)
        await hark.say("which ones?", answers=["The ones by the wall."])
        asked = hark.model.requests[-1].messages[-1].text
        assert asked.count(ALERT) == 1, "the conversation knows what was said in it"
        assert hark.channel.texts() == [again, "The ones by the wall."]


# /heartbeat: how it stands, on, off and now.

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


async def test_nonsense_is_explained(hark: Hark) -> None:
    assert "'status', 'on', 'off' or 'now'" in await command(hark, "/heartbeat soon")
