"""The rules of OpenAI's chat completions for a request, as its documentation states them.

`examine` raises `Wrong` (shape) or `Unfit` for a request that the API answers with 400. Written from the
pages Create chat completion, Function calling, Reasoning and Error codes; `test_openai_rules.py` has the
headings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

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

NAME = string(r"[a-zA-Z0-9_-]+", longest=64)
CALL_ID = string(longest=40)
KIND = {"type": anything}

TEXT = record({**KIND, "text": string()})
IMAGE_URL = record({"url": string(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")})
IMAGE = record({**KIND, "image_url": IMAGE_URL})
TEXTS = array(tagged("type", {"text": TEXT}), shortest=1)
USER_PARTS = array(tagged("type", {"text": TEXT, "image_url": IMAGE}), shortest=1)
FUNCTION_CALL = record({**KIND, "id": CALL_ID, "function": record({"name": NAME, "arguments": string()})})
TOOL_CALL = tagged("type", {"function": FUNCTION_CALL})
ROLE = {"role": anything}
MESSAGE = tagged(
    "role",
    {
        "system": record({**ROLE, "content": string()}),
        "user": record({**ROLE, "content": text_or(USER_PARTS)}),
        "assistant": record(
            ROLE, {"content": nullable(string()), "tool_calls": array(TOOL_CALL, shortest=1, longest=128)}
        ),
        "tool": record({**ROLE, "content": text_or(TEXTS), "tool_call_id": CALL_ID}),
    },
)
FUNCTION = record(
    {"name": NAME},
    {"description": string(), "parameters": record({}, more=True)},
)
TOOL = tagged("type", {"function": record({**KIND, "function": FUNCTION})})
STREAM_OPTIONS = record({}, {"include_usage": boolean})
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


REQUEST = record(
    {"messages": array(MESSAGE, shortest=1), "model": string()},
    {
        "max_completion_tokens": nullable(number(1, whole=True)),
        "max_tokens": nullable(number(1, whole=True)),
        "reasoning_effort": nullable(one_of(*EFFORTS)),
        "stream": nullable(boolean),
        "stream_options": nullable(STREAM_OPTIONS),
        "temperature": nullable(number(0, 2)),
        "tool_choice": one_of("none"),
        "tools": array(TOOL, shortest=1, longest=128),
        "top_p": nullable(number(0, 1)),
    },
)


@dataclass(frozen=True, slots=True)
class Unfit(Exception):
    """A well-shaped request whose parts do not fit together, with the API's message, `param` and `code`."""

    message: str
    param: str | None = None
    code: str | None = None


def examine(body: Json) -> None:
    """Check a parsed request. Raises Wrong or Unfit."""
    if not body.get("model"):
        raise Unfit("you must provide a model parameter")
    REQUEST(body, ())
    _check_options(body)
    _check_model(body)
    _check_functions(body)
    _check_pairs(body["messages"])


def is_reasoning(model: str) -> bool:
    """Whether a model name is of the o-series or of GPT-5 and later, which take other parameters."""
    return bool(re.match(r"o\d|gpt-([5-9]|\d\d)", model)) and "chat" not in model


def code_of(wrong: Wrong) -> str:
    """OpenAI's `code` for a fault in the shape."""
    codes = {
        "missing": "missing_required_parameter",
        "extra": "unknown_parameter",
        "type": "invalid_type",
        "value": "invalid_value",
        "empty": "empty_array",
        "long": "string_above_max_length",
    }
    return codes[wrong.fault]


def param_of(wrong: Wrong) -> str:
    """The path of a fault as OpenAI writes it: `messages[0].content`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in wrong.path)
    return text.removeprefix(".")


def _check_options(body: Json) -> None:
    if body.get("stream_options") is not None and not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise Unfit(text, "stream_options")
    if "tool_choice" in body and "tools" not in body:
        text = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
        raise Unfit(text, "tool_choice")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Unfit("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")


def _check_model(body: Json) -> None:
    if is_reasoning(body["model"]):
        if body.get("max_tokens") is not None:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model."
            raise Unfit(f"{text} Use 'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter")
        if body.get("temperature") not in (None, 1):
            text = "Unsupported value: 'temperature' does not support this value with this model."
            raise Unfit(text, "temperature", "unsupported_value")
    elif body.get("reasoning_effort") is not None:
        raise Unfit("Unrecognized request argument supplied: reasoning_effort")


def _check_functions(body: Json) -> None:
    for index, tool in enumerate(body.get("tools", ())):
        function = tool["function"]
        param = f"tools[{index}].function.parameters"
        parameters = function.get("parameters")
        if parameters is None:
            continue
        if parameters.get("type") != "object":
            raise _bad_schema(function, "schema must be a JSON Schema of 'type: \"object\"'.", param)
        if _array_without_items(parameters):
            raise _bad_schema(function, "array schema missing items.", param)


def _bad_schema(function: Json, text: str, param: str) -> Unfit:
    message = f"Invalid schema for function '{function['name']}': {text}"
    return Unfit(message, param, "invalid_function_parameters")


def _array_without_items(schema: object) -> bool:
    if isinstance(schema, dict):
        bare = schema.get("type") == "array" and not {"items", "prefixItems"} & schema.keys()
        return bare or any(_array_without_items(item) for item in schema.values())
    return isinstance(schema, list) and any(_array_without_items(item) for item in schema)


def _check_pairs(messages: list[Json]) -> None:
    """Function calling → "Handling function calls": a tool message for each call, before any other."""
    asked: list[str] = []
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages.[{index}]"
        if message["role"] == "tool":
            call = message["tool_call_id"]
            if not asked:
                text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                raise Unfit(f"Invalid parameter: {text}", f"{where}.role")
            if call not in asked:
                text = f"'tool_call_id' of '{call}' not found in 'tool_calls' of previous message."
                raise Unfit(f"Invalid parameter: {text}", f"{where}.tool_call_id")
            if call not in open_calls:
                raise Unfit(f"Duplicate value for 'tool_call_id' of '{call}' in message.", f"{where}.tool_call_id")
            open_calls.remove(call)
            continue
        if open_calls:
            raise _unanswered(index, open_calls)
        asked = [call["id"] for call in message.get("tool_calls", ())]
        if len(asked) != len(set(asked)):
            raise Unfit("Duplicate value for 'id' in 'tool_calls' of message.", f"{where}.tool_calls")
        open_calls = list(asked)
        empty = message.get("content") is None and not asked
        if message["role"] == "assistant" and empty:
            raise Unfit("Invalid value for 'content': expected a string, got null.", f"{where}.content")
    if open_calls:
        raise _unanswered(len(messages), open_calls)


def _unanswered(index: int, calls: list[str]) -> Unfit:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        " 'tool_call_id'. The following tool_call_ids did not have response messages: "
    )
    return Unfit(text + ", ".join(calls), f"messages.[{index}].role")
