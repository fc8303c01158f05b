"""How the chunks of an answer are read: OpenAI's, and those of servers that speak its language with an accent."""

from typing import Any

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Text, Thinking, ToolCall, Usage
from agent.models.base import Alive, Answer, ArgumentsDelta, StreamPart, TextDelta, ThinkingDelta
from agent.models.openai_chat import ChunkReader
from tests.agent.models.makers import chunks, read

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
USAGE = {
    "prompt_tokens": 1225,
    "completion_tokens": 89,
    "total_tokens": 1314,
    "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 128},
}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": fields, "finish_reason": finish}], "usage": None}


def tool(
    index: int | None = None, given: str | None = None, name: str | None = None, text: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", text)) if value is not None}
    piece = {"index": index, "id": given, "function": function}
    return {key: value for key, value in piece.items() if value is not None}


def tools(*pieces: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(pieces))


def reader_of(used: tuple[str, ...] = ()) -> ChunkReader:
    ids = (f"made_{count}" for count in range(9))
    return ChunkReader("house/m", set(used), lambda: next(ids))


def answered(body: bytes, used: tuple[str, ...] = ()) -> Answer:
    reader = reader_of(used)
    read(reader, body)
    answer = reader.answer()
    assert answer is not None
    return answer


def calls(*pieces: dict[str, Any], used: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    body = chunks(*(tools(piece) for piece in pieces), delta("stop"), "[DONE]")
    return [(call.call_id, call.name, call.arguments) for call in answered(body, used).message.tool_calls]


BODY = chunks(
    delta(role="assistant", content="", refusal=None),
    delta(content="Bäcker "),
    delta(content="👩‍👩‍👧 ok"),
    tools(tool(0, "call_1", "read", "")),
    tools(tool(0, text='{"path": ')),
    tools(tool(0, text='"a"}')),
    tools(tool(1, "call_2", "list", "")),
    delta("tool_calls"),
    {**HEAD, "choices": [], "usage": USAGE},
    "[DONE]",
)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_whole_answer_in_slices(size: int) -> None:
    reader = reader_of()
    parts = read(reader, BODY, size)
    assert [part for part in parts if not isinstance(part, Alive)] == [
        TextDelta("Bäcker "),
        TextDelta("👩‍👩‍👧 ok"),
        ArgumentsDelta("call_1", "read", ""),
        ArgumentsDelta("call_1", "read", '{"path": '),
        ArgumentsDelta("call_1", "read", '"a"}'),
        ArgumentsDelta("call_2", "list", ""),
    ]
    answer = reader.answer()
    assert answer is not None
    assert answer.message.parts == (
        Text("Bäcker 👩‍👩‍👧 ok"),
        ToolCall("call_1", "read", '{"path": "a"}'),
        ToolCall("call_2", "list", "{}"),
    )
    assert (answer.message.model, answer.stop_reason, reader.ended) == ("house/m", "tool_use", True)
    assert answer.usage == Usage(input=1225, output=89, cache_read=1024, cache_write=128)


def test_no_answer_without_a_finish_reason() -> None:
    for body in (chunks(delta(content="half")), b"", chunks("[DONE]"), chunks(delta(reasoning="Hm."), "[DONE]")):
        reader = reader_of()
        read(reader, body)
        assert reader.answer() is None


def test_done_without_a_finish_reason_ends_what_is_whole() -> None:
    answer = answered(chunks(delta(content="all"), "[DONE]"))
    assert (answer.message.text, answer.stop_reason) == ("all", "end")
    answer = answered(chunks(tools(tool(0, "a", "read", '{"x"')), tools(tool(0, text=": 1}")), "[DONE]"))
    assert ([call.arguments for call in answer.message.tool_calls], answer.stop_reason) == (['{"x": 1}'], "tool_use")


@pytest.mark.parametrize("text", ["", '{"x": ', "null and"])
def test_done_without_a_finish_reason_does_not_end_half_a_call(text: str) -> None:
    reader = reader_of()
    read(reader, chunks(delta(content="I look."), tools(tool(0, "a", "read", text)), "[DONE]"))
    assert reader.answer() is None


def test_content_as_a_list_of_parts() -> None:
    """As Mistral's reasoning models answer."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]}
    reference = {"type": "reference", "reference_ids": [1]}
    reader = reader_of()
    body = chunks(
        delta(content=[thought]),
        delta(content=[thought, {"type": "text", "text": "All "}, reference]),
        delta(content="of it."),
        delta("stop"),
        "[DONE]",
    )
    parts = [part for part in read(reader, body) if not isinstance(part, Alive)]
    assert parts == [ThinkingDelta("Let me see.")] * 2 + [TextDelta("All "), TextDelta("of it.")]
    answer = reader.answer()
    assert answer is not None
    assert answer.message.parts == (Thinking("Let me see.Let me see."), Text("All of it."))


def test_a_stream_without_done_and_without_usage() -> None:
    answer = answered(chunks(delta(content="all"), delta("stop")))
    assert (answer.message.text, answer.stop_reason, answer.usage) == ("all", "end", Usage())


def test_usage_in_the_last_chunk_with_a_choice() -> None:
    body = chunks({**delta("stop", content="all"), "usage": {"prompt_tokens": 3, "completion_tokens": 4}}, "[DONE]")
    assert answered(body).usage == Usage(input=3, output=4)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_of_compatible_servers(field: str) -> None:
    reader = reader_of()
    thought: list[StreamPart] = list(read(reader, chunks(delta(**{field: "Let me "}), delta(**{field: "see."}))))
    read(reader, chunks(delta(content="ok", **{field: None}), delta("stop"), "[DONE]"))
    assert thought == [ThinkingDelta("Let me "), ThinkingDelta("see.")]
    answer = reader.answer()
    assert answer is not None
    assert answer.message.parts == (Thinking("Let me see."), Text("ok"))


def test_null_content_empty_choices_and_empty_deltas_are_signs_of_life() -> None:
    reader = reader_of()
    odd = (delta(content=None), {"choices": []}, {"choices": None}, {"choices": [{"index": 0}]}, {})
    assert read(reader, chunks(*odd)) == [Alive()] * len(odd)


def test_a_whole_call_in_one_chunk_with_stop_as_reason() -> None:
    body = chunks(tools(tool(0, "call_1", "read", '{"path": "a"}')), delta("stop"), "[DONE]")
    answer = answered(body)
    assert (answer.message.tool_calls, answer.stop_reason) == (
        (ToolCall("call_1", "read", '{"path": "a"}'),),
        "tool_use",
    )


def test_arguments_as_an_object() -> None:
    assert calls(tool(0, "c", "read", {"path": "ü"})) == [("c", "read", '{"path": "ü"}')]


def test_index_0_for_every_call() -> None:
    pieces = (tool(0, "a", "read", '{"x": 1}'), tool(0, "b", "read", '{"x": 2}'), tool(0, text=""))
    assert calls(*pieces) == [("a", "read", '{"x": 1}'), ("b", "read", '{"x": 2}')]


def test_index_0_for_every_call_and_no_ids() -> None:
    pieces = (tool(0, name="read", text='{"x": 1}'), tool(0, name="read", text='{"x": 2}'))
    assert calls(*pieces) == [("made_0", "read", '{"x": 1}'), ("made_1", "read", '{"x": 2}')]


def test_no_index_and_no_ids() -> None:
    pieces = (tool(name="read", text='{"x"'), tool(text=": 1}"), tool(name="list", text="{}"))
    assert calls(*pieces) == [("made_0", "read", '{"x": 1}'), ("made_1", "list", "{}")]


def test_id_and_name_repeated_in_every_piece() -> None:
    pieces = (tool(0, "a", "read", '{"x"'), tool(0, "a", "read", ": 1}"), tool(0, "a", "read", ""))
    assert calls(*pieces) == [("a", "read", '{"x": 1}')]


def test_name_repeated_without_ids() -> None:
    assert calls(tool(0, name="read", text='{"x"'), tool(0, name="read", text=": 1}")) == [
        ("made_0", "read", '{"x": 1}')
    ]


def test_ids_that_the_transcript_holds_are_not_used_again() -> None:
    pieces = (tool(0, "call_0", "read", "{}"), tool(1, "call_1", "read", "{}"), tool(2, "call_1", "read", "{}"))
    assert [made[0] for made in calls(*pieces, used=("call_0",))] == ["made_0", "call_1", "made_1"]


def test_interleaved_calls() -> None:
    pieces = (tool(0, "a", "read", "{"), tool(1, "b", "list", "{"), tool(0, text="}"), tool(1, text=' "y": 1}'))
    assert calls(*pieces) == [("a", "read", "{}"), ("b", "list", '{ "y": 1}')]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("length", "max_output"),
        ("content_filter", "refusal"),
        ("model_length", "max_output"),
        ("MAX_TOKENS", "max_output"),
        ("content_filter: RECITATION", "refusal"),
        ("eos", "other"),
        ("tool_calls", "tool_use"),
    ],
)
def test_finish_reasons(reason: str, stop: str) -> None:
    assert answered(chunks(delta(content="x"), delta(reason), "[DONE]")).stop_reason == stop


def test_a_refusal_is_said() -> None:
    answer = answered(chunks(delta(refusal="I "), delta(refusal="won't."), delta("stop"), "[DONE]"))
    assert (answer.message.text, answer.stop_reason) == ("I won't.", "refusal")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "x", "type": "server_error", "code": None}}, ErrorKind.OVERLOADED),
        ({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, ErrorKind.RATE_LIMIT),
        ({"object": "error", "message": "maximum context length is 8 tokens", "code": 400}, ErrorKind.CONTEXT_OVERFLOW),
        ({"error": "model runner has unexpectedly stopped"}, ErrorKind.UNKNOWN),
        ({"choices": [{"delta": {}, "finish_reason": "error"}]}, ErrorKind.UNKNOWN),
        ({"choices": [{"delta": {}, "finish_reason": "insufficient_system_resource"}]}, ErrorKind.UNKNOWN),
    ],
)
def test_errors_in_the_middle(error: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(ModelError) as raised:
        read(reader_of(), chunks(delta(content="half"), error))
    assert raised.value.kind is kind


def test_words_do_not_hide_what_else_a_chunk_holds() -> None:
    answer = answered(
        chunks(
            delta(role="assistant", content="So ", reasoning_content="hm"),
            {**delta(content="I "), "usage": USAGE},
            delta(content="look.", tool_calls=[tool(0, "call_1", "read", "{}")]),
            {**HEAD, "choices": [{"index": 1, "delta": {"content": "another answer"}}]},
            delta("length", content=" Now"),
        )
    )
    expected = (Thinking("hm"), Text("So I look. Now"), ToolCall("call_1", "read", "{}"))
    assert (answer.message.parts, answer.stop_reason) == (expected, "max_output")
    assert answer.usage.input == 1225
    refused = answered(chunks(delta(content="I ", refusal="do not."), delta("stop")))
    assert refused.stop_reason == "refusal"
    with pytest.raises(ModelError):
        read(reader_of(), chunks({**delta(content="half"), "error": {"message": "overloaded"}}))
