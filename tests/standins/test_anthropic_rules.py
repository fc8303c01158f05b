"""The Anthropic stand-in refuses what the API's documentation rules out: one rule, one row, raw HTTP.

Each row has the page and heading of the rule, a request that breaks it, and its accepted counterpart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from tests.standins.anthropic_rules import Abilities
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.anthropic_signatures import redact, sign
from tests.standins.script import Call, Say, Think

Json = dict[str, Any]

ABSENT = object()
HEADERS = {
    "authorization": "Bearer test-key",
    "anthropic-version": "2026-10-21",
    "content-type": "application/json",
}
OLD = {"anthropic-version": "2023-06-01"}
USER = {"role": "user", "content": "Hello"}
BASE: Json = {"model": "claude-test", "max_tokens": 4096, "messages": [USER]}

TOOL = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
TEXT = {"type": "text", "text": "Hi"}
MARK = {"cache_control": {"type": "ephemeral"}}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
HIDDEN = {"type": "redacted_thinking", "data": redact("hm")}
NONE = {"tools": [TOOL], "tool_choice": {"type": "none"}}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(call: str = "toolu_1", **more: object) -> Json:
    return {"type": "tool_use", "id": call, "name": "read", "input": {}, **more}


def result(call: str = "toolu_1", content: object = "ok", **more: object) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def talk(*messages: Json, **more: object) -> Json:
    return {"messages": list(messages), "tools": [TOOL], **more}


def image(**source: object) -> Json:
    return talk(user({"type": "image", "source": source}))


@dataclass(frozen=True)
class Rule:
    """A rule: where it is written, a request against it, one that keeps it, and how the API refuses."""

    heading: str
    bad: Json
    good: Json = field(default_factory=dict)
    says: str = ""
    status: int = 400
    kind: str = "invalid_request_error"
    headers: Json = field(default_factory=dict)
    good_headers: Json = field(default_factory=dict)
    abilities: Abilities = field(default_factory=Abilities)

    def __str__(self) -> str:
        return self.heading


EXTRA = "Extra inputs are not permitted"
NO_RESULT = "`tool_use` ids were found without `tool_result` blocks immediately after"

RULES = [
    # API overview → Authentication, Versions; Errors → HTTP errors
    Rule("Authentication: a key", {}, says="Authorization", status=401, kind="authentication_error",
        headers={"authorization": ABSENT}, good_headers={"authorization": ABSENT, "x-api-key": "test-key"}),
    Rule("Authentication: bearer token", {}, says="Authorization", status=401, kind="authentication_error",
        headers={"authorization": "test-key"}),
    Rule("Authentication: valid key", {}, says="invalid", status=401, kind="authentication_error",
        headers={"authorization": "Bearer nonsense"}),
    Rule("Authentication: x-api-key comes first", {}, says="invalid", status=401, kind="authentication_error",
        headers={"x-api-key": "nonsense"}, good_headers={"x-api-key": "test-key", "authorization": "Bearer x"}),
    Rule("Versions: 2026-10-21 has no temperature", {"temperature": 1.0}, {"temperature": 1.0},
        "temperature: Extra inputs are not permitted", good_headers=OLD),
    Rule("Versions: 2026-10-21 has no top_p", {"top_p": 1.0}, {"top_p": 1.0}, EXTRA, good_headers=OLD),
    Rule("Versions: 2026-10-21 has no top_k", {"top_k": 5}, {"top_k": 5}, EXTRA, good_headers=OLD),
    Rule("Versions: header required", {}, says="anthropic-version", headers={"anthropic-version": ABSENT}),
    Rule("Versions: known version", {}, says="not a valid", headers={"anthropic-version": "2099-01-01"}),
    Rule("Content types: JSON", {}, says="content-type", headers={"content-type": "text/plain"}),
    Rule("Errors: not_found_error", {"model": "gpt"}, says="model: gpt", status=404, kind="not_found_error"),
    # Create a Message → body
    Rule("model required", {"model": ABSENT}, says="model: Field required"),
    Rule("max_tokens required", {"max_tokens": ABSENT}, says="max_tokens: Field required"),
    Rule("messages required", {"messages": ABSENT}, says="messages: Field required"),
    Rule("messages not empty", {"messages": []}, says="at least one message"),
    Rule("max_tokens integer", {"max_tokens": "100"}, {"max_tokens": 100}, "max_tokens"),
    Rule("max_tokens within the model's limit", {"max_tokens": 64_001}, {"max_tokens": 64_000}, "64001 > 64000"),
    Rule("no unknown field", {"temprature": 1}, {}, f"temprature: {EXTRA}"),
    Rule("no unknown field of a message", talk({**USER, "name": "Ada"}), says=f"messages.0.name: {EXTRA}"),
    Rule("no unknown field of a block", talk(user({**TEXT, "id": "x"})), talk(user(TEXT)), EXTRA),
    Rule("no unknown field of a tool call", talk(USER, assistant(use(index=0)), user(result())), talk(USER,
        assistant(use()), user(result())), f"messages.1.content.0.index: {EXTRA}"),
    Rule("no unknown field of a tool", {"tools": [{**TOOL, "parameters": {}}]}, NONE, EXTRA),
    Rule("temperature at most 1", {"temperature": 1.5}, {"temperature": 0.5}, "less than", headers=OLD,
        good_headers=OLD),
    Rule("temperature at least 0", {"temperature": -0.1}, {"temperature": 0}, "greater than", headers=OLD,
        good_headers=OLD),
    Rule("stream boolean", {"stream": "yes"}, {"stream": False}, "stream"),
    Rule("system text or text blocks", {"system": [{"type": "image", "source": PNG}]}, {"system": [TEXT]}, "system"),
    # Create a Message → messages
    Rule("known roles", talk({"role": "tool", "content": "x"}), says="messages.0.role"),
    Rule("first message of the user", talk(assistant(TEXT), USER), talk(USER, assistant(TEXT), USER), "first message"),
    Rule("content required", talk({"role": "user"}), says="messages.0.content: Field required"),
    Rule("content not empty", talk({"role": "user", "content": []}), talk(user(TEXT)), "non-empty content"),
    Rule("content string not empty", talk({"role": "user", "content": ""}), says="non-empty content"),
    Rule("text not empty", talk(user({"type": "text", "text": ""})), says="must be non-empty"),
    Rule("text not only white space", talk(user({"type": "text", "text": " \n"})), says="non-whitespace"),
    Rule("string not only white space", talk({"role": "user", "content": "\n"}), says="non-whitespace"),
    Rule("system block not empty", {"system": [{"type": "text", "text": ""}]}, {"system": [TEXT]}, "non-empty"),
    Rule("known block types", talk(user({"type": "input_text", "text": "x"})), says="Input tag 'input_text'"),
    Rule("system is a parameter", talk({"role": "system", "content": "Be brief."}, USER), says="messages.0.role"),
    # Errors → Prefill not supported
    Rule("Prefill not supported", talk(USER, assistant(TEXT)), talk(USER, assistant(TEXT), USER), "prefill"),
    # Vision
    Rule("Vision: media types", image(**{**PNG, "media_type": "image/bmp"}), image(**PNG), "media_type"),
    Rule("Vision: base64 data", image(**{**PNG, "data": "data:image/png;base64,AAAA"}), image(**PNG), "data"),
    Rule("Vision: source shape", image(url="https://a.test/x.png"), image(**PNG), "source.type"),
    # Define tools
    Rule("tool name characters", {"tools": [{**TOOL, "name": "fs.read"}]}, NONE, "tools.0.name"),
    Rule("tool name length", {"tools": [{**TOOL, "name": "r" * 129}]}, {"tools": [{**TOOL, "name": "r" * 128}]},
        "tools.0.name"),
    Rule("tool input_schema required", {"tools": [{"name": "read"}]}, NONE, "input_schema: Field required"),
    Rule("tool input_schema an object", {"tools": [{**TOOL, "input_schema": {"type": "string"}}]}, NONE,
        "input_schema.type"),
    Rule("tool names unique", {"tools": [TOOL, TOOL]}, {"tools": [TOOL, {**TOOL, "name": "write"}]}, "unique"),
    Rule("tool_choice needs tools", {"tool_choice": {"type": "none"}}, NONE, "while providing tools"),
    Rule("tool_choice types", {"tools": [TOOL], "tool_choice": {"type": "required"}}, NONE, "tool_choice"),
    # Handle tool calls → Handling results from client tools
    Rule("result follows the call", talk(USER, assistant(use()), USER), talk(USER, assistant(use()), user(result())),
        NO_RESULT),
    Rule("all results in one message", talk(USER, assistant(use("a"), use("b")), user(result("a")), user(result("b"))),
        talk(USER, assistant(use("a"), use("b")), user(result("b"), result("a"))), NO_RESULT),
    Rule("results before text", talk(USER, assistant(use()), user(TEXT, result())), talk(USER, assistant(use()),
        user(result(), TEXT)), NO_RESULT),
    Rule("nothing between call and result", talk(USER, assistant(use()), assistant(TEXT), user(result())), talk(USER,
        assistant(TEXT, use()), user(result())), NO_RESULT),
    Rule("result answers a call", talk(USER, assistant(use("a")), user(result("a"), result("b"))), talk(USER,
        assistant(use("a")), user(result("a"))), "unexpected `tool_use_id`"),
    Rule("result without call", talk(user(result())), says="unexpected `tool_use_id`"),
    Rule("result of an older call", talk(USER, assistant(use()), user(result()), assistant(TEXT), user(result())),
        talk(USER, assistant(use()), user(result()), assistant(TEXT), USER), "unexpected `tool_use_id`"),
    Rule("one result per call", talk(USER, assistant(use()), user(result(), result())), talk(USER, assistant(use()),
        user(result())), "single result"),
    Rule("call ids unique", talk(USER, assistant(use()), user(result()), assistant(use()), user(result())), talk(USER,
        assistant(use()), user(result()), assistant(use("b")), user(result("b"))), "must be unique"),
    Rule("call id characters", talk(USER, assistant(use("call:1")), user(result("call:1"))), talk(USER,
        assistant(use("call_1")), user(result("call_1"))), "should match pattern"),
    Rule("call input an object", talk(USER, assistant(use(input="{}")), user(result())), talk(USER,
        assistant(use(input={"a": 1})), user(result())), "messages.1.content.0.input"),
    Rule("calls are the assistant's", talk(user(use()), user(result())), says="only be in `assistant`"),
    Rule("results are the user's", talk(USER, assistant(use()), assistant(result()), USER), says="only be in `user`"),
    Rule("result of text and images", talk(USER, assistant(use()), user(result(content={"ok": True}))), talk(USER,
        assistant(use()), user(result(content=[TEXT, {"type": "image", "source": PNG}]))), "content"),
    Rule("result text not empty", talk(USER, assistant(use()), user(result(content=[{"type": "text", "text": ""}]))),
        talk(USER, assistant(use()), user(result(content=""))), "non-empty"),
    Rule("is_error boolean", talk(USER, assistant(use()), user(result(is_error="yes"))), talk(USER, assistant(use()),
        user(result(is_error=True))), "is_error"),
    # Prompt caching
    Rule("four marks", talk(user(*[{**TEXT, **MARK}] * 3), system=[{**TEXT, **MARK}], tools=[{**TOOL, **MARK}]),
        talk(user(*[{**TEXT, **MARK}] * 2), system=[{**TEXT, **MARK}], tools=[{**TOOL, **MARK}]), "Found 5"),
    Rule("mark type", talk(user({**TEXT, "cache_control": {"type": "persistent"}})), talk(user({**TEXT, **MARK})),
        "cache_control.type"),
    Rule("mark ttl", talk(user({**TEXT, "cache_control": {"type": "ephemeral", "ttl": "1d"}})), talk(user({**TEXT,
        "cache_control": {"type": "ephemeral", "ttl": "1h"}})), "cache_control.ttl"),
    Rule("longer ttl first", {"system": [{**TEXT, **MARK}, {**TEXT, "cache_control": {"type": "ephemeral",
        "ttl": "1h"}}]}, {"system": [{**TEXT, "cache_control": {"type": "ephemeral", "ttl": "1h"}}, {**TEXT, **MARK}]},
        "must not come after"),
    Rule("thinking carries no mark", talk(USER, assistant({**THOUGHT, **MARK}, TEXT), USER), talk(USER,
        assistant(THOUGHT, {**TEXT, **MARK}), USER), EXTRA),
    # Extended thinking
    Rule("budget at least 1024", {"thinking": {"type": "enabled", "budget_tokens": 1023}}, THINKING, "1024"),
    Rule("budget below max_tokens", {**THINKING, "max_tokens": 1024}, {**THINKING, "max_tokens": 1025},
        "must be greater than"),
    Rule("budget required", {"thinking": {"type": "enabled"}}, THINKING, "budget_tokens: Field required"),
    Rule("adaptive without budget", {"thinking": {"type": "adaptive", "budget_tokens": 2000}},
        {"thinking": {"type": "adaptive"}}, EXTRA),
    Rule("thinking type", {"thinking": {"type": "on"}}, {"thinking": {"type": "disabled"}}, "thinking.type"),
    Rule("thinking not on every model", THINKING, {"thinking": {"type": "adaptive"}}, "not supported",
        abilities=Abilities(thinking=frozenset({"adaptive"}))),
    Rule("temperature 1 with thinking", {**THINKING, "temperature": 0.5}, {**THINKING, "temperature": 1},
        "`temperature` may only be set to 1", headers=OLD, good_headers=OLD),
    Rule("thinking signed", talk(USER, assistant({**THOUGHT, "signature": ""}, TEXT), USER), talk(USER,
        assistant(THOUGHT, TEXT), USER), "Invalid `signature`"),
    Rule("signature required", talk(USER, assistant({"type": "thinking", "thinking": "hm"}, TEXT), USER),
        says="signature: Field required"),
    Rule("thinking unchanged", talk(USER, assistant({**THOUGHT, "thinking": "hm."}, TEXT), USER), talk(USER,
        assistant(THOUGHT, TEXT), USER), "Invalid `signature`"),
    Rule("redacted thinking unchanged", talk(USER, assistant({**HIDDEN, "data": "xyz"}, TEXT), USER), talk(USER,
        assistant(HIDDEN, TEXT), USER), "Invalid `signature`"),
    Rule("thinking not last", talk(USER, assistant(TEXT, THOUGHT), USER), talk(USER, assistant(THOUGHT, TEXT), USER),
        "final block"),
    Rule("Preserving thinking blocks", talk(USER, assistant(use()), user(result()), **THINKING), talk(USER,
        assistant(THOUGHT, use()), user(result()), **THINKING), "must start with a thinking block"),
    Rule("Preserving thinking blocks: first", talk(USER, assistant(TEXT, THOUGHT, use()), user(result()), **THINKING),
        talk(USER, assistant(HIDDEN, TEXT, use()), user(result()), **THINKING), "must start with a thinking block"),
    # Context windows
    Rule("prompt fits the window", talk({"role": "user", "content": "x" * 4100}), talk({"role": "user",
        "content": "x" * 3500}), "prompt is too long", abilities=Abilities(context_window=1000)),
]  # fmt: skip


async def post(
    http: aiohttp.ClientSession, server: AnthropicServer, changes: Json, headers: Json | None = None
) -> tuple[int, Json]:
    body = {name: value for name, value in {**BASE, **changes}.items() if value is not ABSENT}
    sent = {name: value for name, value in {**HEADERS, **(headers or {})}.items() if value is not ABSENT}
    async with http.post(server.url + server.path, data=json.dumps(body), headers=sent) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("rule", RULES, ids=str)
async def test_a_broken_rule_is_refused(rule: Rule, http: aiohttp.ClientSession) -> None:
    async with AnthropicServer(models=["claude-test"], abilities=rule.abilities) as server:
        server.tolerate("is malformed")
        status, answer = await post(http, server, rule.bad, rule.headers)
    assert (status, answer["type"], answer["error"]["type"]) == (rule.status, "error", rule.kind), answer
    assert rule.says in answer["error"]["message"]
    assert answer["request_id"].startswith("req_")
    assert bool(server.violations) == (rule.status == 400)


@pytest.mark.parametrize("rule", RULES, ids=str)
async def test_a_kept_rule_is_answered(rule: Rule, http: aiohttp.ClientSession) -> None:
    async with AnthropicServer(models=["claude-test"], abilities=rule.abilities) as server:
        status, answer = await post(http, server, rule.good, rule.good_headers)
    assert status == 200, answer
    assert answer["content"][0]["text"].startswith("echo:")


async def test_a_body_that_is_no_json_is_refused(http: aiohttp.ClientSession) -> None:
    async with AnthropicServer() as server:
        server.tolerate("not valid JSON")
        async with http.post(server.url + server.path, data=b'{"model":', headers=HEADERS) as response:
            answer = await response.json()
    assert (response.status, answer["error"]["type"]) == (400, "invalid_request_error")


async def test_a_body_over_the_limit_is_refused(http: aiohttp.ClientSession) -> None:
    """Errors → Request size limits."""
    async with AnthropicServer(max_body=10_000) as server:
        server.tolerate("larger than the API takes")
        status, answer = await post(http, server, talk({"role": "user", "content": "x" * 10_000}))
    assert (status, answer["error"]["type"]) == (413, "request_too_large")


@pytest.mark.parametrize("kind", ["enabled", "adaptive"])
async def test_issued_thinking_must_come_back_unchanged(kind: str, http: aiohttp.ClientSession) -> None:
    """Extended thinking → Preserving thinking blocks, with blocks and ids that the server has issued."""
    thinking = {"thinking": THINKING["thinking"] if kind == "enabled" else {"type": "adaptive"}}
    async with AnthropicServer() as server:
        server.add(Think("one"), Think("two", redacted=True), Say("Let me look."), Call("read", {"path": "a"}))
        _, answer = await post(http, server, talk(USER, **thinking))
        blocks = answer["content"]
        back = user(result(blocks[-1]["id"]))
        whole, _ = await post(http, server, talk(USER, assistant(*blocks), back, **thinking))
        steered, _ = await post(http, server, talk(USER, assistant(*blocks), back, USER, **thinking))
        server.tolerate("cannot be modified")
        server.tolerate("prefix changed")
        for broken in (blocks[2:], blocks[1:], [blocks[1], blocks[0], *blocks[2:]]):
            status, refusal = await post(http, server, talk(USER, assistant(*broken), back, **thinking))
            assert (status, "cannot be modified" in refusal["error"]["message"]) == (400, True)
        later = talk(USER, assistant(*blocks[2:]), back, assistant(TEXT), USER, **thinking)
        assert (await post(http, server, later))[0] == 200
    assert (whole, steered) == (200, 200)


async def test_a_call_issued_without_thinking_needs_none(http: aiohttp.ClientSession) -> None:
    async with AnthropicServer() as server:
        server.add(Call("read", {"path": "a"}))
        _, answer = await post(http, server, talk(USER, **THINKING))
        back = user(result(answer["content"][0]["id"]))
        status, _ = await post(http, server, talk(USER, assistant(*answer["content"]), back, **THINKING))
    assert status == 200


async def test_the_prompt_cache_reads_what_an_earlier_request_marked(http: aiohttp.ClientSession) -> None:
    """Prompt caching → Tracking cache performance."""
    long = {"type": "text", "text": "x" * 8000}
    async with AnthropicServer() as server:
        first = (await post(http, server, talk(user({**long, **MARK}))))[1]["usage"]
        moved = talk(user(long), assistant(TEXT), user({**long, **MARK}))
        second = (await post(http, server, moved))[1]["usage"]
        unlike = {"type": "text", "text": "y" * 8000, **MARK}
        other = (await post(http, server, talk(user(unlike))))[1]["usage"]
        short = (await post(http, server, talk(user({**TEXT, **MARK}))))[1]["usage"]
    assert (first["cache_read_input_tokens"], first["cache_creation_input_tokens"] > 2000) == (0, True)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert second["cache_creation_input_tokens"] > 2000
    assert other["cache_read_input_tokens"] < 100
    assert short["cache_creation_input_tokens"] == 0


async def test_omitted_thinking_is_empty_but_signed(http: aiohttp.ClientSession) -> None:
    """Extended thinking → Controlling thinking display."""
    hidden = {"thinking": {"type": "adaptive", "display": "omitted"}}
    async with AnthropicServer() as server:
        server.tolerate("prefix changed")
        server.add(Think("secret"), Say("done"))
        _, answer = await post(http, server, {**hidden})
        status, _ = await post(http, server, talk(USER, assistant(*answer["content"]), USER, **hidden))
    assert (answer["content"][0]["thinking"], status) == ("", 200)
    assert "secret" not in json.dumps(answer)
