"""Spans of turns, model calls and calls of tools, at a collector over a real socket."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from bot.config.telemetry import Otlp
from bot.gateway import traces
from tests.service import running
from tests.standins.openai_server import OpenAIServer
from tests.standins.otlp_collector import Collector, attributes
from tests.standins.script import Call, Fail, Say

SECRET = "a-secret-of-the-collector"


def config(collector: Collector, **more: Any) -> dict[str, Any]:
    return {"telemetry": {"otlp": {"endpoint": collector.url, "headers": {"Api-Key": SECRET}}}, **more}


async def test_a_turn_with_a_tool_is_a_tree_of_spans_without_words(tmp_path: Path) -> None:
    async with Collector(headers={"Api-Key": SECRET}) as collector:
        async with running(tmp_path, config=config(collector)) as hark:
            hark.model.add(Call("write", {"path": "plans.txt", "content": "a private plan"}))
            hark.model.add("I wrote down the secret plan.")
            reply = await hark.say("Remember my private plan.")
        spans = {span.name: span for span in collector.spans}
        assert sorted(span.name for span in collector.spans) == [
            *("chat scripted", "chat scripted", "execute_tool write", "invoke_agent hark")
        ]
        turn = spans["invoke_agent hark"]
        about = attributes(turn)
        assert about["gen_ai.operation.name"] == "invoke_agent"
        assert about["gen_ai.conversation.id"] == reply.end.run.session_key
        assert (about["gen_ai.usage.input_tokens"], about["gen_ai.usage.output_tokens"]) == (20, 10)
        assert about["hark.outcome"] == "completed"
        for span in collector.spans:
            assert span.trace_id == turn.trace_id
            assert span is turn or span.parent_span_id == turn.span_id
            assert turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        chat = attributes(spans["chat scripted"])
        assert (chat["gen_ai.provider.name"], chat["gen_ai.request.model"]) == ("test", "scripted")
        assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (10, 5)
        tool = attributes(spans["execute_tool write"])
        assert (tool["gen_ai.tool.name"], tool["gen_ai.operation.name"]) == ("write", "execute_tool")
        assert collector.resources[0]["service.name"] == "hark"
        assert "plan" not in "".join(map(str, collector.spans))


async def test_what_fails_says_so_and_the_model_that_answered_is_named(tmp_path: Path) -> None:
    async with Collector() as collector, OpenAIServer() as one, OpenAIServer() as two:
        providers = {
            name: {"api": "openai-chat", "base_url": server.base_url, "api_keys": ["test-key"]}
            for name, server in (("one", one), ("two", two))
        }
        agent = {"model": "one/big", "fallbacks": [{"model": "two/small", "on": ["overloaded"]}]}
        models = config(collector, agent=agent, providers=providers)
        async with running(tmp_path, config=models, chosen=True) as hark:
            one.add(Fail(529, "overloaded_error"))
            two.add(Say("From two."))
            await hark.say("hello")
            two.add(Fail(400, "invalid_request_error"))
            await hark.say("again")
        turns = [span for span in collector.spans if span.name == "invoke_agent hark"]
        first = [
            span for span in collector.spans if span.trace_id == turns[0].trace_id and span.name.startswith("chat")
        ]
        assert [(span.name, attributes(span).get("error.type")) for span in first] == [
            ("chat big", "cut"),
            ("chat small", None),
        ]
        about = attributes(first[1])
        assert (about["gen_ai.provider.name"], about["gen_ai.request.model"]) == ("two", "small")
        assert [event.name for event in turns[0].events] == ["model"]
        assert attributes(turns[1])["error.type"] == "invalid_request"
        assert turns[1].status.code == 2


async def test_a_collector_that_fails_or_is_silent_costs_no_turn_and_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Collector(status=400) as collector:
        async with running(tmp_path, config=config(collector)) as hark:
            for _ in range(3):
                assert (await hark.say("hello", answers=["fine"])).texts == ["fine"]
        assert collector.requests
        assert not collector.spans
    out = capsys.readouterr().out
    assert out.count("the collector of spans fails") == 1
    assert SECRET not in out


async def test_that_the_collector_fails_is_told_once_until_it_works_again(capsys: pytest.CaptureFixture[str]) -> None:
    span = TracerProvider().get_tracer("test").start_span("one")
    span.end()
    assert isinstance(span, ReadableSpan)
    async with Collector(status=400) as collector:
        exporter = traces._Told(Otlp(endpoint=collector.url))
        for collector.status in (400, 400, 200, 400):
            await asyncio.to_thread(exporter.export, [span])
    out = capsys.readouterr().out
    assert out.count("the collector of spans fails") == 2
    assert out.count("the collector of spans works again") == 1


async def test_variables_of_the_environment_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    async with Collector() as collector:
        async with running(tmp_path, config=config(collector)) as hark:
            await hark.say("hello", answers=["fine"])
        assert len(collector.spans) == 2


async def test_runs_without_an_end_are_forgotten_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_RUNS", 1)
    async with Collector() as collector, running(tmp_path) as hark:
        await hark.say("hello", answers=["one"])
        parts = hark.service.parts
        made = traces.Traces(Otlp(endpoint=collector.url), parts.bus, parts.store.reads)
        begun = [event for event in hark.events if event.type == "agent_start"]
        made.hear(begun[0])
        await hark.say("hello", sender="2", answers=["two"])
        begun = [event for event in hark.events if event.type == "agent_start"]
        made.hear(begun[1])
        await made.close()
        assert [attributes(span)["error.type"] for span in collector.spans] == ["lost"]


def test_nothing_of_it_is_imported_where_it_is_off() -> None:
    code = "import sys, bot.wiring, bot.service; print([name for name in sys.modules if 'opentelemetry' in name])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_without_its_packages_the_configuration_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.config.telemetry.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="EXTRAS=otel make install"):
        Otlp(endpoint="http://localhost:4318")
