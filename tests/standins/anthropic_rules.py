"""The rules of Anthropic's Messages API for a request, as its documentation states them.

`examine` raises `Wrong` or `Unfit` for a request that the API answers with 400. Written from the pages
Messages, Versions, Errors, Tool use, Extended thinking, Prompt caching and Vision; the headings are in
`test_anthropic_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.standins.anthropic_signatures import genuine, mark_of, thinking_digest, thinking_digest_of
from tests.standins.shapes import (
    Wrong,
    anything,
    array,
    boolean,
    nullable,
    number,
    one_of,
    record,
    string,
    tagged,
    text_or,
)

Json = dict[str, Any]

VERSIONS = ("2026-10-21", "2023-06-01", "2023-01-01")

NAME = r"[a-zA-Z0-9_-]{1,128}"
CACHE = nullable(record({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")}))
MARKED = {"cache_control": CACHE}
KIND = {"type": anything}
REASONING = ("thinking", "redacted_thinking")

TEXT = record({**KIND, "text": string()}, MARKED)
IMAGE_SOURCE = record(
    {
        "type": one_of("base64"),
        "media_type": one_of("image/jpeg", "image/png", "image/gif", "image/webp"),
        "data": string(r"[A-Za-z0-9+/]+={0,2}"),
    }
)
IMAGE = record({**KIND, "source": IMAGE_SOURCE}, MARKED)
RESULT_PART = tagged("type", {"text": TEXT, "image": IMAGE})
BLOCK = tagged(
    "type",
    {
        "text": TEXT,
        "image": IMAGE,
        "tool_use": record(
            {**KIND, "id": string(r"[a-zA-Z0-9_-]+"), "name": string(NAME), "input": record({}, more=True)},
            MARKED,
        ),
        "tool_result": record(
            {**KIND, "tool_use_id": string(r"[a-zA-Z0-9_-]+")},
            {**MARKED, "content": text_or(array(RESULT_PART)), "is_error": boolean},
        ),
        "thinking": record({**KIND, "thinking": string(), "signature": string()}),
        "redacted_thinking": record({**KIND, "data": string()}),
    },
)
MESSAGE = record({"role": one_of("user", "assistant"), "content": text_or(array(BLOCK))})
TOOL = record(
    {"name": string(NAME), "input_schema": record({"type": one_of("object")}, more=True)},
    {**MARKED, "description": string()},
)
DISPLAY = {"display": nullable(one_of("summarized", "omitted"))}
THINKING = tagged(
    "type",
    {
        "enabled": record({**KIND, "budget_tokens": number(1024, whole=True)}, DISPLAY),
        "adaptive": record(KIND, DISPLAY),
        "disabled": record(KIND),
    },
)
REQUEST = record(
    {
        "model": string(shortest=1),
        "max_tokens": number(0, whole=True),
        "messages": array(MESSAGE, longest=100_000),
    },
    {
        **MARKED,
        "system": text_or(array(TEXT)),
        "tools": array(TOOL),
        "tool_choice": record({"type": one_of("none")}),
        "thinking": THINKING,
        "stream": boolean,
        "temperature": number(0, 1),
        "top_p": number(0, 1),
        "top_k": number(0, whole=True),
        "output_config": record({}, {"effort": one_of("low", "medium", "high", "xhigh", "max")}),
    },
)


class Unfit(Exception):
    """A well-shaped request whose parts do not fit together; the text is the API's message."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the model behind the stand-in takes; the defaults are those of a current model, rather strict.

    `thinking`: types of the thinking parameter.
    `context_window` and `max_output` are in tokens, a token being four characters.
    """

    thinking: frozenset[str] = frozenset({"enabled", "adaptive", "disabled"})
    context_window: int = 200_000
    max_output: int = 64_000


def examine(body: Json, abilities: Abilities, version: str) -> None:
    """Check a parsed request. Raises Wrong (shape) or Unfit (parts that do not belong together)."""
    REQUEST(body, ())
    if version == VERSIONS[0]:
        for name in ("temperature", "top_p", "top_k"):
            if name in body:
                raise Wrong((name,), "extra", "Extra inputs are not permitted")
    messages: list[Json] = body["messages"]
    _check_order(messages)
    _check_texts(body)
    _check_marks(body)
    _check_tools(body)
    _check_pairs(messages)
    _check_limits(body, abilities)
    _check_thinking(body, abilities)


def blocks_of(message: Json) -> list[Json]:
    """The content of a message as blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _check_order(messages: list[Json]) -> None:
    if not messages:
        raise Unfit("messages: at least one message is required")
    for index, message in enumerate(messages):
        if not message["content"]:
            raise Unfit(f"messages.{index}: {message['role']} messages must have non-empty content")
    if messages[0]["role"] != "user":
        raise Unfit('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant":
        raise Unfit(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _check_texts(body: Json) -> None:
    for place, block in _all_blocks(body):
        if block.get("type") == "text":
            if not block["text"]:
                raise Unfit(f"{place}: text content blocks must be non-empty")
            if not block["text"].strip():
                raise Unfit(f"{place}: text content blocks must contain non-whitespace text")


def _all_blocks(body: Json) -> Iterator[tuple[str, Json]]:
    """Every block in the order of the prompt: tools, system, messages with the parts of tool results."""
    for tool in body.get("tools", ()):
        yield "tools", tool
    if isinstance(body.get("system"), list):
        for block in body["system"]:
            yield "system", block
    for message in body["messages"]:
        for block in blocks_of(message):
            yield "messages", block
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                for part in block["content"]:
                    yield "messages", part


def _check_marks(body: Json) -> None:
    marks = [mark for _, block in _all_blocks(body) if (mark := block.get("cache_control"))]
    if body.get("cache_control"):
        marks.append(body["cache_control"])
    if len(marks) > 4:
        raise Unfit(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    lives = [mark.get("ttl", "5m") for mark in marks]
    if lives != sorted(lives):
        raise Unfit("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def _check_tools(body: Json) -> None:
    names = [tool["name"] for tool in body.get("tools", ())]
    if len(names) != len(set(names)):
        raise Unfit("tools: Tool names must be unique.")
    if body.get("tool_choice") and not names:
        raise Unfit("tool_choice may only be specified while providing tools")


def _check_pairs(messages: list[Json]) -> None:
    """Tool use → "Handling results from client tools": all results in the next message, before its text."""
    seen: set[str] = set()
    asked: list[str] = []
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        for place, block in enumerate(blocks):
            _check_place(f"messages.{index}.content.{place}", message["role"], block, asked)
        leading: list[str] = []
        for block in blocks:
            if block["type"] != "tool_result":
                break
            leading.append(block["tool_use_id"])
        if len(leading) != len(set(leading)):
            raise Unfit("each tool_use must have a single result. Found multiple `tool_result` blocks")
        if without := [call for call in asked if call not in leading]:
            raise _without_result(index - 1, without)
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(asked)) != len(asked) or seen.intersection(asked):
            raise Unfit("messages: `tool_use` ids must be unique")
        seen.update(asked)


def _check_place(where: str, role: str, block: Json, asked: list[str]) -> None:
    kind = block["type"]
    if kind in ("tool_use", *REASONING) and role != "assistant":
        raise Unfit(f"{where}: `{kind}` blocks can only be in `assistant` messages")
    if kind == "tool_result" and role != "user":
        raise Unfit(f"{where}: `{kind}` blocks can only be in `user` messages")
    if kind == "tool_result" and block["tool_use_id"] not in asked:
        raise Unfit(
            f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}. Each"
            " `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )


def _without_result(index: int, calls: list[str]) -> Unfit:
    return Unfit(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after:"
        f" {', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the"
        " next message."
    )


def _check_limits(body: Json, abilities: Abilities) -> None:
    if body["max_tokens"] > abilities.max_output:
        raise Unfit(
            f"max_tokens: {body['max_tokens']} > {abilities.max_output}, which is the maximum allowed number"
            f" of output tokens for {body['model']}"
        )


def _check_thinking(body: Json, abilities: Abilities) -> None:
    thinking = body.get("thinking") or {"type": "disabled"}
    if "thinking" in body and thinking["type"] not in abilities.thinking:
        raise Unfit(f"thinking.type.{thinking['type']}: thinking of this type is not supported on this model")
    messages = body["messages"]
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        for place, block in enumerate(blocks):
            if not genuine(block):
                where = f"messages.{index}.content.{place}"
                raise Unfit(f"{where}: Invalid `signature` in `{block['type']}` block")
        last = blocks[-1]["type"]
        if message["role"] == "assistant" and last in REASONING:
            raise Unfit(f"messages.{index}: The final block in an assistant message cannot be `{last}`.")
    if thinking["type"] == "disabled":
        return
    if thinking["type"] == "enabled" and thinking["budget_tokens"] >= body["max_tokens"]:
        raise Unfit("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.get("temperature", 1) != 1:
        raise Unfit("`temperature` may only be set to 1 when thinking is enabled.")
    if "top_k" in body or body.get("top_p", 1) < 0.95:
        raise Unfit("`top_k` must be unset and `top_p` at least 0.95 when thinking is enabled.")
    _check_loop(messages, manual=thinking["type"] == "enabled")


def _check_loop(messages: list[Json], *, manual: bool) -> None:
    """Extended thinking → "Preserving thinking blocks", for the tool loop that the request continues."""
    start = _start_of_loop(messages)
    for index in range(start, len(messages)):
        if messages[index]["role"] == "assistant":
            _check_thoughts(index, blocks_of(messages[index]), first=index == start, manual=manual)


def _start_of_loop(messages: list[Json]) -> int:
    """Where the row of assistant messages and tool results begins with which the request ends."""
    start = len(messages)
    while start:
        user = start
        while user and messages[user - 1]["role"] != "assistant":
            user -= 1
        if user == start or blocks_of(messages[user])[0]["type"] != "tool_result":
            break
        start = user
        while start and messages[start - 1]["role"] == "assistant":
            start -= 1
    return start


def _check_thoughts(index: int, blocks: list[Json], *, first: bool, manual: bool) -> None:
    """Signed thinking stands before the tool calls it was issued with, all of it and in its order.

    A call whose id is not the stand-in's is held to the documented rule for manual thinking alone: the first
    message of the loop begins with thinking.
    """
    signed: list[str] = []
    for block in blocks:
        if block["type"] in REASONING:
            signed.append(mark_of(block))
        if block["type"] != "tool_use":
            continue
        issued = thinking_digest_of(block["id"])
        if issued is not None and issued != thinking_digest(signed):
            raise Unfit(
                f"messages.{index}: `thinking` or `redacted_thinking` blocks in the latest assistant message"
                " cannot be modified. These blocks must remain as they were in the original response."
            )
        needed = bool(signed) or (first and issued is None)
        if manual and needed and blocks[0]["type"] not in REASONING:
            raise Unfit(
                f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
                f" `{blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start"
                " with a thinking block."
            )
