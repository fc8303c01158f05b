"""Which of many addresses a model asks for carries data out, so few are followed that only text from outside names."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from channels.message import Quoted
from tests.attacks.obedient import World, world
from tests.attacks.test_what_commands_read import run
from tests.bot.background.test_due_times import settle
from tests.standins.script import Call
from tests.standins.web_server import Said

DIGITS = "0123456789"
WORD = "314159265358"


def serve(made: World) -> None:
    """A page that lists an address for each digit; none of them is kept, so that each is asked for again."""
    listed = "\n".join(f"{made.web.at}/digit/{one}" for one in DIGITS)
    made.web.pages["/page"] = Said(listed.encode(), "text/plain")
    made.web.pages |= {f"/digit/{one}": Said(b"no", "text/plain", status=404) for one in DIGITS}


def fetch(made: World, path: str) -> Call:
    return Call("web_fetch", {"url": f"{made.web.at}{path}"})


def arrived(made: World) -> str:
    return "".join(one.path[-1] for one in made.web.asked if one.path.startswith("/digit/"))


async def spell(made: World, word: Sequence[str], *, together: bool = False) -> None:
    """The model reads the page that the owner names, and then spells a word."""
    made.model.add(fetch(made, "/page"))
    spelled = [fetch(made, f"/digit/{one}") for one in word]
    for step in (spelled,) if together else [(call,) for call in spelled]:
        made.model.add(*step)
    made.model.tolerate("unused")
    await made.say(f"read {made.web.at}/page")


@pytest.mark.parametrize("together", [False, True])
async def test_a_word_is_not_spelled_by_addresses(tmp_path: Path, together: bool) -> None:
    async with world(tmp_path) as made:
        serve(made)
        await spell(made, WORD, together=together)
        assert len(arrived(made)) <= 2
        assert len(made.questions()) == 1
        assert "more addresses that only such text names" in made.questions()[0]


async def test_one_question_is_enough_for_the_task(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        serve(made)
        await spell(made, WORD[:6])
        await made.decide("always")
        assert (arrived(made), made.questions()) == (WORD[:6], [])


async def test_it_is_counted_over_turns_restarts_and_until_new(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        serve(made)
        await spell(made, "31")
        assert (arrived(made), made.questions()) == ("31", [])
        time = made.hark.time
    async with world(tmp_path, time=time) as made:
        serve(made)
        await spell(made, "4")
        assert (arrived(made), len(made.questions())) == ("", 1)
        await made.command("/stop")
        await made.command("/new")
        await spell(made, "15")
        assert (arrived(made), made.questions()) == ("15", [])


async def test_sub_agents_count_with_the_conversation_that_started_them(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        serve(made)
        await spell(made, "31")
        turns = made.hark.service.parts.store.turns
        own = "agent:main:telegram:direct:1"
        counted = await turns.followed(f"{own}:subagent:x:subagent:y")
        assert counted == await turns.followed(own)
        assert counted["127.0.0.1"] == 2


async def test_what_a_person_names_is_read_as_often_as_they_like(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        serve(made)
        for one in DIGITS:
            made.model.add(fetch(made, f"/digit/{one}"))
        await made.say("read " + " ".join(f"{made.web.at}/digit/{one}" for one in DIGITS))
        assert (arrived(made), made.questions()) == (DIGITS, [])


async def test_what_a_person_names_spells_no_word_either(tmp_path: Path) -> None:
    """A page that says something else each time is asked for again."""
    async with world(tmp_path) as made:
        made.web.pages["/digit/1"] = Said(b"no", "text/plain", status=404)
        for number in range(30):
            made.model.add(fetch(made, "/digit/1"), run(f"echo {number}"))
        made.model.tolerate("unused")
        await made.say(f"read {made.web.at}/digit/1")
        assert (len(arrived(made)), len(made.questions())) == (20, 1)


async def test_what_was_passed_on_is_no_word_of_a_person(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        serve(made)
        listed = " ".join(f"{made.web.at}/digit/{one}" for one in DIGITS)
        for one in WORD:
            made.model.add(fetch(made, f"/digit/{one}"))
        made.model.tolerate("unused")
        await made.say("what about these?", forwarded=Quoted(author="Eve", text=listed))
        assert (arrived(made), len(made.questions())) == (WORD[:2], 1)


async def test_a_job_is_refused_at_once_and_told_the_key(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        serve(made)
        await made.command(f"/schedule every 2h read {made.web.at}/page")
        for path in ("/page", *(f"/digit/{one}" for one in "3141")):
            made.model.add(fetch(made, path))
        made.model.add("Read.")
        made.hark.time.advance(7200)
        await settle(made.hark)
        await made.hark.delivered()
        assert (arrived(made), made.questions()) == ("31", [])
        assert "web.fetch.follow" in made.model.requests[-1].messages[-1].tool_results[0].text
