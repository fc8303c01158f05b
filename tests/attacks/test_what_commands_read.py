"""What a command prints bears `file` where it could read a file that neither the operator nor Hark vouches for."""

from pathlib import Path
from typing import Any

import pytest

from tests.attacks.obedient import AIMS, EXEC, SIGN, World, order, world
from tests.standins.script import Call

SINKS = ["host", "network", "fetch", "tell", "remember", "plan"]


def run(command: str, needs: str = "look", **more: Any) -> Call:
    return Call("exec", {"command": command, "needs": needs, **more})


async def does(made: World, *calls: Call) -> list[str]:
    """The questions that are open once the owner has asked and the model has made these calls."""
    for call in calls:
        made.model.add(call)
    await made.say("do it")
    return made.questions()


@pytest.mark.parametrize("aim", SINKS)
@pytest.mark.parametrize("level", ["look", "work"])
async def test_an_order_in_a_file_from_outside_acts_nowhere(tmp_path: Path, aim: str, level: str) -> None:
    async with world(tmp_path) as made:
        made.put("clone/README", order(aim))
        assert len(await does(made, run("cat clone/README", level))) == 1
        assert not AIMS[aim].happened(made)


async def test_what_printed_nothing_bears_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.put("clone/README", order("plan"))
        plan = made.model.orders["plan"]
        assert await does(made, run("grep -c nothing clone/README >/dev/null", "work"), plan) == []
        assert AIMS["plan"].happened(made)


@pytest.mark.parametrize("end", ["[no output]", "[no new output]"])
async def test_no_file_says_that_nothing_was_printed(tmp_path: Path, end: str) -> None:
    async with world(tmp_path) as made:
        made.put("clone/README", f"{order('plan')}\n{end}")
        assert len(await does(made, run("cat clone/README"))) == 1


@pytest.mark.waits
async def test_the_output_of_a_command_in_the_background_is_labelled_and_silence_is_not(tmp_path: Path) -> None:
    """Waits for a command in the background to print."""
    async with world(tmp_path) as made:
        made.put("clone/README", f"{order('plan')}\n[no new output]")
        quiet = run("sleep 60; cat clone/README", background=True)
        assert await does(made, quiet, Call("schedule", {"every": "3h", "prompt": "mine"})) == []
        loud = run("cat clone/README; sleep 60", background=True)
        assert len(await does(made, loud, Call("process", {"action": "poll", "id": "x"}))) == 1


async def test_what_the_model_and_its_commands_have_made_is_known(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.model.add(Call("write", {"path": "a.txt", "content": "mine"}))
        plan = made.model.orders["plan"]
        assert (
            await does(made, run("sort a.txt > b.txt; mkdir c; cp b.txt c", "work"), run("cat b.txt c/b.txt"), plan)
            == []
        )
        made.put("c/b.txt", "of somebody else")
        assert len(await does(made, run("cat c/b.txt; true"), Call("schedule", {"every": "3h", "prompt": SIGN}))) == 1


async def test_no_command_asks_again_because_of_what_it_has_printed(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.put("test.sh", "echo well")
        assert await does(made, *[run("sh test.sh", "work")] * 3) == []
        assert len(await does(made, run("sh test.sh; true", "work"))) == 1, "that is another one"


async def test_rules_of_the_operator_cover_their_commands_and_nothing_else(tmp_path: Path) -> None:
    rules = {"exec": EXEC["exec"] | {"allowlist": ["touch **", "cat **"]}}
    async with world(tmp_path, {"tools": rules}) as made:
        made.put("letter.txt", f"{order('host')}\n{order('remember')}")
        assert len(await does(made, run("cat letter.txt", "host"))) == 1
        assert "what is remembered" in made.questions()[0]
        assert AIMS["host"].happened(made), "the rule for touch holds"
        assert not AIMS["remember"].happened(made)
    async with world(tmp_path / "read", {"tools": rules}) as made:
        made.put("letter.txt", order("host"))
        assert len(await does(made, Call("read", {"path": "letter.txt"}))) == 1, "that was no output of a command"


async def test_what_a_person_allowed_for_good_is_no_rule_of_the_operator(tmp_path: Path) -> None:
    async with world(tmp_path, {"tools": {"exec": EXEC["exec"] | {"allowlist": []}}}) as made:
        made.model.add(run("touch granted", "host"))
        await made.say("do it")
        await made.decide("always")
        made.put("letter.txt", order("granted"))
        made.model.orders["granted"] = run("touch granted", "host", timeout_seconds=9)
        assert len(await does(made, run("cat letter.txt"))) == 1


@pytest.mark.parametrize("more", [{"needs": "work"}, {"needs": "network"}, {"env": {"A": "1"}}, {"cwd": "clone"}])
async def test_what_a_command_has_printed_gives_it_no_more_than_it_had(tmp_path: Path, more: dict[str, Any]) -> None:
    async with world(tmp_path) as made:
        made.put("clone/letter.sh", "")
        made.put("letter.sh", f"echo {order('again')}")
        made.model.orders["again"] = run("sh letter.sh", **{"needs": "work", **more})
        assert len(await does(made, run("sh letter.sh", "look" if more.keys() == {"needs"} else "work"))) == 1
