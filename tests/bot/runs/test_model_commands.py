"""/model and /think: which model answers in a session and how long it thinks, by what people and the configuration say.

Two strict servers of the OpenAI kind show which of them was asked, and how.
"""

from pathlib import Path
from typing import Any

import pytest

from agent.events import AgentStart, Notice
from bot.gateway.agent_api import Wishes
from bot.people.access import OWNER
from channels.message import ChatKind, Origin, Place
from channels.session_key import http_key
from tests.service import Hark, running
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Fail, Say

GROUP = Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP)


def config(one: OpenAIServer, two: OpenAIServer, **telegram: Any) -> dict[str, Any]:
    """The first server is `one/gpt-5.1`, which answers, the second one `two/gpt-5.1`; both take levels of thinking."""
    models = {"gpt-5.1": {"thinking": True}}
    providers = {
        name: {"api": "openai-chat", "base_url": server.base_url, "api_keys": ["test-key"], "models": models}
        for name, server in (("one", one), ("two", two))
    }
    groups = {"policy": "open", "require_mention": False}
    channels = {"telegram": {"groups": groups} | telegram}
    return {"agent": {"model": "one/gpt-5.1"}, "providers": providers, "channels": channels}


def efforts(server: OpenAIServer) -> list[str | None]:
    return [request.body.get("reasoning_effort") for request in server.requests]


async def command(hark: Hark, text: str, sender: str = "1") -> str:
    """Give a command in the direct chat of a person; returns its answer."""
    count = len(hark.channel.texts(sender))
    await hark.write(text, sender=sender)
    return (await hark.until_texts(count + 1, sender))[count]


async def test_a_session_chooses_its_model(tmp_path: Path) -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            assert "`one/gpt-5.1` answers here (as configured)" in await command(hark, "/model", "2")
            assert "`two/gpt-5.1`" in await command(hark, "/model two/gpt-5.1", "2")
            two.add(Say("From two."))
            one.add(Say("From one."))
            told = await hark.say("hi", sender="2")
            assert told.texts == ["From two."]
            assert [start.model for start in told.of(AgentStart)] == ["two/gpt-5.1"]
            assert told.end.model == "two/gpt-5.1"
            assert (await hark.say("hello", sender="3")).texts == ["From one."], "others keep theirs"
            assert "chosen here" in await command(hark, "/model", "2")
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            two.add(Say("Again from two."))
            assert (await hark.say("hi", sender="2")).texts == ["Again from two."]
            assert "as configured" in await command(hark, "/model default", "2")
            one.add(Say("Back at one."))
            assert (await hark.say("hi", sender="2")).texts == ["Back at one."]


@pytest.mark.parametrize("name", ["nobody/gpt", "nothing", "anthropic/claude"])
async def test_a_model_that_cannot_be_asked_changes_nothing(tmp_path: Path, name: str) -> None:
    async with OpenAIServer() as one, running(tmp_path, config=config(one, one), chosen=True) as hark:
        told = await command(hark, f"/model {name}")
        assert name.partition("/")[0] in told
        assert "Nothing is changed" in told
        one.add(Say("Still one."))
        assert (await hark.say("hello")).texts == ["Still one."]


async def test_in_a_group_only_an_owner_chooses(tmp_path: Path) -> None:
    async with OpenAIServer() as one, running(tmp_path, config=config(one, one), chosen=True) as hark:
        one.add(Say("What is that?"))
        for sender, said in (("2", "What is that?"), ("1", "`two/gpt-5.1` answers here")):
            count = len(hark.channel.texts("-7"))
            await hark.write("/model two/gpt-5.1", origin=Origin(place=GROUP, sender=sender, message_id=sender))
            assert said in (await hark.until_texts(count + 1, "-7"))[count]


async def test_the_configuration_names_models_for_places(tmp_path: Path) -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        groups = {"policy": "open", "require_mention": False, "allow": {"-7": {"model": "one/gpt-5.1"}}}
        given = config(one, two, model="two/gpt-5.1", groups=groups)
        one.default = lambda request: [Say("From one.")]
        two.default = lambda request: [Say("From two.")]
        async with running(tmp_path, config=given, chosen=True) as hark:
            assert (await hark.say("hello")).texts == ["From two."]
            await hark.write("hello", origin=Origin(place=GROUP, sender="2", message_id="g1"))
            assert await hark.until_texts(1, "-7") == ["From one."]


