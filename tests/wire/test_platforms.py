"""What is promised of every platform, asked of each of them: the whole service over real sockets.

Accepted before acknowledged, once, in order; what becomes of a send that nobody answers; what a platform in trouble
does to the others.
"""

import logging
import time
from pathlib import Path

import pytest

from bot.service import Service
from channels.base import HealthState
from tests.standins.script import Hang
from tests.wire.platforms import SIDES, Slack
from tests.wire.stage import staged

pytestmark = pytest.mark.xdist_group("wire-platforms")
every = pytest.mark.parametrize("name", list(SIDES))


def reads_histories(service: Service) -> bool:
    """Whether what was missed is being read, so that live messages wait for it."""
    return any(one.listing or one.gaps for one in service.parts.pipeline._catch_up._accounts.values())


@every
async def test_it_is_stored_before_it_is_acknowledged_and_answered_once(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving() as service:
        side = stage.side
        stage.full, before = True, stage.commits
        said = side.say("kept")
        await stage.until(lambda: stage.commits > before, "a try to store it")
        side.again()
        await stage.until(lambda: not service.parts.health.view().ready, "red")
        assert (side.open, side.posts(), stage.stored.messages()) == (side.acknowledges, [], [])
        stage.full = False
        side.again()
        await stage.passing(
            lambda: side.posts() == ["re: kept"] and service.parts.health.view().ready, "an answer and green"
        )
        # what is said while histories are read is answered together
        await stage.passing(lambda: not reads_histories(service), "the end of the histories")
        side.repeat(said)
        burst = [f"word {number}" for number in range(5)]
        for word in burst:
            side.say(word)
        await stage.passing(lambda: len(side.posts()) > 5 and not side.open and stage.at_rest(), "the other answers")
        assert side.posts() == ["re: kept", *(f"re: {word}" for word in burst)]
        assert stage.stored.texts() == ["kept", *burst]


@every
async def test_two_hundred_events_at_once_are_kept_in_order_and_in_time(name: str, tmp_path: Path) -> None:
    slow = 0.05
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        side.may_break()  # nothing follows the signs of work
        stage.model.on("alice 0", Hang())  # all others wait behind these
        stage.model.on("bob 0", Hang())
        stage.slow, before = lambda: time.sleep(slow), stage.commits  # in the thread of the database
        said = {who: [f"{who} {number}" for number in range(100)] for who in ("alice", "bob")}
        for alice, bob in zip(said["alice"], said["bob"], strict=True):
            side.say(alice, "alice")
            side.say(bob, "bob")
        await stage.until(lambda: not side.open and len(stage.stored.messages("seq")) == 200, "acknowledgements")
        assert (stage.commits - before) * slow < 2.5, "Slack waits for three seconds"
        assert stage.stored.texts(sender=side.alice) == said["alice"]
        assert stage.stored.texts(sender=side.bob) == said["bob"]
        await stage.until(lambda: len(stage.model.requests) == 2, "both runs")


@pytest.mark.parametrize("applied", [False, True])
@every
async def test_a_send_that_nobody_answers_is_not_lost_and_not_doubled_where_that_can_be_known(
    name: str, applied: bool, tmp_path: Path
) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        doubled = applied and not side.knows_sends
        if doubled:
            side.may_double("re: hello")
        side.fail_send(applied=applied)
        side.say("hello")
        await stage.passing(lambda: side.posts() and stage.at_rest(), "rest")
        side.say("more")
        await stage.passing(lambda: stage.at_rest() and side.posts()[-1] == "re: more", "the next answer")
        assert side.posts() == ["re: hello"] * (1 + doubled) + ["re: more"]


@every
async def test_a_flooded_conversation_holds_up_no_other(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        flood = side.flood("alice")
        side.say("slow", "alice")
        await stage.until(lambda: flood.fired, "a refusal")
        side.say("quick", "bob")
        await stage.until(lambda: side.posts(who="bob") == ["re: quick"], "the other answer")
        assert side.posts() == []
        await stage.passing(lambda: side.posts() == ["re: slow"] and stage.at_rest(), "the answer")


@pytest.mark.parametrize("name", [name for name in SIDES if name != "slack-http"])  # it brings, and nobody can tell
async def test_a_server_that_falls_silent_is_noticed_and_left_until_it_speaks(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side = stage.side
        side.impatient()
        side.may_break()
        async with stage.serving():
            speak = side.fall_silent()
            side.say("hello")
            await stage.passing(lambda: not stage.ready(), "red")
            speak()
            await stage.passing(lambda: stage.ready() and side.posts() == ["re: hello"], "green, and an answer")


@every
async def test_a_wrong_token_is_one_sentence_and_the_other_platform_runs_on(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = "discord" if name == "telegram" else "telegram"
    async with staged(other, tmp_path) as stage, SIDES[name](stage.time) as broken:
        stage.beside = (broken,)
        async with stage.serving(ready=False, built=broken.change_token) as service:
            await stage.passing(lambda: stage.state() is HealthState.READY, "the other platform")
            stage.side.say("hello")
            await stage.passing(lambda: stage.side.posts() == ["re: hello"], "an answer")
            later = stage.time.monotonic() + 30
            await stage.passing(lambda: stage.time.monotonic() >= later, "more tries")
            found = service.parts.health.view().channels[broken.name]
            assert found.state == HealthState.DOWN.value
            assert "token" in found.detail
            assert not service.parts.health.view().ready
        said = [one for one in caplog.records if one.levelno >= logging.WARNING and broken.name in one.name]
        assert [one.exc_info for one in said] == [None]
        assert found.detail in said[0].getMessage()


async def test_two_accounts_that_are_one_bot_are_said_and_the_first_goes_on(tmp_path: Path) -> None:
    """On Slack; Telegram's are in test_accounts.py, and bots of Discord share a server, where one bot has one token."""
    async with staged("slack", tmp_path) as stage, Slack(stage.time) as twin:
        first, second = stage.side.server, twin.server
        second.bot_token, second.app_token = "xoxb-second", "xapp-1-second"
        tokens = {"bot_token": second.bot_token, "app_token": second.app_token, "base_url": second.base_url}
        section = {"bot_token": first.bot_token, "app_token": first.app_token, "base_url": first.base_url}
        stage.changes["section"] = {**section, "enabled": True, "accounts": {"twin": tokens}}
        stage.alone = True
        async with stage.serving(ready=False) as service:
            await stage.passing(lambda: "same bot" in service.parts.health.view().channels["slack:twin"].detail, "that")
            await stage.passing(lambda: stage.state() is HealthState.READY, "the first")
            assert not service.parts.health.view().ready
            stage.side.say("hello")
            await stage.passing(lambda: stage.side.posts() == ["re: hello"], "an answer")
