"""`/hark`, which nobody but who typed it sees: between people, in channels with threads, with long and late answers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.commands.registry import Arguments, Call, Command, Effect, Say
from channels.slack.render import MAX_UNITS
from channels.sources import sentence
from tests.standins.script import Gate
from tests.standins.script import Say as Words
from tests.standins.slack_shapes import ALICE, BOB, Room
from tests.wire.stage import Stage, staged

pytestmark = pytest.mark.xdist_group("wire-platforms")


@dataclass
class Book:
    """A command with a long answer, line by line; given when `open` is set. asked: somebody waits for it."""

    lines: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def text(self) -> str:
        return "\n".join(f"line {number} {'x' * 90}" for number in range(self.lines))

    def command(self) -> Command:
        async def read(call: Call, _: Arguments) -> Effect:
            self.asked.set()
            await self.open.wait()
            return Say(self.text)

        return Command(name="book", help="Reads it out.", run=read)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged("slack", tmp_path) as made:
        yield made


def colleagues(stage: Stage) -> Room:
    """The direct conversation of Alice, who owns the bot, and Bob, in which the bot is not."""
    return stage.side.server.add_room(Room("D0COLLEAG1", "im", members=[ALICE.id, BOB.id]))  # type: ignore[no-any-return]


def whispered(stage: Stage, room: Room) -> list[str]:
    """What the bot said there that Alice alone sees."""
    return [one.shown for one in stage.side.server.sent if (one.channel, one.only_to) == (room.id, ALICE.id)]


def public(stage: Stage, room: Room) -> list[str]:
    """What the bot said there for all to see."""
    return [one.shown for one in stage.side.server.sent if (one.channel, one.only_to) == (room.id, None)]


def lines(said: list[str]) -> list[str]:
    return [line for text in said for line in text.splitlines()]


@pytest.mark.parametrize("where", ["a channel", "a chat of two people"])
@pytest.mark.parametrize(("messages", "private"), [(2, 2), (8, 5)])
async def test_a_long_answer_is_seen_by_who_asked_alone_and_is_whole(
    stage: Stage, where: str, messages: int, private: int
) -> None:
    book = Book(lines=messages * MAX_UNITS // 110)
    book.open.set()
    stage.given["commands"] = (book.command(),)
    room = stage.side.room if where == "a channel" else colleagues(stage)
    async with stage.serving():
        stage.side.server.slash(room, ALICE, "book")
        await stage.until(lambda: len(lines(whispered(stage, room)) + lines(stage.side.posts())) >= book.lines, "all")
        await stage.settled()
    assert public(stage, room) == []
    rest = stage.side.posts()
    assert (len(whispered(stage, room)), len(rest)) == (private, messages - private)
    assert lines(whispered(stage, room)) + lines(rest) == book.text.splitlines()


async def test_a_late_answer_goes_to_direct_messages_whole_also_over_a_crash(stage: Stage) -> None:
    book = Book(lines=3)
    stage.given["commands"] = (book.command(),)
    room = stage.side.room
    async with stage.serving():
        stage.side.server.slash(room, ALICE, "book")
        await asyncio.wait_for(book.asked.wait(), 5)
        stage.die_at = 1
        stage.time.advance(31 * 60)
        book.open.set()
        await stage.until(lambda: stage.dead, "the crash")
    async with stage.serving():
        await stage.passing(lambda: lines(stage.side.posts()) == book.text.splitlines(), "the answer")
        await stage.settled()
    assert (public(stage, room), whispered(stage, room)) == ([], [])


async def test_what_goes_to_direct_messages_is_not_said_twice(stage: Stage) -> None:
    """There it is an ordinary message: one whose outcome nobody told is looked up."""
    book = Book(lines=3)
    stage.given["commands"] = (book.command(),)
    async with stage.serving():
        stage.side.server.slash(stage.side.room, ALICE, "book")
        await asyncio.wait_for(book.asked.wait(), 5)
        stage.time.advance(31 * 60)
        stage.side.server.fail_next("chat.postMessage", drop=True, after_apply=True)
        book.open.set()
        await stage.settled()
    assert lines(stage.side.posts()) == book.text.splitlines()


async def test_a_command_between_two_people_moves_no_notices_to_them(stage: Stage) -> None:
    room = colleagues(stage)
    async with stage.serving():
        stage.side.say("hello", "alice")
        await stage.settled()
        stage.side.server.slash(room, ALICE, "status")
        await stage.until(lambda: whispered(stage, room), "the status")
        await stage.settled()
        assert stage.service is not None
        store = stage.service.parts.store
        ((key, last),) = await store.schedules.owner_places([("slack", ALICE.id)])
        own = stage.side.server.im(ALICE.id).id
        used = (await store.schedules.beat_facts(key, key, 0)).place
        assert [place and place.chat for place in (last, used)] == [own, own]
        await stage.service.parts.outbox.tell_owner(sentence("notice"), "The disk is full.")
        await stage.passing(lambda: "The disk is full." in stage.side.posts(), "the notice")
    asked = len(stage.side.server.ledger.calls)
    async with stage.serving():
        await stage.settled()
        calls = stage.side.server.ledger.calls[asked:]
    assert [one for one in calls if one.args.get("channel") == room.id] == [], "its history is not the bot's to read"


async def test_a_stranger_between_two_people_is_welcomed_where_they_asked(stage: Stage) -> None:
    carol = stage.side.people["carol"]
    room = stage.side.server.add_room(Room("D0COLLEAG2", "im", members=[carol.id, BOB.id]))

    def seen() -> list[str]:
        return [one.shown for one in stage.side.server.sent if (one.channel, one.only_to) == (room.id, carol.id)]

    async with stage.serving():
        stage.side.server.slash(room, carol, "status")
        await stage.until(seen, "a code")
        code = next(word for word in seen()[0].replace("`", " ").split() if len(word) == 8 and word.isupper())
        stage.side.say(f"!pairing approve {code}", "alice")
        await stage.passing(lambda: len(seen()) == 3, "the welcome and the status")
        await stage.settled()
    assert public(stage, room) == []


async def test_stop_reaches_the_runs_in_the_threads_of_its_channel(stage: Stage) -> None:
    side, gate = stage.side, Gate()
    stage.model.add(Words("first answer", gate=gate))
    stage.model.add(Words("second answer", gate=gate))
    async with stage.serving():
        asked = side.say("a long task", "alice", side.room, mention=True)
        await stage.until(lambda: len(stage.model.requests) == 1, "the run")
        side.say("in a direct chat", "bob")
        await stage.until(lambda: len(stage.model.requests) == 2, "another run")
        side.server.slash(side.room, ALICE, "stop")
        await stage.until(lambda: whispered(stage, side.room), "an answer")
        gate.open()
        await stage.settled()
    assert side.posts(side.room, asked.id) == ["Stopped."], "who waits there is told"
    assert side.posts(who="bob")[0] == "second answer"
    assert whispered(stage, side.room) == ["Stopped."]
