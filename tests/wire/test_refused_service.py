"""Conversations that a part has poisoned, with the real service, store and SDKs: they go on at the first message."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.message import ToolOutput
from agent.tools.base import CallContext
from bot.store.database import migrations
from tests.bot.mcp.house import StandIn, having
from tests.service import Hark, Labelled, ScriptedTool, running
from tests.standins import anthropic_signatures
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.script import Call, Say, Think
from tests.watch import Watch
from tests.wire.model_clients import KEY, client_of
from tests.wire.test_refused_parts import CUT, GOOD, TALL, forbids, shows

REFUSED = forbids(shows(CUT), "{at}.image.source.base64.data: Could not process image")
LATEST = 31
"""The version of the store that remembers what is refused."""


class PictureTool(ScriptedTool):
    """A tool that shows pictures: one that a provider takes, one that is too tall, one without its end."""

    async def run(self, parameters: Labelled, context: CallContext) -> ToolOutput:
        return ToolOutput(text="seen", images=(GOOD, TALL, CUT))


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer(keys=[KEY]) as server:
        for part in ("prefix changed", "is malformed: messages.1.content.0: Invalid `signature`"):
            server.tolerate(part)
        yield server


async def talk(home: Path, server: AnthropicServer, *texts: str) -> list[str]:
    """Say something to a service on `home`; what it answers. The client is its own, as after a restart."""

    def tools(watch: Watch) -> list[PictureTool]:
        return [PictureTool("picture", lambda label: pytest.fail("not used"), watch)]

    client = client_of("anthropic", server.url)
    try:
        async with running(home, client=client, tools=tools) as hark:
            for text in texts:
                await said(hark, text)
            return hark.channel.texts()
    finally:
        await client.close()


async def said(hark: Hark, text: str) -> None:
    before = len(hark.channel.sent)
    await hark.write(text)
    await hark.until(lambda: len(hark.channel.sent) > before and not hark.stored.unfinished())
    await hark.delivered()


async def test_a_store_of_the_version_before_heals_at_the_first_message(
    tmp_path: Path, server: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(Think("hm"), Call("picture"))
    server.add("Seen.")
    assert await talk(tmp_path, server, "look") == ["Seen."]
    with closing(sqlite3.connect(tmp_path / "state" / "hark.db")) as db:
        assert db.execute("SELECT * FROM refused_part").fetchall() == []
        if len(migrations()) == LATEST:
            db.executescript(f"DROP TABLE refused_part; PRAGMA user_version={LATEST - 1}")
    monkeypatch.setattr(anthropic_signatures, "_KEY", b"another key")
    server.default = lambda asked: REFUSED(asked.body) or Say("There.")
    count = server.count
    told = "(I left out a picture and my earlier reasoning, because `house/claude-opus-5-5` refused it.)"
    first, second, again, shown = await talk(tmp_path, server, "and?", "and now?", "/context")
    assert (sorted((first, second)), again) == (sorted((told, "There.")), "There.")
    assert server.count == count + 4, "two refusals are paid, once"
    assert "a picture: HTTP 400" in shown
    assert "my earlier reasoning: HTTP 400" in shown
    assert "- 1 picture: this model takes no more, or none of its size" in shown
    assert await talk(tmp_path, server, "still?") == ["There."]
    assert server.count == count + 5, "it is known after a restart"
    sent = server.requests[-1].raw.decode()
    assert "1 × 9000 pixels is left out" in sent
    assert [image.data in sent for image in (GOOD, TALL, CUT)] == [True, False, False]


async def test_odd_names_of_properties_are_translated_both_ways(tmp_path: Path) -> None:
    odd = {
        "type": "object",
        "properties": {
            "a[b]": {"type": "array"},
            "<id>": {"type": "object", "properties": {"x y": {"type": "string"}}},
        },
        "required": ["<id>"],
    }
    stand_in = StandIn(tmp_path / "mcp", {"name": "odd", "schema": odd})
    async with AnthropicServer(keys=[KEY]) as server:
        client = client_of("anthropic", server.url)
        async with running(tmp_path, client=client, config=having(("s", stand_in.server))) as hark:
            server.add(Call("s_odd", {"a_b_": [1], "_id_": {"x_y": "z"}}))
            server.add("Done.")
            await said(hark, "do it")
        await client.close()
        (tool,) = [one for one in server.requests[0].body["tools"] if one["name"] == "s_odd"]
        assert tool["input_schema"]["properties"]["a_b_"] == {"type": "array", "items": {}}
        assert tool["input_schema"]["required"] == ["_id_"]
    assert stand_in.calls[0]["params"]["arguments"] == {"a[b]": [1], "<id>": {"x y": "z"}}
