"""Reasoning that servers send as words: at the beginning of an answer it is thinking, elsewhere words."""

from typing import Any

import pytest

from agent.message import Text, Thinking
from agent.models.base import TextDelta, ThinkingDelta
from agent.models.openai_chat import ChunkReader
from tests.agent.models.makers import chunks, read
from tests.agent.models.test_openai_answer import delta


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
