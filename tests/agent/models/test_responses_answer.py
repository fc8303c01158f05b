"""How the events of an answer of the Responses API are read, and what is sent back of it."""

from typing import Any

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Mark, Message, Text, Thinking, ToolCall, Usage
from agent.models.base import Alive, ArgumentsDelta, TextDelta, ThinkingDelta
from agent.models.openai_responses import EventReader, body_of
from tests.agent.models.makers import assistant, chunks, events, read, request, results, spec, user

USAGE = {
    "input_tokens": 1225,
    "input_tokens_details": {"cached_tokens": 1024},
    "output_tokens": 89,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 1314,
}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": []}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": ""}
OTHER = {"id": "fc_2", "type": "function_call", "call_id": "call_2", "name": "list", "arguments": "{}"}
WORDS = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "status": "in_progress"}


def ended(kind: str = "response.completed", **fields: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"response": {"id": "resp_1", "status": "completed", "error": None, "usage": USAGE, **fields}}


BODY = events(
    ("response.created", {"response": {"id": "resp_1", "status": "in_progress", "usage": None}}),
    ("response.output_item.added", {"output_index": 0, "item": REASONING}),
    ("response.reasoning_summary_text.delta", {"output_index": 0, "summary_index": 0, "delta": "I should look."}),
    (
        "response.output_item.done",
        {
            "output_index": 0,
            "item": {
                **REASONING,
                "summary": [{"type": "summary_text", "text": "I should look."}],
                "encrypted_content": "gAAAA1",
            },
        },
    ),
    ("response.output_item.added", {"output_index": 1, "item": WORDS}),
    ("response.output_text.delta", {"output_index": 1, "content_index": 0, "delta": "Bäcker "}),
    ("response.output_text.delta", {"output_index": 1, "content_index": 0, "delta": "👩‍👩‍👧 ok"}),
    ("response.output_text.done", {"output_index": 1, "content_index": 0, "text": "Bäcker 👩‍👩‍👧 ok"}),
    ("response.output_item.added", {"output_index": 2, "item": CALL}),
    ("response.function_call_arguments.delta", {"output_index": 2, "delta": '{"path": '}),
    ("response.function_call_arguments.delta", {"output_index": 2, "delta": '"a"}'}),
    ("response.output_item.done", {"output_index": 2, "item": {**CALL, "arguments": '{"path": "a"}'}}),
    ("response.output_item.added", {"output_index": 3, "item": {**OTHER, "arguments": ""}}),
    ("response.output_item.done", {"output_index": 3, "item": OTHER}),
    ended(),
)
THOUGHT = Thinking("I should look.", "rs_1", "gAAAA1")


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_whole_answer_in_slices(size: int) -> None:
    reader = EventReader("house/m")
    parts = [part for part in read(reader, BODY, size) if not isinstance(part, Alive)]
    assert parts == [
        ThinkingDelta("I should look."),
        TextDelta("Bäcker "),
        TextDelta("👩‍👩‍👧 ok"),
        ArgumentsDelta("call_1", "read", ""),
        ArgumentsDelta("call_1", "read", '{"path": '),
        ArgumentsDelta("call_1", "read", '"a"}'),
        ArgumentsDelta("call_2", "list", ""),
        ArgumentsDelta("call_2", "list", "{}"),
    ]
    answer = reader.answer()
    assert answer is not None
    calls = (ToolCall("call_1", "read", '{"path": "a"}'), ToolCall("call_2", "list", "{}"))
    assert answer.message.parts == (THOUGHT, Text("Bäcker 👩‍👩‍👧 ok"), *calls)
    assert (answer.message.model, answer.stop_reason, reader.ended) == ("house/m", "tool_use", True)
    assert answer.usage == Usage(input=1225, output=89, cache_read=1024)


