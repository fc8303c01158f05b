"""A program of the command line as the model of a service: who is answered, and what becomes of its sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.events import Outcome
from agent.sandbox.proof import choose
from channels.message import ChatKind, Origin, Place
from tests.service import running
from tests.standins.cli_programs import CliProgram
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Say
from tests.wire.test_cli_models import running as processes


@pytest.fixture
def program(tmp_path: Path) -> CliProgram:
    if choose("auto").sandbox is None:
        pytest.skip(choose("auto").why)
    return CliProgram(tmp_path, "claude")


def config(program: CliProgram, **agent: Any) -> dict[str, Any]:
    providers = {"claude": {"api": "cli", "command": [str(program.file)]}}
    return {"agent": {"model": "claude/some-model"} | agent, "providers": providers}


def people(call: dict[str, Any]) -> list[str]:
    """What people said in a call, without the stamps before it."""
    lines = [json.loads(line) for line in call["given"].split("\n")[1:]]
    return [line["person"].rpartition("\n")[2] for line in lines if "person" in line]


async def test_an_owner_is_answered_and_the_session_goes_on_over_a_restart(tmp_path: Path, program: CliProgram) -> None:
    async with running(tmp_path, config=config(program), chosen=True) as hark:
        assert (await hark.say("hello")).texts == ["I am fine."]
        assert (await hark.say("and now")).texts == ["I am fine."]
    async with running(tmp_path, config=config(program), chosen=True) as hark:
        assert (await hark.say("again")).texts == ["I am fine."]
    assert [people(call) for call in program.calls] == [["hello"], ["and now"], ["again"]]
    assert ["--resume" in call["words"] for call in program.calls] == [False, True, True]


async def test_somebody_else_is_told_why_not(tmp_path: Path, program: CliProgram) -> None:
    async with running(tmp_path, config=config(program), chosen=True) as hark:
        told = await hark.say("hello", sender="2")
        assert told.outcome is Outcome.FAILED
        assert told.texts == ["The model chosen here answers owners alone, and not only owners wrote this."]
    assert program.calls == []


async def test_somebody_else_is_answered_by_the_model_that_stands_in(tmp_path: Path, program: CliProgram) -> None:
    async with OpenAIServer() as server:
        settings = config(program, fallbacks=[{"model": "two/gpt-5.1"}])
        settings["providers"]["two"] = {"api": "openai-chat", "base_url": server.base_url, "api_keys": ["test-key"]}
        async with running(tmp_path, config=settings, chosen=True) as hark:
            server.add(Say("From two."))
            assert (await hark.say("hello", sender="2")).texts[-1] == "From two."
            assert (await hark.say("hello")).texts[-1] == "I am fine."


async def test_in_a_group_owners_are_answered_and_others_not(tmp_path: Path, program: CliProgram) -> None:
    place = Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP)
    groups = {"policy": "open", "require_mention": False}
    settings = config(program) | {"channels": {"telegram": {"groups": groups}}}
    async with running(tmp_path, config=settings, chosen=True) as hark:
        for number, (sender, said) in enumerate((("2", "owners alone"), ("1", "I am fine.")), 1):
            await hark.write("hello", origin=Origin(place=place, sender=sender, message_id=sender))
            assert said in (await hark.until_texts(number, "-7"))[-1]
    assert len(program.calls) == 1


async def test_stop_ends_the_program(tmp_path: Path, program: CliProgram) -> None:
    program.plays(silent=True, answer="I am fine. " * 20)
    async with running(tmp_path, config=config(program), chosen=True) as hark:
        await hark.write("hello")
        await hark.until(lambda: processes(program))
        await hark.write("/stop")
        await hark.until(lambda: not processes(program))


async def test_people_are_told_what_it_is(tmp_path: Path, program: CliProgram) -> None:
    async with running(tmp_path, config=config(program), chosen=True) as hark:
        await hark.write("/model")
        [told] = await hark.until_texts(1, "1")
        assert "it answers owners alone, and calls no tool" in told
