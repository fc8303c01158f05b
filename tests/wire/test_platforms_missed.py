"""What is promised of every platform when nobody listened: it is answered once, oldest first, however that goes."""

import json
from pathlib import Path

import pytest

from tests.wire.platforms import ROOMS, SIDES, Said
from tests.wire.stage import Stage, staged

pytestmark = pytest.mark.xdist_group("wire-platforms")
every = pytest.mark.parametrize("name", list(SIDES))
rooms = pytest.mark.parametrize("name", list(ROOMS))
with_history = pytest.mark.parametrize("name", [name for name, side in SIDES.items() if not side.replays])
connected = pytest.mark.parametrize("name", [name for name in SIDES if name != "slack-http"])
STEPS = 40
"""Commits at which a life may end, at the most."""


@every
async def test_what_was_said_meanwhile_is_answered_once_oldest_first(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side, room = stage.side, stage.side.room
        async with stage.serving():
            side.say("hello")
            ours = side.thread(side.say("a topic", "bob", room))
            side.say("question", "alice", room, thread=ours, mention=True)
            await stage.until(lambda: side.posts(room, ours) == ["re: question"], "an answer")
            await stage.settled()
        missed = [f"missed {number}" for number in range(4)]
        for text in missed:
            said = side.say(text if text != "missed 2" else "miss")
            if text == "missed 2":
                side.edit(said, text)
        if side.deletes:
            side.delete(side.say("taken back"))
        asked = side.say("in the room", "bob", room, mention=True)
        below = side.answers_below(asked)
        side.say("in the thread", "bob", room, thread=ours)
        side.say("not for it", "bob", room)
        side.say("let me in", "carol")
        async with stage.serving():
            side.say("live")
            side.again()
            await stage.settled()
            await stage.passing(lambda: "re: live" in side.posts() and stage.at_rest(), "all answers")
            await stage.passing(lambda: side.posts(room, below)[-1:] == ["re: in the room"], "the room's")
            await stage.passing(lambda: side.posts(room, ours)[-1:] == ["re: in the thread"], "the thread's")
        async with stage.serving():
            side.again()
            await stage.settled()
        assert heard(stage) == ["hello", *missed, "live"]
        answers = [text for text in side.posts() if "asks to write to me" not in text]
        assert (answers[0], answers[-1]) == ("re: hello", "re: live")
        if not side.replays:  # what comes live is the turn of what was missed, or comes behind it
            assert answers[1:-1] in ([], [f"re: {missed[-1]}"])
        assert side.posts(room, ours) == ["re: question", "re: in the thread"]
        assert side.posts(room, below).count("re: in the room") == 1
        assert not any("not for it" in text for text in side.shown())
        assert len(side.posts(who="carol")) == side.tells_firsts, "a code, once"


@every
async def test_what_is_too_old_is_passed_over_with_one_line(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side = stage.side
        async with stage.serving():
            side.say("hello")
            await stage.settled()
        side.say("old")
        side.say("older than a day")
        stage.time.advance(25 * 3600)
        side.say("new")
        for _ in range(2):
            async with stage.serving():
                side.again()
                await stage.settled()
                await stage.passing(lambda: "re: new" in side.posts(), "an answer")
        first, *away, last = side.posts()
        assert (first, last) == ("re: hello", "re: new")
        assert len(away) == 1
        assert "I was away" in away[0]


@with_history
async def test_what_comes_while_the_history_is_read_comes_behind_it(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side = stage.side
        async with stage.serving():
            side.say("hello")
            await stage.settled()
        side.say("missed")
        held = side.hold_history()
        async with stage.serving():
            await stage.until(held.reached.is_set, "a look into the history")
            side.say("live")
            await stage.until(lambda: "live" in stage.stored.texts(), "its acceptance")
            assert side.posts() == ["re: hello"]
            held.release()
            await stage.passing(lambda: "re: live" in side.posts() and stage.at_rest(), "both answers")
        assert heard(stage) == ["hello", "missed", "live"]


async def test_on_a_large_server_a_direct_message_is_read_before_channels_that_are_not_let_in(tmp_path: Path) -> None:
    async with staged("discord", tmp_path, catch_up={"max_conversations": 3}) as stage:
        side, server = stage.side, stage.side.server
        stage.changes["section"] = {"groups": {"allow": {str(side.other["guild_id"]): {}}}}
        far = server.add_guild("Far", *side.people.values())
        chatty = [server.add_channel(far, f"street-{number}") for number in range(3)]
        async with stage.serving():
            side.say("hello")
            side.say("question", "bob", side.other, mention=True)
            for street in chatty:
                side.say("chatter", "bob", street)
            await stage.settled()
        side.say("missed")
        side.say("asked", "bob", side.other, mention=True)
        for street in chatty:
            side.say("more chatter", "bob", street)
        async with stage.serving():
            await stage.passing(lambda: "re: missed" in side.posts(), "an answer")
            await stage.passing(lambda: "re: asked" in side.posts(side.other), "the room's")
        looked_at = [one for street in chatty for one in server.calls(f"GET /channels/{street['id']}/messages")]
        assert looked_at == []


@pytest.mark.parametrize("name", ["slack", "discord"])
@pytest.mark.parametrize("trouble", ["the store is full", "the connection breaks"])
async def test_trouble_while_the_history_is_read_changes_nothing(name: str, trouble: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side = stage.side
        async with stage.serving():
            side.say("hello")
            await stage.settled()
        side.say("missed")
        held = side.hold_history() if trouble == "the store is full" else side.fail_history()
        async with stage.serving():
            side.say("live")
            if trouble == "the store is full":
                await stage.until(held.reached.is_set, "a look into the history")
                stage.full = True
                held.release()
                side.say("live, too")
                await stage.passing(lambda: not stage.ready(), "red")
                stage.full = False
            else:
                side.say("live, too")
            await stage.passing(lambda: "re: live, too" in side.posts() and stage.at_rest(), "all answers")
            side.again()
            await stage.settled()
        assert heard(stage) == ["hello", "missed", "live", "live, too"]


@every
async def test_a_restart_in_the_midst_of_a_burst_keeps_its_order(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side, said = stage.side, [f"word {number}" for number in range(12)]
        if not side.knows_sends:
            side.may_double(*(f"re: {word}" for word in said))
        async with stage.serving():
            side.say("hello")
            await stage.settled()
            for word in said[:5]:
                side.say(word)
            await stage.until(lambda: len(stage.stored.texts()) > 2, "the first of them")
        for word in said[5:8]:
            side.say(word)
        async with stage.serving():
            for word in said[8:]:
                side.say(word)
            await stage.passing(lambda: f"re: {said[-1]}" in side.posts() and stage.at_rest(), "all answers")
            side.again()
            await stage.settled()
        assert heard(stage) == ["hello", *said]


@connected
async def test_connections_that_end_lose_and_double_nothing(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side, said = stage.side, ["hello"]
        if name != "discord":  # which needs no quick heartbeat to notice the end of a connection
            side.impatient()
        async with stage.serving():
            await ends_of_connections(stage, said)
        assert side.posts() == [f"re: {text}" for text in said]


async def ends_of_connections(stage: Stage, said: list[str]) -> None:
    side = stage.side
    side.say("hello")
    await stage.settled()
    for number in range(3):
        for end in ("cut", "renewed"):
            said.append(f"{end} {number}")
            if end == "cut":
                side.cut()
                side.say(said[-1])
            else:
                await side.renew()
                side.say(said[-1])
            await stage.passing(lambda: side.posts()[-1] == f"re: {said[-1]}", "an answer")
    await stage.passing(stage.ready, "green")
    await stage.settled()


@every
async def test_what_could_not_be_stored_is_found_after_a_restart(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side = stage.side
        async with stage.serving():
            side.say("hello")
            await stage.settled()
            stage.full, before = True, stage.commits
            side.say("refused")
            await stage.until(lambda: stage.commits > before, "a try")
            await stage.until(lambda: not stage.ready(), "red")
        side.say("missed")
        stage.full = False
        async with stage.serving():
            await stage.passing(lambda: "re: missed" in side.posts() and stage.at_rest(), "both answers")
            side.again()
            await stage.settled()
        assert heard(stage) == ["hello", "refused", "missed"]


@rooms
async def test_a_crash_at_any_step_of_catching_up_loses_and_doubles_nothing(name: str, tmp_path: Path) -> None:
    """Every second life dies, each three commits later; what is said before each of them is said to nobody."""
    async with staged(name, tmp_path) as stage:
        side, directly, asked = stage.side, ["hello"], dict[int, Said]()
        async with stage.serving():
            side.say("hello")
            await stage.settled()
        for step in range(1, STEPS, 3):
            directly = [*directly, f"before {step}", f"after {step}"]
            asked = {**asked, step: side.say(f"asked {step}", "bob", side.room, mention=True)}
            side.say(directly[-2])
            stage.die_at, stage.die_when = step, ("before", "after")[step % 2]
            async with stage.serving():
                await stage.passing(
                    lambda now=directly[:-1], rooms=asked: stage.dead or answered(stage, now, rooms),
                    "the end of a life",
                )
                survived = not stage.dead
            side.say(directly[-1])
            if not side.knows_sends:
                side.may_double(*(f"re: {text}" for text in directly), *(f"re: asked {one}" for one in range(STEPS)))
            async with stage.serving():
                await stage.passing(lambda now=directly, rooms=asked: answered(stage, now, rooms), "all answers")
            if survived:
                break
        assert survived, "a life has fewer commits than that"
        assert step > 4, "it has died on its way"
        once = list(dict.fromkeys(side.posts()))
        assert heard(stage) == directly
        assert once == [f"re: {text}" for text in directly if f"re: {text}" in once]
        assert side.posts() == once or not side.knows_sends


def heard(stage: Stage) -> list[str]:
    """What Alice wrote directly, as the model was shown it: the last line of each message, in order."""
    turns = {turn for turn, key in stage.stored.turns("turn_id", "session_key") if f":direct:{stage.side.alice}" in key}
    lines = [json.loads(body) for turn, body in stage.stored.entries("turn_id", "body", kind="user") if turn in turns]
    return [str(line["parts"][-1]["text"]).rsplit("\n", 1)[-1] for line in lines]


def answered(stage: Stage, directly: list[str], asked: dict[int, Said]) -> bool:
    """Whether all of it is, where it was said, and nothing is left to be done."""
    side = stage.side
    below = {step: side.posts(side.room, side.answers_below(said)) for step, said in asked.items()}
    in_room = all(f"re: asked {step}" in found for step, found in below.items())
    return heard(stage) == directly and f"re: {directly[-1]}" in side.posts() and in_room and stage.at_rest()
