"""Why a model could not answer: one warning in the log, owners see it at once, everybody else a plain sentence."""

from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from agent.events import AgentEnd, Notice, Outcome
from bot import wording
from bot.service import PROBE_EVERY
from channels.message import ChatKind, Origin, Place
from tests.service import Hark, running
from tests.standins.script import Break, Fail

KEY = "sk-verysecret1"
CAUSE = "test/scripted: HTTP 404 not_found_error: <key> is wrong"


def refuse(hark: Hark) -> None:
    hark.model.add(Fail(404, "not_found_error", f"{KEY} is wrong"))


@pytest.fixture(autouse=True)
def fresh_loggers() -> None:
    structlog.reset_defaults()


async def test_the_cause_is_one_warning(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        refuse(hark)
        with capture_logs() as lines:
            await hark.say("hello")
    (warning,) = [line for line in lines if line["log_level"] in ("warning", "error")]
    del warning["event"], warning["turn"]
    assert warning == {
        "log_level": "warning",
        "provider": "test",
        "model": "scripted",
        "kind": "model_not_found",
        "status": 404,
        "said": "HTTP 404 not_found_error: <key> is wrong",
    }


async def test_what_is_tried_again_is_no_warning_and_in_the_log(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.add(Break())
        with capture_logs() as lines:
            assert (await hark.say("hello")).outcome is Outcome.COMPLETED
    assert [line["log_level"] for line in lines if "said" in line] == ["info"]


async def test_an_owner_sees_the_cause_and_others_a_sentence_that_says_nothing_of_the_service(hark: Hark) -> None:
    refuse(hark)
    assert (await hark.say("hello")).texts == [f"{wording.failure('model_not_found')}\n\n{CAUSE}"]
    for _ in range(2):
        refuse(hark)
        await hark.write("hello", sender="2")
    told = await hark.until_texts(2, "2")
    assert told == [wording.OUT_OF_ORDER] * 2
    await hark.until_texts(2)
    await hark.delivered()
    (notice,) = hark.channel.texts()[1:]  # once, though it happened twice
    assert CAUSE in notice
    assert "chat 2" in notice


async def test_in_a_program_s_answer_the_cause_is_no_text(hark: Hark) -> None:
    refuse(hark)
    place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
    message = hark.message("hello", origin=Origin(place=place, sender="http"))
    await hark.accept(message)
    await hark.until(lambda: [event for event in hark.events if isinstance(event, AgentEnd)])
    assert hark.stored.deliveries("said") == [(wording.failure("model_not_found"),)]


async def test_status_tells_owners_of_the_last_failure(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.write("/status")
        assert "failure" not in (await hark.until_texts(1))[-1]
        refuse(hark)
        await hark.say("hello")
    async with running(tmp_path) as hark:
        await hark.write("/status")
        assert f"**Failure** Tue 2026-07-14 03:33 UTC, {CAUSE}" in (await hark.until_texts(1))[-1]
        await hark.write("/status", sender="2")
        assert "ailure" not in (await hark.until_texts(1, "2"))[-1]


async def test_retries_are_said_in_plain_words_and_once(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for seconds in (4, 2.5, 7):
            hark.model.add(Fail(429, retry_after=seconds))
        await hark.write("hello", answers=[Break(), "There."])
        for seconds in (4, 2.5, 7):
            await hark.time.until_pause(seconds, 1 + (seconds == PROBE_EVERY))
            hark.time.advance(seconds)
        await hark.until_texts(1)
    assert [(event.kind, event.detail) for event in hark.events if isinstance(event, Notice)] == [
        ("wait", "The provider is busy; trying again in 4 s."),
        ("wait", ""),
        ("wait", ""),
        ("retry", "The connection to the model broke; trying again."),
    ]


def test_what_people_are_told() -> None:
    assert "/new" not in wording.failure("model_not_found")
    assert "name" in wording.failure("model_not_found")
    assert "key" not in wording.failure("unsupported_region")
    assert wording.failure("crash") == wording.CRASHED_TWICE