async def test_levels_of_thinking(tmp_path: Path) -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        one.default = lambda request: [Say("Done.")]
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            assert (await hark.say("hello")).texts == ["Done."]
            assert "high" in await command(hark, "/think high")
            started = (await hark.say("hello")).of(AgentStart)
            assert [start.thinking for start in started] == ["high"]
            count = len(hark.channel.texts())
            await hark.write("/think min what is a boat?")
            await hark.until_texts(count + 1)
            await hark.say("and a ship?")
            assert "no level" in await command(hark, "/think deeply")
            await command(hark, "/think ultra")
            await hark.say("and a raft?")
            assert efforts(one) == [None, "high", "low", "high", "xhigh"]
            assert "what is a boat?" in one.requests[2].last_user_text


async def test_a_level_that_is_refused_is_lowered_and_told_once(tmp_path: Path) -> None:
    refused = Fail(400, "unsupported_value", "Unsupported value: 'reasoning_effort' does not support 'high'.")
    async with OpenAIServer() as one, OpenAIServer() as two:
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            await command(hark, "/think high")
            one.add(refused)
            one.add(Say("Done."))
            reply = await hark.say("hello")
            assert reply.texts[-1] == "Done."
            assert "`one/gpt-5.1` refused the level of thinking" in reply.texts[0]
            assert [notice.kind for notice in reply.of(Notice)] == ["thinking"]
            one.add(Say("Again."))
            assert (await hark.say("hello")).texts == ["Again."]
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            one.add(Say("And again."))
            assert (await hark.say("hello")).texts == ["And again."]
        assert efforts(one) == ["high", "medium", "medium", "medium"]


async def test_one_call_of_the_http_interface_chooses_for_itself(tmp_path: Path) -> None:
    place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
    async with (
        OpenAIServer() as one,
        OpenAIServer() as two,
        running(tmp_path, config=config(one, two), chosen=True) as hark,
    ):
        for wishes, server in ((Wishes(model="two/gpt-5.1", thinking="high"), two), (Wishes(), one)):
            server.add(Say("yes"))
            view = await hark.service.parts.api.submit("hello", http_key("x"), place, OWNER, None, wishes)
            assert view is not None
            await hark.until(lambda turn=view.turn_id: hark.stored.turns(turn_id=turn, state="done"), "the answer")
        assert (efforts(two), efforts(one)) == (["high"], [None])


async def test_a_level_that_a_model_is_known_to_lack_is_told_once(tmp_path: Path) -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        one.default = two.default = lambda request: [Say("Done.")]
        settings = config(one, two)
        settings["providers"]["one"]["models"] = {"gpt-5.1": {"thinking": False}}
        told = "(`one/gpt-5.1` lacks the level of thinking; it answers with none.)"
        async with running(tmp_path, config=settings, chosen=True) as hark:
            assert (await hark.say("hello")).texts == ["Done."], "auto wants none"
            assert await command(hark, "/think high") == "Thinking is high."
            assert (await hark.say("hello")).texts == [told, "Done."]
            assert "`one/gpt-5.1` has none" in await command(hark, "/think")
            assert (await hark.say("/think low hello")).texts == ["Done."]
        async with running(tmp_path, config=settings, chosen=True) as hark:
            assert (await hark.say("hello")).texts == ["Done."]
            assert (await hark.say("hi", sender="2")).texts == ["Done."], "auto wants none"
            await command(hark, "/model two/gpt-5.1")
            assert (await hark.say("hello")).texts == ["Done."]
            await command(hark, "/model default")
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            assert (await hark.say("hello")).texts == ["Done."]
        assert efforts(one) == [None, None, None, None, None, "high"], "what the configuration says later counts"
        assert efforts(two) == ["high"]


async def test_a_budget_of_thinking_that_does_not_fit_is_lowered_before_the_request(tmp_path: Path) -> None:
    model = {"thinking": True, "context_window": 24_000, "max_output": 4096}
    async with AnthropicServer() as server:
        server.default = lambda request: [Say("Done.")]
        provider = {"api": "anthropic", "base_url": server.url, "api_keys": ["test-key"]}
        providers = {"mine": provider | {"models": {"claude-haiku-4-5": model}}}
        settings = {"agent": {"model": "mine/claude-haiku-4-5", "thinking": "high"}, "providers": providers}
        async with running(tmp_path, config=settings, chosen=True) as hark:
            told = "(`mine/claude-haiku-4-5` lacks the level of thinking; it answers with medium.)"
            assert [(await hark.say("hello")).texts for _ in range(2)] == [[told, "Done."], ["Done."]]
            assert "has medium" in await command(hark, "/think")
        sent = [request.body["thinking"]["budget_tokens"] for request in server.requests]
        assert sent == [7904, 7904], "all that fits, which is less than for high"
