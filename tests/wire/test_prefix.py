"""Promise 7 over the wire: each request of a conversation begins with the one before it, through the real clients.

The real service speaks with each provider's stand-in through the vendor's own library: turns with tools, a cut answer,
steering, the limit of steps, another surface, a restart, /new. Whole requests are recorded and compared as the
provider's cache sees them: tools, system, then every block.
"""

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.events import ToolExecutionStart
from agent.loop import LIMIT_NOTE
from bot.people.access import OWNER
from channels.message import ChatKind, Place
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.model_server import ModelServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.proxy import FaultProxy
from tests.standins.request_log import Request, canonical, canonical_system, text_of
from tests.standins.script import Break, Call, Continuer, Fail, Gate, Hang, Say, Think
from tests.watch import Watch

pytestmark = pytest.mark.xdist_group("anthropic")

Json = dict[str, Any]
LONG = "\n\n".join(f"Paragraph {n} of an answer that is about to be cut off." for n in range(6))


async def answer_label(label: str) -> str:
    return f"did {label}"


def tools(watch: Watch) -> list[ScriptedTool]:
    return [ScriptedTool("act", answer_label, watch), ScriptedTool("look", answer_label, watch, parallel_safe=True)]


def settings(server: ModelServer) -> Json:
    """Configuration in which the stand-in is the provider; small blocks, so that cut answers have been said."""
    anthropic = isinstance(server, AnthropicServer)
    provider: Json = {
        "api": "anthropic" if anthropic else "openai-chat",
        "base_url": server.url if anthropic else f"{server.url}/v1",
        "api_keys": ["test-key"],
        "models": {"some-model": {"thinking": anthropic, "max_output": 4096}},
    }
    return {
        "agent": {"model": "house/some-model", "max_steps": 4, "thinking": "low" if anthropic else "auto"},
        "providers": {"house": provider},
        "channels": {"telegram": {"streaming": {"min_chars": 1, "max_chars": 80}}},
    }


@contextlib.asynccontextmanager
async def served(home: Path, server: ModelServer) -> AsyncIterator[Hark]:
    async with running(home, config=settings(server), tools=tools, chosen=True) as hark:
        yield hark


def blocks(request: Request) -> list[str]:
    """The prompt as a cache sees it, block by block; texts of one message that follow each other are blocks each."""
    found = [canonical(tool) for tool in request.body.get("tools", ())]
    if "system" in request.body:
        found.append(canonical_system(request.body["system"]))
    for message in request.messages:
        rest = {name: value for name, value in message.items() if name != "content"}
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        found += [canonical({**rest, "part": part}) for part in parts]
    return found


def marked(request: Request) -> list[int]:
    """Where the request has cache marks, as positions in `blocks`."""
    found: list[bool] = ["cache_control" in tool for tool in request.body.get("tools", ())]
    if "system" in request.body:
        found.append("cache_control" in request.body["system"][-1])
    for message in request.messages:
        found += ["cache_control" in part for part in message["content"]]
    return [place for place, mark in enumerate(found) if mark]


def fixed(request: Request) -> Json:
    """What else a cache depends on: everything but the messages and what forbids calls."""
    return {name: value for name, value in request.body.items() if name not in ("messages", "tool_choice")}


def check_prefixes(requests: list[Request]) -> None:
    """Each begins with the one before, up to its last block; what is fixed is the same."""
    for before, after in itertools.pairwise(requests):
        assert fixed(after) == fixed(before), f"request {after.number} has other fixed parts"
        ours, earlier = blocks(after), blocks(before)
        differences = [n for n, (a, b) in enumerate(zip(earlier, ours, strict=False)) if a != b]
        assert not differences, f"request {after.number} differs at block {differences[0]}: {ours[differences[0]]}"
        assert len(ours) >= len(earlier)


@pytest.mark.parametrize("provider", [AnthropicServer, OpenAIServer])
async def test_every_request_begins_with_the_one_before(tmp_path: Path, provider: type[ModelServer]) -> None:
    async with provider() as server:
        server.tolerate("prefix changed")  # check_prefixes looks more closely
        async with served(tmp_path, server) as hark:
            await talk(hark, server)
            server.add("You are a program.")
            assert await turn_of_a_program(hark) == "You are a program."
            server.add("I remember everything.")
            cut = Gate()
            await hark.say("do you remember?")
            server.add(Say(LONG), Say(" and so on", gate=cut))
            await hark.write("tell me more")
            await cut.reached()
            await hark.until(lambda: LONG.split("\n\n")[3] in hark.channel.texts())
        (tmp_path / "workspace" / "USER.md").write_text("The user has a new name.")
        server.add(Continuer(LONG, "tell me more"))
        async with served(tmp_path, server) as hark:  # the answer goes on behind the restart
            await hark.until(lambda: hark.ends(session_of("1")))
            server.add("Still here.")
            await hark.say("after the restart")
            first = len(server.requests)
            check_prefixes(server.requests)
            await hark.write("/new")
            await hark.until(lambda: any("New conversation" in text for text in hark.channel.texts()))
            server.add(Call("act", {"label": "z"}))
            server.add("A fresh start.")
            await hark.say("hello again")
            check_prefixes(server.requests[first:])
    assert "new name" not in server.requests[first - 1].system
    assert "new name" in server.requests[first].system
    assert [text_of(message["content"]).splitlines()[-1] for message in talked(server.requests[first])] == [
        "hello again"
    ]


