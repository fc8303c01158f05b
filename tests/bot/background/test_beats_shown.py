"""What people see of beats: nothing until it is known that something is worth it, and then once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent import models
from agent.events import AgentEnd, AgentStart, MessageEnd, MessageUpdate, Outcome
from agent.models.base import ModelClient, ModelSpec
from agent.tools.registry import SESSIONS
from bot.cli.terminal.view import Piece, View
from bot.persistence.approvals import Choice
from bot.persistence.schedules import Job
from channels.outgoing import Action
from heartbeat.schedule import Every
from tests.asking import ASKED, AskingTool, approval, said
from tests.bot.background.test_beats import BEATS, HALF_AN_HOUR, TASKS, checklist, receipts, say_hello, tick, with_beats
from tests.scripted_model import ScriptedModel
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.script import Call, Fail, Hang, Say, Stop
from tests.stored import Like
from tests.watch import LoopTime

LONG = "The disk is **full**.\n\n    df -h\n\n- one\n- two " + "x" * 300
# Beats that are turns of the conversation itself.
IN_SESSION = with_beats(isolated=False, light_context=False)
MODES = ("block", "preview", "off")

# What a model answers, and what people are shown of it.
CASES: list[tuple[str, str]] = [
    ("HEARTBEAT_OK", ""),
    ("**HEARTBEAT_OK**", ""),
    ("<p>HEARTBEAT_OK</p>", ""),
    ("&nbsp;HEARTBEAT_OK!\n", ""),
    ("HEARTBEAT_OK. Nothing new in the garden.", ""),
    ("All is well in the house.\n\n`HEARTBEAT_OK`.", ""),
    (f"HEARTBEAT_OK {'y' * 300}", ""),
    (f"HEARTBEAT_OK {'y' * 301}", "y" * 301),
    (f"{LONG}\n\n**HEARTBEAT_OK**", LONG),
    ("[[reply_to_current]] HEARTBEAT_OK", ""),
    ("NO_REPLY", ""),
    ("", ""),
    ("The log says HEARTBEAT_OK and nothing else.", "The log says HEARTBEAT_OK and nothing else."),
    ("The tomatoes are dry.", "The tomatoes are dry."),
    ("MEDIA: dry.png\nHEARTBEAT_OK", "dry.png"),
    ("```\nHEARTBEAT_OK is the sign of a server\n```", "```\nHEARTBEAT_OK is the sign of a server\n```"),
]


def streaming(mode: str, **fields: Any) -> dict[str, Any]:
    """A configuration with beats, and answers that go out early."""
    small = {"mode": mode, "min_chars": 1, "idle_ms": 0}
    return with_beats(**fields) | {"channels": {"telegram": {"streaming": small}}}


async def beat(hark: Hark, *parts: Any) -> list[str]:
    """One beat with this answer; returns what was sent because of it, files by their names."""
    before = len(hark.channel.sent)
    hark.model.add(*parts)
    await tick(hark)
    await hark.until(lambda: len(ended(hark)) == len(hark.stored.turns(kind="beat")), "the end of the beat")
    await hark.delivered()
    return [sent.file.name if sent.file else sent.body for sent in hark.channel.sent[before:]]


def ended(hark: Hark) -> list[AgentEnd]:
    """The ends of beats."""
    return [event for event in of_beats(hark) if isinstance(event, AgentEnd)]


def of_beats(hark: Hark) -> list[Any]:
    """The events of beats."""
    runs = {event.run.run_id for event in hark.events if isinstance(event, AgentStart) and event.is_beat}
    return [event for event in hark.events if event.run.run_id in runs]


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_quiet_is_not_shown_and_the_rest_is(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path, config=streaming(mode)) as hark:
        checklist(hark)
        (tmp_path / "workspace" / "dry.png").write_bytes(b"png")
        await say_hello(hark)
        cases = CASES if mode == "block" else CASES[::3]
        seen = [(answer, await beat(hark, answer)) for answer, _ in cases]
        assert seen == [(answer, [shown] if shown else []) for answer, shown in cases]
        assert [outcome for *_, outcome in receipts(hark)] == ["said" if shown else "quiet" for _, shown in cases]
        assert not [sent for sent in hark.channel.sent if sent.action in (Action.EDIT, Action.DELETE)]
        assert not [event for event in of_beats(hark) if isinstance(event, MessageUpdate)]


async def test_a_stream_that_is_cut_anywhere_says_the_same(tmp_path: Path) -> None:
    async with running(tmp_path, config=streaming("preview")) as hark:
        checklist(hark)
        await say_hello(hark)
        for at in range(1, len("*HEARTBEAT_OK*"), 2):
            assert (
                await beat(hark, Say("*HEARTBEAT_OK* ok", ("*HEARTBEAT_OK* ok"[:at], "*HEARTBEAT_OK* ok"[at:]))) == []
            )
            text = f"HEARTBEAT_OKAY {at}"
            assert await beat(hark, Say(text, (text[:at], text[at:]))) == [text]


async def test_all_words_of_a_beat_are_one_text(tmp_path: Path) -> None:
    """Also those before a call, and those that the limit of output has parted."""
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark)
        await say_hello(hark)

        async def looked(*answers: Sequence[Any]) -> list[str]:
            for answer in answers[:-1]:
                hark.model.add(*answer)
            return await beat(hark, *answers[-1])

        look = Call("read", {"path": "HEARTBEAT.md"})
        assert await looked([Say("I look around."), look], [Say("HEARTBEAT_OK")]) == []
        assert await looked([Say("The shed is open."), look], [Say("And it rains.")]) == [
            "The shed is open.\n\nAnd it rains."
        ]
        assert await looked([Say("It is dr"), Stop("max_tokens")], [Say("y.")]) == ["It is dry."]
        assert await looked([Say("Two are lost."), Call("stay_silent")]) == []
        ends = [event.text for event in of_beats(hark) if isinstance(event, MessageEnd)]
        assert ends == ["", "", "", "The shed is open.\n\nAnd it rains.", "", "It is dry.", ""]
        assert [end.outcome for end in ended(hark)] == [Outcome.COMPLETED] * 4


@pytest.mark.parametrize(
    ("general", "there", "quiet", "alert"),
    [
        ({}, {}, [], ["dry"]),
        ({"show_ok": True}, {}, ["HEARTBEAT_OK"], ["dry"]),
        ({"show_alerts": False, "show_ok": True}, {}, ["HEARTBEAT_OK"], []),
        ({"show_alerts": False}, {"show_alerts": True}, [], ["dry"]),
        ({}, {"show_ok": True, "show_alerts": False}, ["HEARTBEAT_OK"], []),
        ({"show_ok": True}, {"show_ok": False}, [], ["dry"]),
    ],
)
async def test_what_is_shown_is_up_to_the_account_and_else_to_the_heartbeat(
    tmp_path: Path, general: dict[str, bool], there: dict[str, bool], quiet: list[str], alert: list[str]
) -> None:
    config = with_beats(**general) | {"channels": {"telegram": {"heartbeat": there}}}
    async with running(tmp_path, config=config) as hark:
        checklist(hark)
        await say_hello(hark)
        assert await beat(hark, "HEARTBEAT_OK.") == quiet
        assert await beat(hark, Call("stay_silent")) == quiet
        assert await beat(hark, "dry") == alert
        assert [outcome for *_, outcome in receipts(hark)] == ["quiet", "quiet", "said" if alert else "quiet"]


async def test_the_same_alert_is_not_said_again_within_a_day(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(every="8h")) as hark:
        checklist(hark)
        await say_hello(hark)
        alert, other = (f"The disk of the server in the cellar is full to {percent} percent." for percent in (91, 92))
        answers = [alert, f"**{alert}**", alert, alert, other, alert, alert]
        shown = []
        for answer in answers:
            hark.model.add(answer)
            await tick(hark, 8 * 3600 + 1)
        await hark.delivered()
        shown = said(hark)[1:]
        assert shown == [alert, alert, other, alert], "the second comes a day and a little after the first"


async def test_an_alert_is_compared_with_the_last_one_on_its_task(tmp_path: Path) -> None:
    """Also where other tasks are looked at besides, or in between; a beat without tasks looks at all."""
    tasks = TASKS.replace("mail", "shop")
    down, up, news = "The shop is down.", "The shop is up.", "There is news."
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark, tasks)
        await say_hello(hark)
        assert await beat(hark, down) == [down], "shop and news"
        assert await beat(hark, up) == [up], "shop"
        assert await beat(hark, down) == [down], "shop and news"
        assert await beat(hark, down) == [], "shop"
        checklist(hark, tasks.partition("  - name: news")[0].replace("shop", "garden"))
        assert await beat(hark, news) == [news], "garden"
        checklist(hark, tasks)
        assert await beat(hark, down) == [], "shop and news"
        checklist(hark)
        assert await beat(hark, up) == [up], "no task"
        checklist(hark, tasks)
        assert await beat(hark, down) == [down], "shop and news"
        assert hark.stored.firings("tasks")[-2:] == [("[]",), ('["shop", "news"]',)]


async def test_what_was_lost_is_said_again_and_then_not_once_more(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS | {"delivery": {"max_age": "1h"}}) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.channel.wait = 2 * 3600
        hark.model.add("The tomatoes are dry.")
        hark.time.advance(HALF_AN_HOUR)
        await hark.service.parts.dispatcher.tick()
        await hark.until(lambda: hark.time.pauses(2 * 3600), "the wait for the rate limit")
        hark.channel.wait = 0
        hark.time.advance(2 * 3600)
        await hark.until(lambda: hark.stored.deliveries("source", state="expired"), "the end of its time")
        (again,) = await beat(hark, "The tomatoes are dry.")
        assert again.startswith("(From ")
        assert again.endswith("The tomatoes are dry.")
        assert await beat(hark, "The tomatoes are dry.") == []
        assert receipts(hark)[-1] == ("due", "", "quiet")


async def test_nothing_is_typed_and_nothing_told_beside_a_beat(tmp_path: Path) -> None:
    async def look(label: str) -> str:
        return "fine"

    async with running(
        tmp_path,
        config=BEATS,
        channel={"typing_seconds": 5},
        tools=lambda watch: [ScriptedTool("look", look, watch)],
    ) as hark:
        checklist(hark)
        await say_hello(hark)
        await hark.write("/verbose on")
        await hark.until_texts(2)
        hark.channel.log.clear()
        hark.model.add(Call("look", {}))
        assert await beat(hark, "dry") == ["dry"]
        hark.model.add(Call("look", {}))
        assert await beat(hark, "HEARTBEAT_OK") == []
        assert hark.channel.log == [("send", "dry")]


async def test_a_beat_that_fails_says_nothing_in_the_conversation(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add(Say("The shed is open."), Call("read", {"path": "HEARTBEAT.md"}))
        assert await beat(hark, Fail(401, "authentication_error")) == []
        assert receipts(hark) == [("due", "auth", "failed")]
        assert hark.stored.deliveries("source", source=Like("failed:%")) == []
        assert {hidden for (hidden,) in hark.stored.entries("hidden", turn_id=beats(hark)[-1])} == {1}


async def test_quiet_beats_cost_later_requests_nothing(tmp_path: Path) -> None:
    """The next request is as it would be without them."""
    async with running(tmp_path, config=IN_SESSION) as hark:
        checklist(hark)
        await say_hello(hark)
        for number in range(12):
            if number % 2:
                hark.model.add(Call("read", {"path": "HEARTBEAT.md"}))
            assert await beat(hark, "HEARTBEAT_OK") == []
        (used,) = hark.stored.sessions("used_at")[0]
        await hark.say("how many?", answers=["Twelve."])
        asked = hark.model.requests[-1].messages
        assert [message.text for message in asked[1:2]] == ["hello"]
        assert len(asked) == 3
        assert used < hark.time.now() - 11 * HALF_AN_HOUR * 1000, "the session is as old as its last message"
        assert len(hark.stored.entries("seq", hidden=1)) == 12 * 2 + 6 * 2, "they are kept"
        assert hark.model.requests[1].messages[:2] == asked[:2], "a beat sees the session"
        systems = {request.system for request in hark.model.requests}
        tools = {request.tools for request in hark.model.requests}
        assert (len(systems), len(tools)) == (1, 1), "its prefix is that of the session"


async def test_an_alert_stays_in_the_session(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_SESSION) as hark:
        checklist(hark)
        await say_hello(hark)
        assert await beat(hark, "HEARTBEAT_OK") == []
        assert await beat(hark, "The shed is open.") == ["The shed is open."]
        assert await beat(hark, "HEARTBEAT_OK") == []
        await hark.say("close it", answers=["I told you so."])
        asked = [message.text for message in hark.model.requests[-1].messages]
        assert [len(asked), asked[1], asked[3]] == [5, "hello", "The shed is open."]


@pytest.mark.parametrize("isolated", [False, True])
async def test_a_light_beat_has_no_files_of_the_workspace(tmp_path: Path, isolated: bool) -> None:
    async with running(tmp_path, config=with_beats(light_context=True, isolated=isolated)) as hark:
        checklist(hark)
        (tmp_path / "workspace" / "SOUL.md").write_text("You love gardens above everything.")
        await say_hello(hark)
        for _ in range(2):
            assert await beat(hark, "HEARTBEAT_OK") == []
            light = hark.model.requests[-1]
            assert "You love gardens" not in light.system
            assert "tomatoes" in light.messages[-1].text
            assert len(light.messages) == (1 if isolated else 3)
        await hark.say("well?", answers=["yes"])
        first, last = hark.model.requests[0], hark.model.requests[-1]
        assert "You love gardens" in first.system
        assert (last.system, last.tools) == (first.system, first.tools)
        lacks = {tool.name for tool in first.tools} - {tool.name for tool in light.tools}
        nothing = {"schedule", "task_list", *SESSIONS} if isolated else set()
        assert lacks == nothing, "a session of its own orders nothing, and nobody watches its work"


async def test_a_terminal_shows_only_what_a_beat_says(tmp_path: Path) -> None:
    async with running(tmp_path, config=BEATS | {"channels": {"console": {"enabled": True}}}) as hark:
        checklist(hark)
        await say_hello(hark)
        view, printed = View(0), list[Piece]()
        for answer in ("HEARTBEAT_OK", "The shed is open."):
            hark.model.add(Say("I look."), Call("read", {"path": "HEARTBEAT.md"}))
            await beat(hark, answer)
        for event in of_beats(hark):
            printed += view.event(event)
            assert view.live is None
            assert view.running is None
        assert [piece.text for piece in printed] == ["I look.\n\nThe shed is open."]
        assert len(ended(hark)) == 2


async def test_a_beat_that_waited_for_a_person_keeps_its_words(tmp_path: Path) -> None:
    asking = AskingTool()
    async with running(tmp_path, config=BEATS, tools=lambda watch: [asking]) as hark:
        checklist(hark)
        await say_hello(hark)
        hark.model.add(Say("The shed is open."), Call("ask", {"label": "shut it"}))
        hark.time.advance(HALF_AN_HOUR)
        await hark.service.parts.dispatcher.tick()
        assert await hark.until_texts(2)
        assert said(hark)[1:] == [ASKED]
        hark.model.add("It is shut now.")
        assert await hark.service.parts.requests.decide(await approval(hark), Choice(verdict="once"), "telegram:1")
        await hark.until_texts(4)
        assert said(hark)[2:] == ["The shed is open.\n\nIt is shut now."]
        assert asking.begun == ["shut it"]


async def test_a_job_that_fails_says_so_once(tmp_path: Path) -> None:
    async with running(tmp_path, channel={"typing_seconds": 5}) as hark:
        await hark.say("hi")
        schedules, now = hark.service.parts.store.schedules, hark.time.now()
        hourly = Job(
            job_id="j1",
            name="water",
            schedule=Every(3_600_000, now),
            prompt="water the garden",
            origin=hark.message("").origin,
            session_key=session_of("1"),
            own=True,
            next_at=now + 3_600_000,
        )
        assert await schedules.put(hourly, 100)
        hark.channel.log.clear()
        answers: list[Any] = [Fail(401, "authentication_error")] * 2 + ["Done.", Fail(401, "authentication_error")]
        for answer in answers:
            hark.model.add(answer)
            await tick(hark, 3600)
        await hark.delivered()
        sent = [text.partition(";")[0] for what, text in hark.channel.log if what == "send"]
        assert len(hark.channel.log) == 3, "nothing is typed"
        first, done, again = sent
        assert first.startswith("The scheduled job 'water' failed. It is tried again")
        assert (done, again) == ("Done.", first)
        assert [became for *_, became in receipts(hark)] == ["failed", "failed", "said", "failed"]


async def test_beats_have_a_model_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, ScriptedModel] = {}

    def build(spec: ModelSpec) -> ModelClient:
        made[spec.name] = ScriptedModel()
        made[spec.name].name = spec.name
        made[spec.name].add(f"from {spec.name}")
        return made[spec.name]

    monkeypatch.setattr(models, "build", build)
    house = {"house": {"api": "anthropic", "base_url": "http://127.0.0.1:9", "api_keys": ["k"]}}
    config = with_beats(model="house/small") | {"agent": {"model": "house/large"}, "providers": house}
    async with running(tmp_path, config=config, chosen=True) as hark:
        checklist(hark)
        assert (await hark.say("hi")).texts == ["from house/large"]
        await hark.until(lambda: hark.stored.jobs("job_id"), "the job of the heartbeat")
        await tick(hark)
        await hark.until_texts(2)
        assert said(hark)[1] == "from house/small"
        assert [event.model for event in hark.events if isinstance(event, AgentStart)] == list(made)


async def test_a_beat_has_time_of_its_own_and_may_be_silent_in_it(tmp_path: Path) -> None:
    async with running(tmp_path, config=with_beats(timeout_seconds=100)) as hark:
        checklist(hark)
        await say_hello(hark)
        hang = Hang()
        hark.model.add(hang)
        hark.time.advance(HALF_AN_HOUR)
        await hark.service.parts.dispatcher.tick()
        await hang.entered()
        time = LoopTime()
        await time.advance(99)
        assert not ended(hark)
        await time.advance(1.1)
        await hark.until(lambda: ended(hark), "the end of the beat")
        assert [end.outcome for end in ended(hark)] == [Outcome.TIMEOUT]
        assert said(hark) == ["hello"]


def beats(hark: Hark) -> list[str]:
    """The ids of their turns, oldest first."""
    return [turn_id for (turn_id,) in hark.stored.turns("turn_id", kind="beat")]
