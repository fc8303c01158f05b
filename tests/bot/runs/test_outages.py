"""What a turn does when its model fails: other keys, other models, and an outage as a delay.

Real clients of the OpenAI SDK over loopback, with several keys and providers; time stands still but where a test moves
it.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ErrorKind
from agent.events import AgentEnd, MessageEnd, Notice, Outcome
from bot import wording
from bot.runs.outages import MENDED_EVERY, OTHERWISE_EVERY, PARKED_EVERY
from bot.service import SWEEP_EVERY
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running, session_of
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Break, Fail, Say
from tests.watch import ManualTime, Watch

KEYS = ("sk-first-key", "sk-second-key")


def config(*servers: OpenAIServer, fallbacks: list[dict[str, Any]] | None = None, keys: int = 1) -> dict[str, Any]:
    """The first server is the wanted model `one/gpt`, the second one `two/gpt`, and so on."""
    names = ("one", "two", "three")
    providers = {
        name: {"api": "openai-chat", "base_url": server.base_url, "api_keys": list(KEYS[:keys])}
        for name, server in zip(names, servers, strict=False)
    }
    return {"agent": {"model": "one/gpt", "fallbacks": fallbacks or []}, "providers": providers}


def keys_of(server: OpenAIServer) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]


def wrong_or_limited(request: Request, retry_after: int | None = None) -> list[Fail]:
    """The second key is wrong, and the first one limited."""
    wrong = request.headers["authorization"].endswith(KEYS[1])
    return [Fail(401) if wrong else Fail(429, retry_after=retry_after)]


async def pass_time(hark: Hark, seconds: float) -> None:
    """Let time pass in steps, each once the look for models that work again waits for its end."""
    until, pauses = hark.time.now() + seconds * 1000, hark.time.pauses
    while hark.time.now() < until:
        await hark.until(lambda: pauses(PARKED_EVERY) or pauses(OTHERWISE_EVERY), "the end of a look")
        hark.time.advance(PARKED_EVERY if pauses(PARKED_EVERY) else OTHERWISE_EVERY)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    """A provider that takes the usual key."""
    async with OpenAIServer(keys=KEYS) as made:
        yield made


async def test_the_next_key_answers_when_one_is_limited(tmp_path: Path, server: OpenAIServer) -> None:
    server.add(Fail(429))
    server.add(Say("There."))
    async with running(tmp_path, config=config(server, keys=2), chosen=True) as hark:
        reply = await hark.say("hello")
        assert (reply.texts, reply.outcome) == (["There."], Outcome.COMPLETED)
        assert [notice.kind for notice in reply.of(Notice)] == ["key"]
        assert sorted(keys_of(server)) == sorted(KEYS)
        server.add(Say("Again."))
        assert (await hark.say("and now?")).texts == ["Again."]
        assert keys_of(server)[2] == keys_of(server)[1], "the first one rests"


async def test_a_key_that_rests_rests_over_a_restart(tmp_path: Path, server: OpenAIServer) -> None:
    server.add(Fail(401))
    server.add(Say("There."))
    async with running(tmp_path, config=config(server, keys=2), chosen=True) as hark:
        await hark.say("hello")
        now = hark.time.now()
    watch = Watch()
    given: dict[str, Any] = {"model": ScriptedModel(watch), "time": ManualTime(watch, now)}
    async with running(tmp_path, config=config(server, keys=2), chosen=True, **given) as hark:
        server.add(Say("Still there."))
        await hark.say("and now?")
    assert keys_of(server)[2] == keys_of(server)[1]
    assert "sk-" not in str((tmp_path / "state" / "hark.db").read_bytes())


async def test_another_model_stands_in_and_leaves_again(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.add(Fail(529))
        two.add(Say("From two."))
        two.add(Say("From two again."))
        asked = config(one, two, fallbacks=[{"model": "two/gpt", "on": ["overloaded"]}])
        async with running(tmp_path, config=asked, chosen=True) as hark:
            first = await hark.say("hello")
            assert first.texts[-1] == "From two."
            assert "two/gpt" in first.texts[0], "it names the model that answers"
            assert [notice.kind for notice in first.of(Notice)] == ["model"]
            assert (await hark.say("go on")).texts == ["From two again."], "it is told once"
            assert len(one.requests) == 1
            one.add(Say("pong"))
            one.add(Say("From one."))
            await pass_time(hark, OTHERWISE_EVERY)
            await hark.until(lambda: len(one.requests) == 2, "the probe")
            again = await hark.say("and now?")
            assert again.texts[-1] == "From one."
            assert "one/gpt" in again.texts[0]


async def test_that_a_model_is_back_is_told_only_once_it_has_answered(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.default = two.default = lambda request: [Fail(529)]
        two.add(Say("From two."))
        asked = config(one, two, fallbacks=[{"model": "two/gpt", "on": ["overloaded"]}])
        async with running(tmp_path, config=asked, chosen=True) as hark:
            await hark.say("hello")
            await hark.write("and now?")
            await hark.time.until_pause(2)
            hark.time.advance(2)  # both are asked again
            await hark.until(lambda: len(one.requests) == 2, "the next try")
            one.default = lambda request: [Say("From one.")]
            await hark.time.until_pause(4)
            assert not [text for text in hark.channel.texts() if "again.)" in text]
            hark.time.advance(4)
            await hark.time.until_pause(8)
            hark.time.advance(8)
            await hark.until(lambda: "From one." in hark.channel.texts(), "the answer")
            assert hark.channel.texts()[-2:] == ["(`one/gpt` answers again.)", "From one."]


async def test_a_key_that_is_wrong_hides_no_other_that_is_only_limited(tmp_path: Path, server: OpenAIServer) -> None:
    server.default = wrong_or_limited
    async with running(tmp_path, config=config(server, keys=2), chosen=True) as hark:
        await hark.write("hello")
        await hark.time.until_pause(2)  # it is waited for the key that is limited
        server.default = lambda request: [Say("There.")]
        hark.time.advance(2)
        await hark.until(lambda: hark.channel.texts() == ["There."], "the answer")


async def test_an_outage_is_told_with_the_failure_that_passes_first(tmp_path: Path, server: OpenAIServer) -> None:
    server.default = lambda request: wrong_or_limited(request, retry_after=90)
    async with running(tmp_path, config=config(server, keys=2), chosen=True) as hark:
        await hark.say("hello")
        (told,) = hark.channel.texts()
        assert "limiting requests" in told
        assert "about 2 minutes" in told
        await hark.write("/status")
        await hark.until(lambda: len(hark.channel.texts()) == 2, "the status")
        assert "one/gpt does not work (auth, rate_limit); turns wait for it" in hark.channel.texts()[-1]


@pytest.mark.parametrize(("failure", "on"), [(Fail(401), "rate_limit"), (Fail(429), "auth")])
async def test_a_model_stands_in_only_for_the_failures_it_is_for(tmp_path: Path, failure: Fail, on: str) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.default = lambda request: [failure]
        asked = config(one, two, fallbacks=[{"model": "two/gpt", "on": [on]}])
        async with running(tmp_path, config=asked, chosen=True) as hark:
            await hark.write("hello")
            passed = 0.0
            for wait in (2, 4, 8, 8, 8) if failure.status == 429 else ():
                passed += wait
                await hark.time.until_pause(wait, 1 + (passed % SWEEP_EVERY == 0))
                hark.time.advance(wait)
            await hark.until(lambda: hark.ends(session_of("1")), "the end")
            assert hark.ends(session_of("1"))[0].outcome is Outcome.PARKED
            assert not two.requests


async def test_an_outage_is_a_delay(tmp_path: Path, server: OpenAIServer) -> None:
    server.default = lambda request: [Fail(401)]
    each = {**config(server), "queue": {"mode": "followup"}}
    async with running(tmp_path, config=each, chosen=True) as hark:
        for sender in ("2", "3"):
            await hark.write("first", sender=sender)
            await hark.until_texts(1, sender)
            await hark.write("second", "third", sender=sender)
        now = hark.time.now()
    watch = Watch()
    given: dict[str, Any] = {"model": ScriptedModel(watch), "time": ManualTime(watch, now)}
    async with running(tmp_path, config=each, chosen=True, **given) as hark:
        await pass_time(hark, OTHERWISE_EVERY)
        asked = {request.last_user_text.split("\n")[-1] for request in server.requests}
        assert asked <= {"first", "ping"}, "what comes behind a turn that waits asks nobody"
        assert hark.stored.turns("epoch") == [(1,)] * 2, "nor is the turn begun again for it"
        server.default = lambda request: [Say(f"Answer to {request.last_user_text}.")]
        await pass_time(hark, OTHERWISE_EVERY)
        for sender in ("2", "3"):
            told = await hark.until_texts(3, sender)
            await hark.delivered()
            assert [text.split()[-1] for text in told] == ["first.", "second.", "third."]


async def test_stop_ends_the_waiting(tmp_path: Path, server: OpenAIServer) -> None:
    server.default = lambda request: [Fail(401)]
    async with running(tmp_path, config=config(server), chosen=True) as hark:
        await hark.write("hello", sender="2")
        (told,) = await hark.until_texts(1, "2")
        assert "I have kept your message" in told
        await hark.write("/stop", sender="2")
        assert (await hark.until_texts(2, "2"))[1].startswith("Stopped")
        server.default = lambda request: [Say("Here.")]
        await pass_time(hark, 2 * OTHERWISE_EVERY)
        assert len(hark.channel.texts("2")) == 2
        ends = [end.outcome for end in hark.events if isinstance(end, AgentEnd)]
        assert ends == [Outcome.PARKED, Outcome.ABORTED]


async def test_what_waits_too_long_is_given_up(tmp_path: Path, server: OpenAIServer) -> None:
    server.default = lambda request: [Fail(402)]
    asked = config(server) | {"delivery": {"max_age": "10m"}}
    async with running(tmp_path, config=asked, chosen=True) as hark:
        await hark.write("hello", sender="2")
        await hark.until_texts(1, "2")
        await pass_time(hark, 700)
        assert "given up" in (await hark.until_texts(2, "2"))[1]
        await hark.until(lambda: len(hark.ends(session_of("2"))) == 2, "the end")
        assert hark.ends(session_of("2"))[1].outcome is Outcome.FAILED
        assert hark.ends(session_of("2"))[1].error_kind == "outage"


async def test_the_owner_is_told_of_a_key_that_is_refused(tmp_path: Path, server: OpenAIServer) -> None:
    server.default = lambda request: [Fail(401)]
    async with running(tmp_path, config=config(server), chosen=True) as hark:
        await hark.write("/help")
        await hark.until_texts(1)
        await hark.write("hello", sender="2")
        (told,) = await hark.until_texts(1, "2")
        assert "key" not in told
        assert "API key" in (await hark.until_texts(2))[1]


async def test_a_probe_waits_for_as_long_as_the_provider_asked(tmp_path: Path) -> None:
    watch = Watch()
    time = ManualTime(watch)
    async with OpenAIServer(keys=KEYS, clock=time.monotonic) as server:
        server.add(Fail(429, retry_after=90))
        model = ScriptedModel(watch)
        async with running(tmp_path, config=config(server), chosen=True, model=model, time=time) as hark:
            await hark.write("hello", sender="2")
            assert "2 minutes" in (await hark.until_texts(1, "2"))[0]
            await pass_time(hark, 80)
            assert len(server.requests) == 1
            server.default = lambda request: [Say("Here.")]
            await pass_time(hark, 20)
            assert (await hark.until_texts(2, "2"))[1] == "Here."


async def test_an_answer_that_broke_off_is_continued_by_another_model(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.add(Say("The first line of it.\n\nThe second"), Break(after_chunks=7))
        one.add(Break())
        two.add(Say("line of it."))
        asked = config(one, two, fallbacks=[{"model": "two/gpt"}])
        asked["channels"] = {"telegram": {"streaming": {"min_chars": 1, "max_chars": 64}}}
        async with running(tmp_path, config=asked, chosen=True) as hark:
            reply = await hark.say("tell me")
            assert reply.outcome is Outcome.COMPLETED
            assert reply.texts[-1].endswith("line of it.")
            assert [event.cut for event in reply.of(MessageEnd)][-1] is False


async def test_what_a_probe_uses_is_counted_for_the_bot_alone(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.add(Fail(529))
        two.default = lambda request: [Say("From two.")]
        asked = config(one, two, fallbacks=[{"model": "two/gpt", "on": ["overloaded"]}])
        async with running(tmp_path, config=asked, chosen=True) as hark:
            await hark.say("hello")
            one.add(Say("pong"))
            await pass_time(hark, OTHERWISE_EVERY)
            await hark.until(lambda: hark.stored.usage(turn_id=""), "the row of the probe")
            columns = ("session_key", "sender", "job_id", "model")
            assert hark.stored.usage(*columns, turn_id="") == [("", "", "", "one/gpt")]
            ((read, written),) = hark.stored.usage("input", "output", turn_id="")
            assert (read > 0, written > 0) == (True, True)
            await hark.write("/usage")
            tables = (await hark.until_texts(3))[2]
            assert "| probes of models | 1 |" in tables
            assert "| one/gpt | 1 |" in tables


@pytest.mark.parametrize(
    ("seconds", "span"), [(20, "a minute"), (75, "a minute"), (89.9, "2 minutes"), (300, "5 minutes")]
)
def test_how_long_an_outage_may_last(seconds: float, span: str) -> None:
    assert f"in about {span};" in wording.outage(ErrorKind.RATE_LIMIT, seconds, "", to_owner=False)


async def test_the_next_outage_is_told_as_well(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as server, running(tmp_path, config=config(server), chosen=True) as hark:
        for number in (1, 2):
            server.add(Fail(402))
            await hark.write(f"hello {number}")
            told = (await hark.until_texts(2 * number - 1))[-1]
            assert "kept your message" in told
            server.add(Say("pong"))
            server.add(Say(f"There {number}."))
            await pass_time(hark, MENDED_EVERY)
            assert (await hark.until_texts(2 * number))[-1] == f"There {number}."