async def talk(hark: Hark, server: ModelServer) -> None:
    """Turns of every kind."""
    server.add("Good day.")
    await hark.say("hello")

    server.add(Think("first one, then two"), "Let me see.", Call("act", {"label": "a"}))
    server.add(Call("look", {"label": "b"}), Call("look", {"label": "c"}), Call("nothing", {"label": "d"}))
    server.add("Three things are done.")
    await hark.say("do three things")

    server.add(Say(LONG), Break(after_chunks=30))
    server.add("This is the rest.")
    await hark.say("tell me a lot")

    hang = Hang()
    server.add(Call("act", {"label": "e"}), hang)
    server.add("Blue it is.")
    await hark.write("paint it red")
    await hang.entered()
    turn = hark.stored.turns("turn_id", state="running")[0][0]
    assert await hark.service.parts.api.steer(turn, "no, blue", OWNER)
    hang.release()
    await hark.until(lambda: "Blue it is." in hark.channel.texts())

    for label in "fghi":
        server.add(Call("act", {"label": label}))
    server.add("Four steps are done.")
    await hark.say("never stop")
    assert LIMIT_NOTE in server.requests[-1].last_user_text

    server.add(Fail(400, message="no such thing"))
    await hark.say("this fails")
    server.add("It works again.")
    await hark.say("and this does not")


async def turn_of_a_program(hark: Hark) -> str:
    """A program speaks into the same session: another surface, with other rules, and yet the same prefix."""
    place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
    turn = await hark.service.parts.api.submit("who am I?", session_of("1"), place, "program")
    view = await hark.service.parts.api.wait(turn.turn_id, 10)
    assert view is not None
    return view.text


def talked(request: Request) -> list[Json]:
    """The messages of a request without a system prompt among them."""
    return [message for message in request.messages if message["role"] not in ("system", "developer")]


async def test_cache_marks_stand_where_the_next_request_finds_them(tmp_path: Path) -> None:
    """Anthropic reads a cache only up to a mark that was written: each request marks where the last one ended."""
    async with AnthropicServer() as server, served(tmp_path, server) as hark:
        server.add(Call("act", {"label": "a"}))
        server.add("Done.")
        await hark.say("do it")
        await hark.say("and again")
        requests = list(server.requests)
    assert len(requests) == 3
    for before, after in itertools.pairwise(requests):
        assert len(blocks(before)) - 1 in marked(before)
        assert len(blocks(before)) - 1 in marked(after)
    tool_marks = marked(requests[0])[:2]
    assert tool_marks == [len(requests[0].tool_names) - 1, len(requests[0].tool_names)]
    assert all(len(marked(request)) <= 4 for request in requests)


async def test_what_is_recalled_stands_behind_the_last_cache_mark(tmp_path: Path) -> None:
    """It is not in the next request, which begins with this one up to the mark; it is no part of a summary either."""
    async with AnthropicServer() as server, served(tmp_path, server) as hark:
        server.tolerate("prefix changed")  # by what was recalled
        (hark.service.parts.workspace / "MEMORY.md").write_text("- the plumber is called Okonkwo\n")
        server.add(Call("act", {"label": "a"}))
        server.add("Okonkwo.")
        await hark.say("who is the plumber?")
        await hark.say("and now something else")
        requests = list(server.requests)
    assert ["Okonkwo" in blocks(request)[-1] for request in requests] == [True, True, False]
    assert ["cache_control" in blocks(request)[-1] for request in requests] == [False, False, False]
    assert [max(marked(request)) - len(blocks(request)) for request in requests] == [-2, -2, -1]
    for before, after in itertools.pairwise(requests):
        assert blocks(after)[: max(marked(before)) + 1] == blocks(before)[: max(marked(before)) + 1]


async def test_answers_come_over_one_connection(tmp_path: Path) -> None:
    """A new connection for each model call would cost a handshake every time."""
    async with AnthropicServer() as server, FaultProxy(server.port) as proxy:
        config = settings(server)
        config["providers"]["house"]["base_url"] = f"http://127.0.0.1:{proxy.port}"
        async with running(tmp_path, config=config, tools=tools, chosen=True) as hark:
            for n in range(5):
                server.add(Call("act", {"label": str(n)}))
                server.add("Done.")
                await hark.say(f"number {n}")
            assert any(isinstance(event, ToolExecutionStart) for event in hark.events)
        assert len(server.requests) == 10
        assert proxy.connections == 1
