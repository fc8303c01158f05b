"""How the events of an answer from Anthropic are read; the bodies follow the documentation's examples."""

from typing import Any

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Text, Thinking, ToolCall, Usage
from agent.models.anthropic import EventReader
from agent.models.base import Alive, ArgumentsDelta, TextDelta, ThinkingDelta
from tests.agent.models.makers import events, read

START: tuple[str, dict[str, Any]] = (
    "message_start",
    {
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [],
            "usage": {
                "input_tokens": 25,
                "cache_read_input_tokens": 1000,
                "cache_creation_input_tokens": 200,
                "output_tokens": 1,
            },
        }
    },
)
PING: tuple[str, dict[str, Any]] = ("ping", {})
STOP: tuple[str, dict[str, Any]] = ("message_stop", {})


def opened(index: int, **block: Any) -> tuple[str, dict[str, Any]]:
    return "content_block_start", {"index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "content_block_delta", {"index": index, "delta": {"type": kind, **fields}}


def closed(index: int) -> tuple[str, dict[str, Any]]:
    return "content_block_stop", {"index": index}


def end(reason: str) -> tuple[str, dict[str, Any]]:
    return "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 89}}


BODY = events(
    START,
    opened(0, type="thinking", thinking="", signature=""),
    PING,
    delta(0, "thinking_delta", thinking="Let me "),
    delta(0, "thinking_delta", thinking="see."),
    delta(0, "signature_delta", signature="EqQB"),
    closed(0),
    opened(1, type="redacted_thinking", data="EmwK"),
    closed(1),
    opened(2, type="text", text=""),
    delta(2, "text_delta", text="Bäcker "),
    delta(2, "text_delta", text="👩‍👩‍👧 ok"),
    closed(2),
    opened(3, type="tool_use", id="toolu_1", name="read", input={}),
    delta(3, "input_json_delta", partial_json=""),
    delta(3, "input_json_delta", partial_json='{"path": '),
    delta(3, "input_json_delta", partial_json='"a"}'),
    closed(3),
    opened(4, type="tool_use", id="toolu_2", name="list", input={}),
    closed(4),
    end("tool_use"),
    STOP,
)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_whole_answer_in_slices(size: int) -> None:
    reader = EventReader("house/m")
    parts = read(reader, BODY, size)
    assert [part for part in parts if not isinstance(part, Alive)] == [
        ThinkingDelta("Let me "),
        ThinkingDelta("see."),
        TextDelta("Bäcker "),
        TextDelta("👩‍👩‍👧 ok"),
        ArgumentsDelta("toolu_1", "read", ""),
        ArgumentsDelta("toolu_1", "read", ""),
        ArgumentsDelta("toolu_1", "read", '{"path": '),
        ArgumentsDelta("toolu_1", "read", '"a"}'),
        ArgumentsDelta("toolu_2", "list", ""),
    ]
    answer = reader.answer()
    assert answer is not None
    assert answer.message.parts == (
        Thinking("Let me see.", "EqQB"),
        Thinking("", redacted="EmwK"),
        Text("Bäcker 👩‍👩‍👧 ok"),
        ToolCall("toolu_1", "read", '{"path": "a"}'),
        ToolCall("toolu_2", "list", "{}"),
    )
    assert (answer.message.role, answer.message.model, answer.stop_reason) == ("assistant", "house/m", "tool_use")
    assert answer.usage == Usage(input=1225, output=89, cache_read=1000, cache_write=200)


def test_no_answer_before_the_end_event() -> None:
    """Wherever the stream ends, it is not taken for an answer; half an event is an error of the network."""
    for cut in range(0, len(BODY) - len(events(STOP)), 50):
        reader = EventReader("house/m")
        kinds: list[ErrorKind] = []
        try:
            read(reader, BODY[:cut])
        except ModelError as error:
            kinds.append(error.kind)
        assert kinds in ([], [ErrorKind.NETWORK])
        assert reader.answer() is None
        assert not reader.ended


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "max_output"),
        ("model_context_window_exceeded", "max_output"),
        ("refusal", "refusal"),
        ("pause_turn", "other"),
        ("something_new", "other"),
    ],
)
def test_stop_reasons(reason: str, stop: str) -> None:
    reader = EventReader("house/m")
    read(reader, events(START, end(reason), STOP))
    answer = reader.answer()
    assert answer is not None
    assert (answer.stop_reason, answer.message.parts) == (stop, ())


def test_what_is_not_known_is_left_alone_and_is_a_sign_of_life() -> None:
    reader = EventReader("house/m")
    body = events(
        START,
        ("brand_new_event", {"x": 1}),
        opened(0, type="server_tool_use", id="x", name="web"),
        delta(0, "input_json_delta", partial_json="{}"),
        delta(0, "citations_delta", citation={}),
        delta(9, "text_delta", text="to a block that was never opened"),
        closed(0),
        opened(1, type="text", text="given at once"),
        closed(1),
        end("end_turn"),
        STOP,
    )
    parts = read(reader, body)
    assert Alive() in parts
    answer = reader.answer()
    assert answer is not None
    assert answer.message.parts == (Text("given at once"),)


def test_an_error_event_in_the_middle() -> None:
    reader = EventReader("house/m")
    error = ("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(ModelError) as raised:
        read(reader, events(START, opened(0, type="text", text=""), delta(0, "text_delta", text="half"), error))
    assert raised.value.kind is ErrorKind.OVERLOADED


def test_an_answer_that_begins_anew_is_a_broken_one() -> None:
    """Nothing of the second half is shown: what was said of the first stands, and the model goes on from there."""
    half = (opened(0, type="text", text=""), delta(0, "text_delta", text="half"))
    reader = EventReader("house/m")
    read(reader, events(START, *half))
    with pytest.raises(ModelError) as raised:
        read(reader, events(START, *half, end("end_turn"), STOP))
    assert raised.value.kind is ErrorKind.NETWORK


def test_two_beginnings_before_anything_was_said_are_one() -> None:
    reader = EventReader("house/m")
    body = (START, START, opened(0, type="text", text=""), delta(0, "text_delta", text="all"), end("end_turn"), STOP)
    read(reader, events(*body, START, *body))
    answer = reader.answer()
    assert answer is not None
    assert answer.message.text == "all"


def test_index_0_for_every_block() -> None:
    reader = EventReader("house/m")
    blocks = [(opened(0, type="text", text=""), delta(0, "text_delta", text=text), closed(0)) for text in ("a", "b")]
    read(reader, events(START, *blocks[0], *blocks[1], end("end_turn"), STOP))
    answer = reader.answer()
    assert answer is not None
    assert answer.message.parts == (Text("a"), Text("b"))
