"""Requests to models: what the payload log keeps of them, and programs of the command line as models."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.events import Outcome
from agent.sandbox.proof import choose
from bot.telemetry.payloads import FILE
from channels.message import ChatKind, Origin, Place
from tests.service import running
from tests.standins.cli_programs import CliProgram
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Fail, Say
from tests.wire.test_cli_models import running as processes

# The payload log: what is kept of requests to models, and what is not.

KEY = "sk-a-secret-key-0123456789"


def config(server: OpenAIServer, **telemetry: Any) -> dict[str, Any]:
    provider = {"api": "openai-chat", "base_url": server.base_url, "api_keys": [KEY]}
    return {"agent": {"model": "one/gpt"}, "providers": {"one": provider}, "telemetry": telemetry}


def records(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "state" / FILE).read_text().splitlines()]


async def test_each_request_and_its_answer_is_a_line_without_secrets(tmp_path: Path) -> None:
    async with OpenAIServer(keys=[KEY]) as server:
        async with running(tmp_path, config=config(server, payloads=True), chosen=True) as hark:
            server.add(Say("Yours is not for me to know."))
            await hark.say(f"My key is {KEY}, by the way.")
            server.add(Fail(400, "invalid_request_error"))
            await hark.say("And now?")
        first, second = records(tmp_path)
        assert first["model"] == "one/gpt"
        assert "My key is [secret], by the way." in first["request"]["messages"][-1]["parts"][0]["text"]
        assert first["answer"]["message"]["parts"][0]["text"] == "Yours is not for me to know."
        assert first["answer"]["usage"]["input"] > 0
        assert second["error"]["kind"] == "invalid_request"
        assert KEY not in (tmp_path / "state" / FILE).read_text()
        assert (tmp_path / "state" / FILE).stat().st_mode & 0o077 == 0


async def test_it_is_off_by_default(tmp_path: Path) -> None:
    async with OpenAIServer(keys=[KEY]) as server:
        async with running(tmp_path, config=config(server), chosen=True) as hark:
            await hark.say("hello")
        assert not (tmp_path / "state" / FILE).exists()


async def test_it_stays_within_its_bound(tmp_path: Path) -> None:
    async with OpenAIServer(keys=[KEY]) as server:
        given = config(server, payloads=True, payload_megabytes=1)
        async with running(tmp_path, config=given, chosen=True) as hark:
            for number in range(6):
                server.add(Say("x"))
                await hark.say(f"{number}" + "y" * 100_000)
                await hark.write("/new")
                await hark.delivered()
        files = sorted((tmp_path / "state").glob("payloads*"))
        assert [file.name for file in files] == ["payloads.1.jsonl", FILE]
        assert sum(file.stat().st_size for file in files) < 1_400_000


async def test_a_file_that_cannot_be_written_fails_no_turn(tmp_path: Path) -> None:
    async with OpenAIServer(keys=[KEY]) as server:
        (tmp_path / "state" / FILE).mkdir(parents=True)
        async with running(tmp_path, config=config(server, payloads=True), chosen=True) as hark:
            server.add(Say("Hello."))
            assert (await hark.say("hello")).texts == ["Hello."]


@pytest.fixture
def program(tmp_path: Path) -> CliProgram:
    if choose("auto").sandbox is None:
        pytest.skip(choose("auto").why)
    return CliProgram(tmp_path, "claude")


def program_config(program: CliProgram, **agent: Any) -> dict[str, Any]:
    providers = {"claude": {"api": "cli", "command": [str(program.file)]}}
    return {"agent": {"model": "claude/some-model"} | agent, "providers": providers}


def people(call: dict[str, Any]) -> list[str]:
    """What people said in a call, without the stamps before it."""
    lines = [json.loads(line) for line in call["given"].split("\n")[1:]]
    return [line["person"].rpartition("\n")[2] for line in lines if "person" in line]


async def test_an_owner_is_answered_and_the_session_goes_on_over_a_restart(tmp_path: Path, program: CliProgram) -> None:
    async with running(tmp_path, config=program_config(program), chosen=True) as hark:
        assert (await hark.say("hello")).texts == ["I am fine."]
        assert (await hark.say("and now")).texts == ["I am fine."]
    async with running(tmp_path, config=program_config(program), chosen=True) as hark:
        assert (await hark.say("again")).texts == ["I am fine."]
    assert [people(call) for call in program.calls] == [["hello"], ["and now"], ["again"]]
    assert ["--resume" in call["words"] for call in program.calls] == [False, True, True]


async def test_somebody_else_is_told_why_not(tmp_path: Path, program: CliProgram) -> None:
    async with running(tmp_path, config=program_config(program), chosen=True) as hark:
        told = await hark.say("hello", sender="2")
        assert told.outcome is Outcome.FAILED
        assert told.texts == ["The model chosen here answers owners alone, and not only owners wrote this."]
    assert program.calls == []


async def test_somebody_else_is_answered_by_the_model_that_stands_in(tmp_path: Path, program: CliProgram) -> None:
    async with OpenAIServer() as server:
        settings = program_config(program, fallbacks=[{"model": "two/gpt-5.1"}])
        settings["providers"]["two"] = {"api": "openai-chat", "base_url": server.base_url, "api_keys": ["test-key"]}
        async with running(tmp_path, config=settings, chosen=True) as hark:
            server.add(Say("From two."))
            assert (await hark.say("hello", sender="2")).texts[-1] == "From two."
            assert (await hark.say("hello")).texts[-1] == "I am fine."


async def test_in_a_group_owners_are_answered_and_others_not(tmp_path: Path, program: CliProgram) -> None:
    place = Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP)
    groups = {"policy": "open", "require_mention": False}
    settings = program_config(program) | {"channels": {"telegram": {"groups": groups}}}
    async with running(tmp_path, config=settings, chosen=True) as hark:
        for number, (sender, said) in enumerate((("2", "owners alone"), ("1", "I am fine.")), 1):
            await hark.write("hello", origin=Origin(place=place, sender=sender, message_id=sender))
            assert said in (await hark.until_texts(number, "-7"))[-1]
    assert len(program.calls) == 1


async def test_stop_ends_the_program(tmp_path: Path, program: CliProgram) -> None:
    program.plays(silent=True, answer="I am fine. " * 20)
    async with running(tmp_path, config=program_config(program), chosen=True) as hark:
        await hark.write("hello")
        await hark.until(lambda: processes(program))
        await hark.write("/stop")
        await hark.until(lambda: not processes(program))


async def test_people_are_told_what_it_is(tmp_path: Path, program: CliProgram) -> None:
    async with running(tmp_path, config=program_config(program), chosen=True) as hark:
        await hark.write("/model")
        [told] = await hark.until_texts(1, "1")
        assert "it answers owners alone, and calls no tool" in told
