"""Whatever bytes come, a reader gives well-typed parts or a ModelError, and shows exactly what its answer holds."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.errors import ModelError
from agent.message import Text, Thinking
from agent.models import anthropic, failures, openai_chat, openai_responses
from agent.models.base import Answer, StreamPart, TextDelta, ThinkingDelta
from agent.models.openai_chat import ChunkReader
from agent.models.sdk import AnswerReader
from tests.agent.models import test_anthropic_answer, test_openai_answer, test_responses_answer
from tests.agent.models.makers import chunks, read
from tests.agent.models.test_openai_answer import delta

_part: TypeAdapter[StreamPart] = TypeAdapter(StreamPart)
READERS: dict[str, Callable[[], AnswerReader]] = {
    "anthropic": lambda: anthropic.EventReader("house/m"),
    "openai": lambda: openai_chat.ChunkReader("house/m", set(), lambda: "made"),
    "responses": lambda: openai_responses.EventReader("house/m"),
}
BODIES = {
    "anthropic": test_anthropic_answer.BODY,
    "openai": test_openai_answer.BODY,
    "responses": test_responses_answer.BODY,
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def fields(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a JSON value, its own included."""
    found = [at]
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found += fields(inner, (*at, key))
    return found


def replaced(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    if not at:
        return by
    copy = value.copy()
    copy[at[0]] = replaced(value[at[0]], at[1:], by)
    return copy


@st.composite
def odd_bodies(draw: st.DrawFn, body: bytes) -> bytes:
    """A whole answer in which some values, anywhere, are others, and some events come twice or not at all."""
    found = []
    for event in body.decode().removesuffix("\n\n").split("\n\n"):
        head, _, data = event.rpartition("data: ")
        for _ in range(draw(st.sampled_from([1] * 12 + [0, 2]))):
            if data.startswith("{") and draw(st.integers(0, 3)) == 0:
                value = json.loads(data)
                value = replaced(value, draw(st.sampled_from(fields(value))), draw(anything))
                found.append(f"{head}data: {json.dumps(value)}\n\n")
            else:
                found.append(f"{event}\n\n")
    return "".join(found).encode()


def hold(name: str, body: bytes) -> None:
    reader = READERS[name]()
    try:
        parts = read(reader, body)
        answer = reader.answer()
    except ModelError:
        return
    for part in (*parts, *([answer] if answer else [])):
        _part.validate_python(part, strict=True)
    if answer is not None:
        assert isinstance(answer, Answer)
        assert answer.message.text == "".join(part.text for part in parts if isinstance(part, TextDelta))
        thought = "".join(part.text for part in parts if isinstance(part, ThinkingDelta))
        assert thought == "".join(part.text for part in answer.message.parts if part.type == "thinking")


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("odd", [None, True, 7, "x", ["x"], {"x": "x"}], ids=repr)
def test_an_odd_value_in_each_field(name: str, odd: Any) -> None:
    events = BODIES[name].decode().removesuffix("\n\n").split("\n\n")
    for number, event in enumerate(events):
        head, _, data = event.rpartition("data: ")
        value = json.loads(data) if data.startswith("{") else None
        for at in fields(value):
            changed = f"{head}data: {json.dumps(replaced(value, at, odd))}"
            hold(name, "".join(f"{one}\n\n" for one in (*events[:number], changed, *events[number + 1 :])).encode())


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_any_value_in_any_field(name: str, data: st.DataObject) -> None:
    hold(name, data.draw(odd_bodies(BODIES[name])))


@pytest.mark.parametrize("name", READERS)
@given(at=st.integers(0, 3000), junk=st.binary(max_size=20), rest=st.integers(0, 3000))
def test_any_bytes_anywhere(name: str, at: int, junk: bytes, rest: int) -> None:
    body = BODIES[name]
    hold(name, body[: at % len(body)] + junk + body[rest % len(body) :])


@pytest.mark.parametrize("name", READERS)
def test_json_without_an_end(name: str) -> None:
    with pytest.raises(ModelError):
        read(READERS[name](), b"data: " + b"[" * 200_000 + b"\n\n")


@given(payload=anything, status=st.none() | st.integers(300, 600), wait=st.text(max_size=40))
def test_any_error_payload(payload: Any, status: int | None, wait: str) -> None:
    for found in (payload, {"error": payload}, {"error": {"message": payload, "code": payload, "type": payload}}):
        error = failures.of_payload(found, (), status, {"retry-after": wait, "date": wait})
        assert isinstance(error.detail, str)


@pytest.mark.parametrize("date", ["Wed, 21 Oct 99999 07:28:00 GMT", "1 Jan 0 99:99:99 +9999999999", "0, 0 0 0 0:0:0 0"])
def test_odd_dates_to_wait_for(date: str) -> None:
    failures.of_payload({}, (), 429, {"retry-after": date, "date": date})


# Reasoning that servers send as words: at the beginning of an answer it is thinking, elsewhere words.


def answered(text: str, size: int, **end: Any) -> tuple[str, str]:
    """The reasoning and the words of an answer whose text comes in pieces of so many characters."""
    reader = ChunkReader("house/m", (), lambda: "made")
    pieces = [delta(content=text[at : at + size]) for at in range(0, len(text), size)]
    parts = read(reader, chunks(*pieces, delta("stop", **end), "[DONE]"))
    answer = reader.answer()
    assert answer is not None
    thought = "".join(part.text for part in parts if isinstance(part, ThinkingDelta))
    words = "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert thought == "".join(part.text for part in answer.message.parts if isinstance(part, Thinking))
    assert words == "".join(part.text for part in answer.message.parts if isinstance(part, Text))
    return thought, words


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize(
    ("text", "thought", "words"),
    [
        ("<think>\nHm, 2 < 3.\n</think>\n\nYes.", "Hm, 2 < 3.\n", "Yes."),
        ("\n<think></think>Yes.", "", "Yes."),
        ("<thinking>Hm </think> no</thinking>Yes.", "Hm </think> no", "Yes."),
        ("Use <think>this</think>.", "", "Use <think>this</think>."),
        ("<thin", "", "<thin"),
        ("<table>", "", "<table>"),
        ("  Indented", "", "  Indented"),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    ],
)
def test_tags_cut_anywhere(text: str, thought: str, words: str, size: int) -> None:
    assert answered(text, size) == (thought, words)


@pytest.mark.parametrize("size", [1, 4, 100])
def test_without_an_end_all_of_it_is_reasoning(size: int) -> None:
    for text in ("<think>Never closed", "<think>Almost closed</thi"):
        reader = ChunkReader("house/m", (), lambda: "made")
        pieces = [delta(content=text[at : at + size]) for at in range(0, len(text), size)]
        read(reader, chunks(*pieces, delta("stop"), "[DONE]"))
        assert (answer := reader.answer()) is not None
        assert answer.message.parts == (Thinking(text.removeprefix("<think>")),)
