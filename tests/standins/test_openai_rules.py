"""The OpenAI stand-in refuses what the API's documentation rules out: one rule, one row, raw HTTP.

Each row has the heading of the rule, a request that breaks it, and its accepted counterpart. Below them
are the endpoints and liberties of Ollama.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from tests.standins.ollama_server import OllamaServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Call, Say, Think

Json = dict[str, Any]

ABSENT = object()
HEADERS = {"authorization": "Bearer test-key", "content-type": "application/json"}
MODELS = ["gpt-4o", "gpt-5.1"]
USER = {"role": "user", "content": "Hello"}
HI = {"role": "assistant", "content": "Hi"}
BASE: Json = {"model": "gpt-4o", "messages": [USER]}
REASONING = {"model": "gpt-5.1"}
PNG = "data:image/png;base64,AAAA"

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def tool(name: str = "read", **more: object) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **more}}


def call(id: str = "call_1", **more: object) -> Json:
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}", **more}}


def calls(*made: Json, content: object = None) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def result(id: str = "call_1", content: object = "ok") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def talk(*messages: Json, **more: object) -> Json:
    return {"messages": list(messages), "tools": [tool()], **more}


def image(url: str) -> Json:
    return talk({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})


def array_of(items: Json) -> Json:
    return {"type": "object", "properties": {"paths": {"type": "array", **items}}}


@dataclass(frozen=True)
class Rule:
    """A rule: where it is written, a request against it, one that keeps it, and how the API refuses."""

    heading: str
    bad: Json
    good: Json = field(default_factory=dict)
    code: str | None = None
    param: str | None = None
    status: int = 400
    headers: Json = field(default_factory=dict)
    window: int = 400_000

    def __str__(self) -> str:
        return self.heading


MISSING = "missing_required_parameter"
UNKNOWN = "unknown_parameter"
TYPE = "invalid_type"
VALUE = "invalid_value"
EMPTY = "empty_array"
SHAPE = "invalid_function_parameters"
ANSWERED = talk(USER, calls(call()), result(), USER)

RULES = [
    # Authentication; Error codes
    Rule("Authentication: Bearer key", {}, status=401, headers={"authorization": ABSENT}),
    Rule("Authentication: scheme", {}, status=401, headers={"authorization": "test-key"}),
    Rule("Error codes: incorrect API key", {}, status=401, code="invalid_api_key",
        headers={"authorization": "Bearer nonsense"}),
    Rule("Error codes: model not found", {"model": "gpt-x"}, code="model_not_found", status=404),
    Rule("Error codes: context length", talk({"role": "user", "content": "x" * 4100}), talk({"role": "user",
        "content": "x" * 3500}), "context_length_exceeded", "messages", window=1000),
    # Create chat completion → body
    Rule("model required", {"model": ABSENT}),
    Rule("messages required", {"messages": ABSENT}, code=MISSING, param="messages"),
    Rule("messages not empty", {"messages": []}, code=EMPTY, param="messages"),
    Rule("no unknown field", {"thinking": {"type": "enabled"}}, code=UNKNOWN, param="thinking"),
    Rule("no Anthropic system field", {"system": "x"}, talk({"role": "system", "content": "x"}, USER), UNKNOWN,
        "system"),
    Rule("no unknown field of a message", talk({**USER, "cache_control": {}}), talk(USER), UNKNOWN,
        "messages[0].cache_control"),
    Rule("no unknown field of a part", talk({"role": "user", "content": [{"type": "text", "text": "a", "id": 1}]}),
        talk({"role": "user", "content": [{"type": "text", "text": "a"}]}), UNKNOWN, "messages[0].content[0].id"),
    Rule("temperature at most 2", {"temperature": 2.1}, {"temperature": 2}, VALUE, "temperature"),
    Rule("temperature a number", {"temperature": "hot"}, {"temperature": None}, TYPE, "temperature"),
    Rule("stream boolean", {"stream": "yes"}, {"stream": None}, TYPE, "stream"),
    Rule("stream_options only with stream", {"stream_options": {"include_usage": True}}, {"stream_options": None},
        param="stream_options"),
    Rule("stream_options fields", {"stream": True, "stream_options": {"usage": True}}, {}, UNKNOWN,
        "stream_options.usage"),
    Rule("max_tokens or max_completion_tokens", {"max_tokens": 9, "max_completion_tokens": 9}, {"max_tokens": 9}),
    Rule("max_completion_tokens positive", {"max_completion_tokens": 0}, {"max_completion_tokens": 1}, VALUE,
        "max_completion_tokens"),
    Rule("max_tokens not for reasoning models", {**REASONING, "max_tokens": 9}, {**REASONING,
        "max_completion_tokens": 9}, "unsupported_parameter", "max_tokens"),
    Rule("temperature not for reasoning models", {**REASONING, "temperature": 0.5}, {**REASONING, "temperature": 1},
        "unsupported_value", "temperature"),
    Rule("reasoning_effort values", {**REASONING, "reasoning_effort": "maximal"}, {**REASONING,
        "reasoning_effort": "minimal"}, VALUE, "reasoning_effort"),
    Rule("reasoning_effort for reasoning models", {"reasoning_effort": "low"}, {**REASONING,
        "reasoning_effort": "low"}),
    # Create chat completion → messages
    Rule("known roles", talk({"role": "robot", "content": "x"}), talk({"role": "system", "content": "x"}, USER), VALUE,
        "messages[0].role"),
    Rule("role required", talk({"content": "x"}), code=MISSING, param="messages[0].role"),
    Rule("content required", talk({"role": "user"}), code=MISSING, param="messages[0].content"),
    Rule("user content not null", talk({"role": "user", "content": None}), talk({"role": "user", "content": ""}), TYPE,
        "messages[0].content"),
    Rule("content parts not empty", talk({"role": "user", "content": []}), talk(USER), EMPTY, "messages[0].content"),
    Rule("known part types", talk({"role": "user", "content": [{"type": "image", "source": {}}]}), {}, VALUE,
        "messages[0].content[0].type"),
    Rule("assistant content null only with tool_calls", talk(USER, {"role": "assistant", "content": None}), ANSWERED,
        param="messages.[1].content"),
    Rule("assistant content or tool_calls", talk(USER, {"role": "assistant"}), ANSWERED, param="messages.[1].content"),
    Rule("tool_calls not empty", talk(USER, calls(content="x")), talk(USER, HI), EMPTY, "messages[1].tool_calls"),
    Rule("tool_calls are the assistant's", talk({**USER, "tool_calls": [call()]}), {}, UNKNOWN,
        "messages[0].tool_calls"),
    Rule("tool_call_id required", talk(USER, calls(call()), {"role": "tool", "content": "ok"}), ANSWERED, MISSING,
        "messages[2].tool_call_id"),
    Rule("tool content not null", talk(USER, calls(call()), result(content=None)), talk(USER, calls(call()),
        result(content="")), TYPE, "messages[2].content"),
    Rule("call id length", talk(USER, calls(call("c" * 41)), result("c" * 41)), talk(USER, calls(call("c" * 40)),
        result("c" * 40)), "string_above_max_length", "messages[1].tool_calls[0].id"),
    Rule("call type", talk(USER, calls({**call(), "type": "tool"}), result()), ANSWERED, VALUE,
        "messages[1].tool_calls[0].type"),
    Rule("call arguments are text", talk(USER, calls(call(arguments={})), result()), talk(USER,
        calls(call(arguments="not json")), result()), TYPE, "messages[1].tool_calls[0].function.arguments"),
    Rule("call name characters", talk(USER, calls(call(name="fs.read")), result()), ANSWERED, VALUE,
        "messages[1].tool_calls[0].function.name"),
    # Function calling → Handling function calls
    Rule("tool message follows the call", talk(USER, calls(call()), USER), ANSWERED, param="messages.[2].role"),
    Rule("call not last", talk(USER, calls(call())), ANSWERED, param="messages.[2].role"),
    Rule("every call answered", talk(USER, calls(call("a"), call("b")), result("a"), USER), talk(USER, calls(call("a"),
        call("b")), result("b"), result("a"), USER), param="messages.[3].role"),
    Rule("nothing between the answers", talk(USER, calls(call("a"), call("b")), result("a"), USER, result("b")),
        talk(USER, calls(call("a"), call("b")), result("a"), result("b")), param="messages.[3].role"),
    Rule("tool message answers a call", talk(USER, result()), ANSWERED, param="messages.[1].role"),
    Rule("tool message after other words", talk(USER, calls(call()), result(), HI, result()), ANSWERED,
        param="messages.[4].role"),
    Rule("tool message of a known call", talk(USER, calls(call()), result(), result("call_2")), ANSWERED,
        param="messages.[3].tool_call_id"),
    Rule("one tool message per call", talk(USER, calls(call()), result(), result()), ANSWERED,
        param="messages.[3].tool_call_id"),
    Rule("call ids unique", talk(USER, calls(call(), call()), result()), ANSWERED, param="messages.[1].tool_calls"),
    # Function calling → Defining functions
    Rule("tools not empty", {"tools": []}, {"tools": [tool()]}, EMPTY, "tools"),
    Rule("tool type", {"tools": [{"type": "tool", "function": {"name": "read"}}]}, {"tools": [tool()]}, VALUE,
        "tools[0].type"),
    Rule("tool shape", {"tools": [{"name": "read", "input_schema": SCHEMA}]}, {"tools": [tool()]}, MISSING,
        "tools[0].type"),
    Rule("function name required", {"tools": [{"type": "function", "function": {}}]}, {"tools": [tool()]}, MISSING,
        "tools[0].function.name"),
    Rule("function name characters", {"tools": [tool("fs.read")]}, {"tools": [tool("fs-read_1")]}, VALUE,
        "tools[0].function.name"),
    Rule("function name length", {"tools": [tool("r" * 65)]}, {"tools": [tool("r" * 64)]}, "string_above_max_length",
        "tools[0].function.name"),
    Rule("parameters an object schema", {"tools": [tool(parameters={"type": "string"})]}, {"tools": [tool()]}, SHAPE,
        "tools[0].function.parameters"),
    Rule("arrays name their items", {"tools": [tool(parameters=array_of({}))]},
        {"tools": [tool(parameters=array_of({"items": {}}))]}, SHAPE, "tools[0].function.parameters"),
    Rule("tool_choice needs tools", {"tool_choice": "none"}, talk(USER, tool_choice="none"), param="tool_choice"),
    Rule("tool_choice values", talk(USER, tool_choice="any"), talk(USER, tool_choice="none"), VALUE, "tool_choice"),
    # Images and vision
    Rule("image URL or data URL", image("file:///etc/passwd"), image(PNG), VALUE,
        "messages[0].content[0].image_url.url"),
    Rule("image media types", image("data:image/bmp;base64,AAAA"), image(PNG), VALUE,
        "messages[0].content[0].image_url.url"),
    Rule("image_url an object", talk({"role": "user", "content": [{"type": "image_url", "image_url": "https://a"}]}),
        image(PNG), TYPE, "messages[0].content[0].image_url"),
]  # fmt: skip


async def post(
    http: aiohttp.ClientSession, server: OpenAIServer, changes: Json, headers: Json | None = None
) -> tuple[int, Json]:
    body = {name: value for name, value in {**BASE, **changes}.items() if value is not ABSENT}
    sent = {name: value for name, value in {**HEADERS, **(headers or {})}.items() if value is not ABSENT}
    async with http.post(server.url + server.path, data=json.dumps(body), headers=sent) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("rule", RULES, ids=str)
async def test_a_broken_rule_is_refused(rule: Rule, http: aiohttp.ClientSession) -> None:
    async with OpenAIServer(models=MODELS, context_window=rule.window) as server:
        server.tolerate("is malformed")
        status, answer = await post(http, server, rule.bad, rule.headers)
    error = answer["error"]
    assert (status, error["type"]) == (rule.status, "invalid_request_error"), answer
    assert (error["code"], error["param"]) == (rule.code, rule.param), answer
    assert bool(server.violations) == (rule.status == 400)


@pytest.mark.parametrize("rule", RULES, ids=str)
async def test_a_kept_rule_is_answered(rule: Rule, http: aiohttp.ClientSession) -> None:
    async with OpenAIServer(models=MODELS, context_window=rule.window) as server:
        status, answer = await post(http, server, rule.good)
    assert status == 200, answer
    assert answer["choices"][0]["finish_reason"] == "stop"


async def test_models_are_listed_to_a_valid_key(http: aiohttp.ClientSession) -> None:
    async with OpenAIServer(models=MODELS) as server:
        async with http.get(f"{server.base_url}/models") as response:
            assert response.status == 401
        async with http.get(f"{server.base_url}/models", headers=HEADERS) as response:
            assert [model["id"] for model in (await response.json())["data"]] == MODELS


async def test_repeated_prompts_are_read_from_the_cache(http: aiohttp.ClientSession) -> None:
    """Prompt caching: prompts of 1,024 tokens and more, in steps of 128."""
    long = {"role": "user", "content": "x" * 8000}
    async with OpenAIServer() as server:
        first = (await post(http, server, talk(long)))[1]["usage"]
        second = (await post(http, server, talk(long, HI, USER)))[1]["usage"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    cached = second["prompt_tokens_details"]["cached_tokens"]
    assert (cached > 1900, cached % 128) == (True, 0)


async def test_thinking_is_hidden_but_counted(http: aiohttp.ClientSession) -> None:
    """Reasoning models: reasoning tokens are not visible in the API."""
    async with OpenAIServer() as server:
        server.add(Think("secret thoughts"), Say("done"))
        _, answer = await post(http, server, REASONING)
    assert "secret" not in json.dumps(answer)
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


# Ollama → API reference, OpenAI compatibility


async def test_ollama_answers_a_probe(http: aiohttp.ClientSession) -> None:
    async with OllamaServer(models=["qwen3:8b", "llama3.2:latest"]) as server:
        async with http.get(f"{server.url}/api/version") as response:
            assert "version" in await response.json()
        async with http.get(f"{server.url}/api/tags") as response:
            names = [model["name"] for model in (await response.json())["models"]]
        async with http.get(server.url) as response:
            assert await response.text() == "Ollama is running"
    assert names == ["qwen3:8b", "llama3.2:latest"]


async def test_ollama_takes_no_key_and_overlooks_unknown_fields(http: aiohttp.ClientSession) -> None:
    async with OllamaServer(models=["llama3.2:latest"]) as server:
        changes = {"model": "llama3.2", "num_ctx": 4096}
        status, answer = await post(http, server, changes, {"authorization": ABSENT})
        missing, refusal = await post(http, server, {"model": "llama9"})
    assert (status, answer["system_fingerprint"]) == (200, "fp_ollama")
    assert (missing, refusal["error"]["type"]) == (404, "not_found_error")


async def test_ollama_streams_a_tool_call_in_one_chunk(http: aiohttp.ClientSession) -> None:
    async with OllamaServer() as server:
        server.add(Think("hm"), Say("Look."), Call("read", {"path": "a"}))
        body = {"model": "qwen3:8b", "messages": [USER], "stream": True}
        async with http.post(server.url + server.path, json=body) as response:
            lines = [line.removeprefix("data: ") for line in (await response.text()).split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    assert [delta["reasoning"] for delta in deltas if "reasoning" in delta] == ["hm"]
    made = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert [json.loads(one["function"]["arguments"]) for (one,) in made] == [{"path": "a"}]
    assert json.loads(lines[-1])["choices"][0]["finish_reason"] == "tool_calls"