def test_what_came_in_no_delta_is_in_the_finished_item() -> None:
    content = [{"type": "output_text", "text": "Whole.", "annotations": []}]
    reader = EventReader("house/m")
    item = {**WORDS, "content": content}
    parts = read(reader, events(("response.output_item.done", {"output_index": 0, "item": item}), ended()))
    assert TextDelta("Whole.") in parts
    assert (answer := reader.answer()) is not None
    assert (answer.message.text, answer.stop_reason) == ("Whole.", "end")


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "max_output"), ("content_filter", "refusal"), ("other", "other")]
)
def test_an_incomplete_answer(reason: str, stop: str) -> None:
    reader = EventReader("house/m")
    begun = ("response.output_item.added", {"output_index": 0, "item": WORDS})
    delta = ("response.output_text.delta", {"output_index": 0, "content_index": 0, "delta": "Half"})
    read(reader, events(begun, delta, ended("response.incomplete", incomplete_details={"reason": reason})))
    assert (answer := reader.answer()) is not None
    assert (answer.message.text, answer.stop_reason) == ("Half", stop)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "rate_limit_exceeded", "message": "Slow down."}, ErrorKind.RATE_LIMIT),
        ({"code": "server_error", "message": "Sorry."}, ErrorKind.OVERLOADED),
        ({"code": "context_length_exceeded", "message": "Your input exceeds."}, ErrorKind.CONTEXT_OVERFLOW),
    ],
)
def test_failures_in_the_stream(error: dict[str, str], kind: ErrorKind) -> None:
    for body in (events(ended("response.failed", error=error)), chunks({"type": "error", **error})):
        with pytest.raises(ModelError) as raised:
            read(EventReader("house/m"), body)
        assert raised.value.kind is kind


def test_a_refusal_is_one() -> None:
    reader = EventReader("house/m")
    begun = ("response.output_item.added", {"output_index": 0, "item": WORDS})
    read(reader, events(begun, ("response.refusal.delta", {"output_index": 0, "delta": "No."}), ended()))
    assert (answer := reader.answer()) is not None
    assert (answer.message.text, answer.stop_reason) == ("No.", "refusal")


def test_reasoning_goes_back_to_the_model_that_wrote_it_before_what_it_led_to() -> None:
    there = spec("openai-responses", "gpt-5.5")
    mine = assistant(THOUGHT, "I look.", ToolCall("call_1", "read", "{}"), model="house/gpt-5.5")
    body: Any = body_of(request(user("hi"), mine, results(("call_1", "A"))), there)
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "I should look."}],
        "encrypted_content": "gAAAA1",
    }
    call = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
    assert body["input"][1:] == [
        reasoning,
        {"role": "assistant", "content": "I look."},
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": "A"},
    ]
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert "previous_response_id" not in body
    other = assistant(THOUGHT, "I look.", model="house/another")
    body = body_of(request(user("hi"), other, user("and?")), there)
    assert [item.get("type", item.get("role")) for item in body["input"]] == ["user", "assistant", "user"]
    alone = assistant("Done.", THOUGHT, model="house/gpt-5.5")
    body = body_of(request(user("hi"), alone, user("and?")), there)
    assert [item.get("type", item.get("role")) for item in body["input"]] == ["user", "assistant", "user"]


def test_what_is_recalled_stands_at_the_end_of_the_last_line() -> None:
    recalled, there = Message("user", (Text("remembered"),), mark=Mark.RECALLED), spec("openai-responses", "gpt-5.5")
    words = [{"type": "input_text", "text": text} for text in ("a", "remembered")]
    body: Any = body_of(request(user("a"), recalled), there)
    assert body["input"] == [{"role": "user", "content": words}]
    body = body_of(request(user("a"), assistant(ToolCall("1", "read", "{}")), results(("1", "A")), recalled), there)
    assert body["input"][-1] == {"type": "function_call_output", "call_id": "1", "output": "A\n\nremembered"}


@pytest.mark.parametrize("model", ["gpt-4o-mini", "openai/gpt-4.1", "gpt-5-chat-latest"])
def test_reasoning_is_not_wanted_of_models_that_have_none(model: str) -> None:
    assert "include" not in body_of(request(user("hi")), spec("openai-responses", model))


def test_levels_of_thinking() -> None:
    there = spec("openai-responses", "gpt-5.5")
    assert "reasoning" not in body_of(request(user("hi")), there)
    assert body_of(request(user("hi"), thinking="x-high"), there)["reasoning"] == {"effort": "xhigh"}
    assert body_of(request(user("hi"), thinking="off"), there)["reasoning"] == {"effort": "none"}
