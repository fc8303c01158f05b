"""The payload log: what is kept of requests to models, and what is not."""

import json
from pathlib import Path
from typing import Any

from bot.telemetry.payloads import FILE
from tests.service import running
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Fail, Say

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
