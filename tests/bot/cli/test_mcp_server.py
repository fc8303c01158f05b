"""`hark mcp` as a server: the client of the package, and one written by hand that speaks the first version."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp_types import TextContent

from bot.cli.terminal.client import Client as Own
from bot.cli.terminal.client import Rejected
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, message_key
from tests.bot.gateway.house import Puppet
from tests.forked import ENVIRON, PATIENCE, Begun, begin
from tests.service import RecordingChannel, settings
from tests.serving import assemble
from tests.watch import Watch

ALICE = "agent:main:telegram:direct:1"
TOOLS = ["sessions", "read", "search", "send", "ask", "result"]


@contextlib.asynccontextmanager
async def service(folder: Path) -> AsyncIterator[tuple[RecordingChannel, Puppet]]:
    """A service in a folder with a platform, on which the owner has written and was answered."""
    channel, model = RecordingChannel(watch := Watch()), Puppet("Sunny, said the agent.")
    config = settings(folder, {"gateway": {"port": 0}})
    made = await assemble(config, model=model, channels=(channel,), gateway=True)
    await made.start()
    try:
        assert channel.sink is not None
        await channel.sink.accept([_message()], None)
        await watch.until(lambda: channel.texts(), "the answer")
        yield channel, model
    finally:
        await made.close()


def _message() -> InboundMessage:
    place = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
    return InboundMessage(
        origin=Origin(place=place, sender="1", message_id="1"),
        event_key=message_key("1", "1"),
        kind=InboundKind.MESSAGE,
        text="How is the weather?",
        sent_at=int(time.time() * 1000),
    )


class ByHand:
    """A client that writes lines."""

    def __init__(self, process: Begun) -> None:
        self.process = process
        self._ids = 0

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request: the whole message."""
        self._ids += 1
        self.write({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE):
            answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self._ids)
        return answer

    async def call(self, name: str, **arguments: Any) -> tuple[bool, str]:
        """Whether a call of a tool failed, and what it returned."""
        result = (await self.ask("tools/call", name=name, arguments=arguments))["result"]
        (part,) = result["content"]
        return result.get("isError", False), part["text"]

    def write(self, message: dict[str, Any]) -> None:
        """Write one line."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")


def _environ(folder: Path) -> dict[str, str]:
    """Variables of a process that finds the Hark of its folder, and not the one that another test ran last."""
    return {**ENVIRON, "XDG_STATE_HOME": str(folder / "nothing was run")}


@contextlib.asynccontextmanager
async def by_hand(folder: Path, version: str = "2024-11-05") -> AsyncIterator[ByHand]:
    """`hark mcp` in a folder, after the handshake."""
    process = await begin(folder, "mcp", piped=True, environ=_environ(folder))
    try:
        client = ByHand(process)
        info = {"name": "by-hand", "version": "1"}
        begun = await client.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=info)
        assert (begun["result"]["protocolVersion"], begun["result"]["serverInfo"]["name"]) == (version, "hark")
        client.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield client
    finally:
        process.kill()
        await process.finish()


async def test_by_hand_with_the_first_version(tmp_path: Path) -> None:
    async with service(tmp_path) as (channel, model), by_hand(tmp_path) as client:
        listed = (await client.ask("tools/list"))["result"]["tools"]
        assert [one["name"] for one in listed] == TOOLS
        assert listed[3]["inputSchema"]["required"] == ["to", "text"]

        failed, text = await client.call("sessions")
        assert (failed, text.split()[0]) == (False, ALICE)
        failed, text = await client.call("read", session=ALICE)
        assert (failed, "How is the weather?" in text, "Sunny, said the agent." in text) == (False, True, True)
        failed, text = await client.call("search", words="weather")
        assert (failed, text.startswith(ALICE)) == (False, True)

        assert await client.call("send", to="telegram:1", text="Dinner is ready.") == (False, "Sent.")
        assert await client.call("send", to=ALICE, text="Come.") == (False, "Sent.")
        assert channel.texts() == ["Sunny, said the agent.", "Dinner is ready.", "Come."]
        failed, text = await client.call("send", to="telegram:99", text="Hello.")
        assert (failed, "There is no conversation '99'" in text) == (True, True)

        assert await client.call("ask", message="Well?") == (False, "Sunny, said the agent.")
        model.reply = None
        failed, text = await client.call("ask", message="And now?", wait=0)
        assert (failed, "goes on" in text) == (False, True)
        calls = [await model.called() for _ in range(3)]
        calls[-1].answer("Rain.")
        assert await client.call("result", run=text.split()[2]) == (False, "Rain.")

        assert (await client.call("ask"))[0], "the message is missing"
        assert "error" in await client.ask("tools/nothing")
        client.process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            assert await client.process.wait() == 0


@pytest.mark.parametrize("command", ["/freeze", " \n!freeze network", "/approve 12345678 once"])
async def test_a_client_gives_no_commands(tmp_path: Path, command: str) -> None:
    async with service(tmp_path) as _, by_hand(tmp_path) as client:
        failed, text = await client.call("ask", message=command)
        assert (failed, "those are for people" in text) == (True, True)
        assert await client.call("send", to=ALICE, text="Nothing is frozen.") == (False, "Sent.")
        assert await client.call("ask", message="What does /freeze do?") == (False, "Sunny, said the agent.")


@pytest.mark.waits
async def test_the_client_of_the_package(tmp_path: Path) -> None:
    """Waits for a program that imports the whole package."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "bot", "mcp"], env=_environ(tmp_path), cwd=tmp_path
    )
    async with service(tmp_path) as (channel, _), Client(stdio_client(command)) as client:
        assert [one.name for one in (await client.list_tools()).tools] == TOOLS
        result = await client.call_tool("send", {"to": ALICE, "text": "Dinner is ready."})
        assert (result.is_error, channel.texts()[-1]) == (False, "Dinner is ready.")
        result = await client.call_tool("ask", {"message": "Well?"})
        (part,) = result.content
        assert isinstance(part, TextContent)
        assert part.text == "Sunny, said the agent."


async def test_without_a_service_each_call_says_so_until_one_runs(tmp_path: Path) -> None:
    async with by_hand(tmp_path, "2025-06-18") as client:
        failed, text = await client.call("sessions")
        assert failed, text
        assert f"Hark is not running in {tmp_path / 'state'}; `hark run` starts it" in text
        assert not (tmp_path / "state").exists()
        async with service(tmp_path):
            failed, text = await client.call("sessions")
            assert not failed, text
        client.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await client.process.wait() == 0
        assert b"Hark is not running" in await client.process.stderr.read()


async def test_what_is_frozen_sends_nothing(tmp_path: Path) -> None:
    async with service(tmp_path) as (channel, _):
        async with contextlib.aclosing(Own(tmp_path / "state" / "hark.sock")) as own:
            await own.freeze("network")
            with pytest.raises(Rejected, match=r"Sending is frozen\. `hark thaw` lets it go on\."):
                await own.send(ALICE, "Dinner is ready.", "key")
            await own.thaw()
            first = await own.send(ALICE, "Once.", "key")
            assert first["state"] == "sent"
            assert await own.send(ALICE, "Once.", "key") == first
        assert channel.texts()[1:] == ["Once."]
