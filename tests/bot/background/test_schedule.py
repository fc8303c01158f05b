"""Reminders and jobs: the `schedule` tool and /schedule, and what becomes of what they order."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.message import ToolResult, estimate_text
from agent.tools.registry import SESSIONS
from bot.background import jobs as limits
from bot.background.jobs import JobError, Jobs
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatKind, Origin, Place
from channels.session_key import console_key
from heartbeat.schedule import Cron
from tests.bot.background.test_due_times import settle
from tests.scripted_model import texts
from tests.service import Hark, running, session_of
from tests.standins.script import Call, Fail

GROUP = {"channels": {"telegram": {"groups": {"policy": "allowlist", "require_mention": False, "allow": {"-5": {}}}}}}
HOUR = 3600.0
DUE = "Due: Tue 2026-07-14 05:33 UTC, Tue 2026-07-14 07:33 UTC, Tue 2026-07-14 09:33 UTC."


async def command(hark: Hark, text: str, chat: str = "1", **fields: Any) -> str:
    """What a command of the owner is answered."""
    sent = len(hark.channel.texts(chat))
    await hark.accept(hark.message(text, chat, **fields))
    return (await hark.until_texts(sent + 1, chat))[sent]


async def call(hark: Hark, sender: str = "1", **arguments: Any) -> tuple[str, bool]:
    """What the model is told when it calls the tool, and whether that is an error."""
    await hark.say("do it", sender, answers=[Call("schedule", arguments), "done"])
    (result,) = hark.model.requests[-1].messages[-1].parts
    assert isinstance(result, ToolResult)
    return result.text, result.is_error


async def due(hark: Hark, seconds: float) -> None:
    """Let time pass, and what is due then be done."""
    hark.time.advance(seconds)
    await settle(hark)
    await hark.delivered()


def offered(hark: Hark) -> bool:
    """Whether the newest request had the tool."""
    return "schedule" in [tool.name for tool in hark.model.requests[-1].tools]


def in_group(hark: Hark, sender: str = "1", thread: str = "") -> dict[str, Any]:
    """Fields of a message that somebody writes into the group."""
    message_id = hark.message("").origin.message_id
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP, thread=thread)
    return {"origin": Origin(place=place, sender=sender, message_id=message_id), "event_key": f"m:-5:{message_id}"}


async def test_the_tool_is_small_and_tells_the_next_three_times(hark: Hark) -> None:
    told = await call(hark, every="2h", prompt="look after the garden")
    ((job_id,),) = hark.stored.jobs("job_id", name="look after the garden")
    assert told == (f"Scheduled `{job_id}` look after the garden (every 2 hours). {DUE}", False)
    (tool,) = [tool for tool in hark.model.requests[0].tools if tool.name == "schedule"]
    assert estimate_text(tool.description + tool.schema_json) < 300
    assert '"required"' not in tool.schema_json, "add is what it does unless something else is said"


async def test_times_are_those_of_the_zone_that_was_asked_for(hark: Hark) -> None:
    told, _ = await call(hark, cron="0 9 * * 1-5", zone="America/New_York", prompt="x")
    assert told.endswith("Due: Tue 2026-07-14 09:00 EDT, Wed 2026-07-15 09:00 EDT, Thu 2026-07-16 09:00 EDT.")
    told, _ = await call(hark, at="2026-07-14T12:00", zone="Europe/Berlin", prompt="y")
    assert told.endswith("Due: Tue 2026-07-14 10:00 UTC.")


async def test_it_is_there_where_only_owners_write(tmp_path: Path) -> None:
    async with running(tmp_path, config=GROUP) as hark:
        await hark.say("hello")
        assert offered(hark)
        prefix = hark.model.requests[-1].tools
        await hark.say("hello", sender="2")
        assert not offered(hark)
        await hark.accept(hark.message("hello", "-5", **in_group(hark)))
        await hark.until(lambda: len(hark.model.requests) == 3)
        assert not offered(hark), "others read and write there"
        await hark.service.parts.api.submit("hi", "agent:main:http:direct:x", _program(), "owner")
        await hark.until(lambda: len(hark.model.requests) == 4)
        assert not offered(hark), "nobody would read what a job says"
        for session in ("own", "current"):
            await call(hark, every="1h", prompt=f"an {session} look", session=session)
        await due(hark, HOUR)
        of_jobs = [one for one in hark.model.requests if "scheduled job" in texts(one, "user")[-1]]
        own = tuple(tool for tool in prefix if tool.name not in ("schedule", "task_list", *SESSIONS))
        found = sorted((one.tools for one in of_jobs), key=len)
        assert found == [own, prefix], "the tools of a session stay the same"


def _program() -> Place:
    return Place(channel="http", account="", chat="x", kind=ChatKind.API)


async def test_it_goes_by_the_session_and_not_by_who_asks(tmp_path: Path) -> None:
    scope = {"dm_scope": "per-peer", "identity_links": {"ada": ["telegram:3"]}}
    async with running(tmp_path, config={"sessions": scope}) as hark:
        found = []
        for sender in ("1", "2", "3"):
            await hark.write("hello", sender=sender)
            await hark.until_texts(1, sender)
            found.append(offered(hark))
        assert found == [True, False, False], "none of ada's ids is an owner's"
        for number, (key, sender) in enumerate(
            (("direct:telegram%3A1", "program"), ("direct:telegram%3A2", "owner")), 4
        ):
            await hark.service.parts.api.submit("hello", f"agent:main:{key}", _program(), sender)
            await hark.until(lambda number=number: len(hark.model.requests) == number)
            found.append(offered(hark))
        assert found[3:] == [True, False]


async def test_in_the_session_that_all_share_only_owners_can(tmp_path: Path) -> None:
    config = {"sessions": {"dm_scope": "main"}, "tools": {"untrusted": {"person": "allow"}}}
    async with running(tmp_path, config=config) as hark:
        for sender, refused in (("2", True), ("1", False)):
            await hark.write("do it", sender=sender, answers=[Call("schedule", {"every": "1h", "prompt": "x"}), "done"])
            await hark.until_texts(1, sender)
            (result,) = hark.model.requests[-1].messages[-1].parts
            assert isinstance(result, ToolResult)
            assert result.is_error == refused
            assert ("only owners" in result.text) == refused


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "x"}, "exactly one of `at`, `every` and `cron`"),
    ({"prompt": "x", "at": "2026-07-20T09:00", "every": "1h"}, "exactly one"),
    ({"prompt": "x", "at": "2020-01-01T00:00Z"}, "is past"),
    ({"prompt": "x", "at": "tomorrow"}, "ISO 8601"),
    ({"prompt": "x", "every": "0.5s"}, "at least 1s"),
    ({"prompt": "x", "cron": "* * *"}, "five"),
    ({"prompt": "x", "cron": "0 9 * * *", "zone": "Europe/Berlik"}, "Europe/Berlin"),
    ({"prompt": " ", "every": "1h"}, "the prompt is empty"),
    ({"prompt": "x" * 8001, "every": "1h"}, "at most 8000"),
    ({"prompt": "x", "every": "1h", "name": "x" * 81}, "a name 80"),
    ({"action": "delete"}, "Say which job"),
    ({"action": "pause", "id": "nothing"}, "There is no job `nothing`"),
    ({"action": "forget"}, "'history'"),
]


async def test_mistakes_are_told_in_words_and_keep_nothing(hark: Hark) -> None:
    for arguments, words in MISTAKES:
        text, is_error = await call(hark, **arguments)
        assert is_error, arguments
        assert words in text
    assert await command(hark, "/schedule") == "Nothing is scheduled."


async def test_a_reminder_comes_once_where_it_was_asked_for_and_is_gone(hark: Hark) -> None:
    await call(hark, at="2026-07-14T04:33:00Z", prompt="Remind me of the bread.", name="Bread")
    hark.model.add("The bread is ready.")
    await due(hark, HOUR)
    assert hark.channel.texts()[-1] == "The bread is ready."
    (asked,) = texts(hark.model.requests[-1], "user")
    assert 'scheduled job "Bread"' in asked
    assert "Remind me of the bread." in asked
    assert hark.stored.jobs("job_id", name="Bread") == []
    sent = hark.channel.texts()
    await due(hark, 100 * HOUR)
    assert hark.channel.texts() == sent
    await hark.say("is it?", answers=["yes"])
    assert "The bread is ready." in str(hark.model.requests[-1].messages), "the conversation knows what was said"


async def test_a_job_of_the_current_session_has_its_history(hark: Hark) -> None:
    await call(hark, every="1h", prompt="And now?", session="current")
    hark.model.add("Nothing new.")
    await due(hark, HOUR)
    assert [session for (session,) in hark.stored.turns("session_key")] == [session_of("1")] * 2
    assert len(texts(hark.model.requests[-1], "user")) == 2


async def test_it_answers_in_the_topic_where_an_owner_ordered_it(tmp_path: Path) -> None:
    async with running(tmp_path, config=GROUP) as hark:
        told = await command(hark, "/schedule every 1h look", "-5", **in_group(hark, thread="7"))
        assert told.startswith("Scheduled `")
        hark.model.add("I looked.")
        await due(hark, HOUR)
        assert [(one.body, one.place.thread) for one in hark.channel.sent][-1] == ("I looked.", "7")
        ((session,),) = hark.stored.firings("session_key")
        assert session == "agent:main:telegram:group:-5:thread:7"


async def test_for_others_there_is_no_such_command(hark: Hark) -> None:
    for text in ("/schedule", "/heartbeat off"):
        await hark.say(text, sender="2")
    assert [texts(one, "user")[-1].split("\n")[-1] for one in hark.model.requests] == [
        "/schedule",
        "/heartbeat off",
    ]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ('cron "0 9 * * 1-5" good\nmorning', ("good\nmorning", "0 9 * * 1-5", "")),
        ("cron “0 9 * * 1-5 Europe/Berlin” hello", ("hello", "0 9 * * 1-5", "Europe/Berlin")),
        ("cron 0 9 * * 1 say hello", ("say hello", "0 9 * * 1", "")),
    ],
)
async def test_crontabs_as_people_type_them(typed: str, kept: tuple[str, str, str], hark: Hark) -> None:
    assert (await command(hark, f"/schedule {typed}")).startswith("Scheduled")
    (found,) = [one for one in await hark.service.parts.store.schedules.jobs() if one.origin]
    assert isinstance(found.schedule, Cron)
    assert (found.prompt, found.schedule.expression, found.schedule.zone) == kept


@pytest.mark.parametrize(
    ("typed", "due"),
    [
        ("in 10m take the cake out", "Tue 2026-07-14 03:43 UTC."),
        ("at 18:30 take the cake out", "Tue 2026-07-14 18:30 UTC."),
        ("at tomorrow 9 take the cake out", "Wed 2026-07-15 09:00 UTC."),
        ("Tomorrow at 9 take the cake out", "Wed 2026-07-15 09:00 UTC."),
        ("every 5 minutes take the cake out", "Tue 2026-07-14 03:38 UTC, Tue 2026-07-14 03:43 UTC, "),
        ("EVERY monday 8:00 take the cake out", "Mon 2026-07-20 08:00 UTC, Mon 2026-07-27 08:00 UTC, "),
    ],
)
async def test_times_as_people_say_them(typed: str, due: str, hark: Hark) -> None:
    answer = await command(hark, f"/schedule {typed}")
    assert "` take the cake out" in answer
    assert f". Due: {due}" in answer


async def test_mistakes_in_a_chat(hark: Hark) -> None:
    for typed, words in (
        ("every 1h", "the prompt is empty"),
        ("cron 0 9 * *", "Write five fields in quotes"),
        ("tomorrow buy milk", "I did not understand when, in 'tomorrow buy milk'. Write the time first"),
        (
            "at dawn wake me",
            "`/schedule in 10m Take the cake out` or `/schedule every monday 8:00 Sum up my inbox`",
        ),
        ("at 2020-01-01T00:00 look", "is past"),
        ("run", "Say which job. By id: none."),
    ):
        assert words in await command(hark, f"/schedule {typed}")
    (answer,) = [
        await hark.service.parts.api.submit("/schedule every 1h x", "agent:main:http:direct:x", _program(), "owner")
    ]
    assert answer is not None
    await hark.until(lambda: hark.stored.deliveries(turn_id=answer.turn_id))
    ((said,),) = hark.stored.deliveries("said", turn_id=answer.turn_id)
    assert said.startswith("What a job says could not be delivered here.")


async def test_jobs_rest_go_on_run_and_are_deleted(hark: Hark) -> None:
    await command(hark, "/schedule every 2h first")
    await command(hark, "/schedule at 2026-07-14T06:00Z second")
    listed = (await command(hark, "/schedule list")).split("\n")
    ids = [line.split("`")[1] for line in listed]
    assert listed == [
        f"- `{ids[0]}` first (every 2 hours); next Tue 2026-07-14 05:33 UTC",
        f"- `{ids[1]}` second; next Tue 2026-07-14 06:00 UTC",
    ]
    assert await command(hark, "/schedule pause First") == f"`{ids[0]}` first (every 2 hours): paused."
    asked = len(hark.model.requests)
    await due(hark, 2 * HOUR)
    assert len(hark.model.requests) == asked
    resumed = await command(hark, f"/schedule resume {ids[0][:4]}")
    assert resumed == f"`{ids[0]}` first (every 2 hours): next Tue 2026-07-14 07:33 UTC."
    assert "runs now in a session of its own" in await command(hark, f"/schedule run `{ids[1]}`")
    await due(hark, 0)
    assert len(hark.stored.jobs(job_id=ids[1])) == 1, "it is still to come"
    assert await command(hark, "/schedule delete second") == f"Deleted `{ids[1]}` second. What has begun of it goes on."
    assert f"There is no job `{ids[1]}`" in await command(hark, f"/schedule delete {ids[1]}")
    assert len(await _lines(hark, "/schedule")) == 1


async def _lines(hark: Hark, text: str) -> list[str]:
    return (await command(hark, text)).split("\n")


async def test_several_of_a_name_are_told_apart(hark: Hark) -> None:
    for hours in (1, 2):
        await command(hark, f"/schedule every {hours}h look")
    told = await command(hark, "/schedule delete look")
    assert told.startswith("Several jobs have that name. By id: `")
    assert len(await _lines(hark, "/schedule")) == 2


async def test_the_history_says_what_became_of_each_due_time(hark: Hark) -> None:
    await command(hark, "/schedule every 1h look")
    hark.model.add(Fail(401, "authentication_error"))
    await due(hark, HOUR)
    failed = (await _lines(hark, "/schedule"))[0]
    assert failed.endswith("; failed 1 time in a row, next Tue 2026-07-14 05:33 UTC")
    hark.model.add("NO_REPLY")
    await due(hark, HOUR)
    hark.model.add("I looked.")
    await due(hark, 5 * HOUR + 100)
    head, *lines = await _lines(hark, "/schedule history look")
    assert head.endswith("; next Tue 2026-07-14 11:33 UTC")
    assert [line.split(" UTC: ")[-1] for line in lines] == [
        "skipped (missed)",
        "said, late, 15 tokens",
        "quiet, 15 tokens",
        "failed (auth)",
    ]
    assert lines[0].startswith("- Tue 2026-07-14 07:33 UTC to Tue 2026-07-14 10:35 UTC: ")


async def test_a_job_that_failed_says_when_it_is_tried_again(hark: Hark) -> None:
    """Which is behind due times that it passes over."""
    await command(hark, "/schedule every 1m look")
    for _ in range(3):
        hark.model.add(Fail(401, "authentication_error"))
        ((following, retry),) = hark.stored.jobs("next_at", "retry_at", name="look")
        await due(hark, (max(following, retry) - hark.time.now()) / 1000 + 60)
    ((following, retry),) = hark.stored.jobs("next_at", "retry_at", name="look")
    assert following + 60_000 < retry, "it passes over more than one"
    said = (await _lines(hark, "/schedule"))[0].partition("; failed 3 times in a row, next ")[2]
    again = range(retry, retry + 60_000)
    assert [at for at in again if at % 60_000 == following % 60_000 and hark.service.parts.clock.stamp(at) == said]


async def test_a_reminder_whose_time_passed_while_it_rested_is_not_resumed(hark: Hark) -> None:
    await command(hark, "/schedule at 2026-07-14T04:00Z tea")
    await command(hark, "/schedule pause tea")
    await due(hark, HOUR)
    assert "has passed" in await command(hark, "/schedule resume tea")
    assert (await _lines(hark, "/schedule"))[0].endswith("paused")


async def test_the_same_order_adds_one_job_and_there_are_only_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST", 3)
    async with running(tmp_path) as hark:
        await hark.until(hark.stored.jobs, "the heartbeat, which is one of them")
        jobs, origin = Jobs(hark.service.parts.dispatcher), hark.message("x").origin
        first = await jobs.add("cmd:1", origin, "look", {"every": "2h"})
        hark.time.advance(60)
        assert await jobs.add("cmd:1", origin, "look", {"every": "2h"}) == first, "its phase stays as well"
        await jobs.add("cmd:2", origin, "look", {"every": "2h"})
        with pytest.raises(JobError, match="as many as may be"):
            await jobs.add("cmd:3", origin, "look", {"every": "2h"})
        assert len(hark.stored.jobs()) == 3


async def test_in_the_terminal_it_runs_in_the_session_that_the_terminal_shows(tmp_path: Path) -> None:
    async with running(tmp_path, config={"channels": {"console": {"enabled": True}}}) as hark:
        jobs, origin = Jobs(hark.service.parts.dispatcher), Origin(place=CONSOLE, sender="owner")
        await jobs.add("cmd:1", replace(origin, message_id="7"), "look", {"every": "1h"})
        hark.model.add("I looked.")
        await due(hark, HOUR)
        ((session,),) = hark.stored.turns("session_key")
        assert session == "agent:main:console:direct:local"
        assert hark.stored.firings("outcome") == [("said",)]


async def test_a_terminal_begins_with_what_a_person_wrote_last_and_not_with_what_a_job_was_asked(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, config={"channels": {"console": {"enabled": True}}}) as hark:
        parts, origin = hark.service.parts, Origin(place=CONSOLE, sender="owner")
        hark.model.add("Four.")
        await parts.api.submit("two and two?", console_key(), _program(), "owner")
        await hark.until(lambda: hark.stored.turns(state="done"))
        await Jobs(parts.dispatcher).add("cmd:1", replace(origin, message_id="7"), "look", {"every": "1h"})
        hark.model.add("I looked.")
        await due(hark, HOUR)
        assert hark.stored.firings("outcome") == [("said",)]
        last = await parts.store.reads.last_exchange(console_key(), await parts.store.reads.last_event())
        assert last is not None
        assert last.question == "two and two?"


async def test_an_order_hurries_who_looks_what_is_due(hark: Hark) -> None:
    hurried: list[int] = []
    jobs = Jobs(replace(hark.service.parts.dispatcher, hurry=lambda: hurried.append(1)))
    await jobs.add("1", hark.message("x").origin, "look", {"every": "1h"})
    await jobs.carry_out("pause", "look")
    await jobs.carry_out("resume", "look")
    assert len(hurried) == 3


async def test_mistakes_of_who_names_no_job(hark: Hark) -> None:
    await command(hark, "/schedule every 1h look")
    for order in ("delete", "delete ` `"):
        assert (await command(hark, f"/schedule {order}")).startswith("Say which job. By id: `")
