"""Whole answers: what people see of the blocks is what they would have seen of the whole, on every platform."""

from itertools import pairwise
from types import ModuleType

import pytest

from channels.discord import render as discord
from channels.markdown.render import render
from channels.outgoing import ReplyBlock
from channels.slack import render as slack
from channels.stream.chunker import Chunker
from channels.telegram import render as telegram
from channels.utf16 import units
from tests.channels.markdown.reading import Seen, as_meant
from tests.channels.stream.answers import ANSWERS

LIMITS = ((800, 1200, 4000), (200, 300, 1900), (1900, 1900, 1900))


def blocks_of(text: str, limits: tuple[int, int, int], step: int = 0, after: str = "") -> list[ReplyBlock]:
    chunker = Chunker(*limits, after=after)
    step = step or max(len(text), 1)
    blocks = [block for at in range(0, len(text), step) for block in chunker.feed(text[at : at + step])]
    return blocks + chunker.end()


def seen(markdown: str) -> Seen:
    return as_meant(render(markdown, lambda url, words: True))


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ANSWERS)
def test_people_see_of_the_blocks_what_they_would_have_seen_of_the_whole(
    name: str, limits: tuple[int, int, int]
) -> None:
    text = ANSWERS[name]
    blocks = blocks_of(text, limits)
    assert [one for block in blocks for one in seen(block.text)] == seen(text)
    assert "".join(block.said for block in blocks) == text
    assert all(units(block.text) <= limits[2] for block in blocks)
    assert blocks_of(text, limits, step=3) == blocks


@pytest.mark.parametrize("name", ANSWERS)
def test_one_that_goes_on_behind_any_block_looks_the_same(name: str) -> None:
    limits, text = (200, 300, 1900), ANSWERS[name]
    blocks = blocks_of(text, limits)
    for number in range(1, len(blocks), 3):
        after = "".join(block.said for block in blocks[:number])
        rest = blocks_of(text[len(after) :], limits, after=after)
        assert [one for block in rest for one in seen(block.text)] == [
            one for block in blocks[number:] for one in seen(block.text)
        ]


@pytest.mark.parametrize("name", ANSWERS)
def test_no_message_shows_markup(name: str) -> None:
    for block in blocks_of(ANSWERS[name], LIMITS[0]):
        for body in (*telegram.bodies(block.text), *slack.bodies(block.text)):
            assert not any(mark in body for mark in ("|-", "](", "<!--", "$$", "<details", "## "))
        assert all("<!--" not in body for body in discord.bodies(block.text))
        meant = as_meant(render(block.text, lambda url, words: True))
        assert "**" not in "".join(char for char, _ in meant)


def test_what_fits_one_message_of_the_platform_stays_whole() -> None:
    for name, least in (("code", "def function_19"), ("report", "| 10:39")):
        assert least in blocks_of(ANSWERS[name], LIMITS[0])[0].text


def test_a_table_that_is_cut_repeats_its_header() -> None:
    blocks = blocks_of(ANSWERS["report"], LIMITS[1])
    tables = [block.text for block in blocks if "web-" in block.text]
    assert len(tables) > 1
    assert all("| Time | Host | What was seen | Who |\n|:-|-:|---|---|\n| 10:" in text for text in tables)


@pytest.mark.parametrize("step", [1, 7, 400])
@pytest.mark.parametrize("most", [1900, 4000])
@pytest.mark.parametrize("columns", [5, 16])
def test_a_wide_table_keeps_its_header_in_small_blocks(columns: int, most: int, step: int) -> None:
    """Also where the header alone is longer than a block."""
    header = " | ".join(f"Column {column} that says what stands below it" for column in range(columns))
    rows = [" | ".join(f"cell {column} of row {number}" for column in range(columns)) for number in range(40)]
    lines = [f"| {line} |" for line in (header, " | ".join(["---"] * columns), *rows)]
    text = "\n".join(("Here is the table:", "", *lines, "", "That is all."))
    blocks = blocks_of(text, (250, 500, most), step)
    assert "".join(block.said for block in blocks) == text
    tables = [block.text for block in blocks if "cell 0" in block.text]
    assert len(tables) > 1
    assert all("\n".join(lines[:2]) in table for table in tables)
    assert [line for table in tables for line in table.split("\n") if "cell 0" in line] == lines[2:]


def test_a_long_fence_is_cut_at_an_empty_line() -> None:
    blocks = blocks_of(ANSWERS["long code"], LIMITS[1])
    inside = [block for block in blocks if "def function" in block.text]
    assert len(inside) > 2
    for block, behind in pairwise(inside):
        assert block.said.endswith("\n\n")
        assert behind.text.startswith("```python\ndef ")


def test_a_heading_stays_with_what_follows() -> None:
    first, *_ = blocks_of("a " * 395 + "\n\n## Heading\n\n" + "b " * 800, LIMITS[0])
    assert first.text.endswith("b b")


def test_what_is_not_known_yet_does_not_depend_on_the_slices() -> None:
    text = "so *this " + "word " * 310 + "\n\nend"
    assert blocks_of(text, LIMITS[0], step=3) == blocks_of(text, LIMITS[0])


def test_numbers_go_on_where_all_are_written_as_one() -> None:
    texts = [render(block.text, lambda url, words: True).text for block in blocks_of(ANSWERS["ones"], LIMITS[1])]
    numbers = [int(line.partition(".")[0]) for text in texts for line in text.split("\n") if "." in line]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize(
    ("fed", "rest"),
    [
        ("a **bold", "a **bold**"),
        ("```py\ncode", "```py\ncode\n```"),
        ("- a\n  - *b", "- a\n  - *b*"),
        ("a `code", "a `code`"),
        ("", ""),
    ],
)
def test_the_rest_stands_alone(fed: str, rest: str) -> None:
    chunker = Chunker(800, 1200, 4000)
    chunker.feed(fed)
    assert chunker.rest() == rest


@pytest.mark.parametrize("unit", ["`", "x", "*a ", "> ", "| a |\n", "漢", "\n", "  - a\n", "_a*b~~", "$$\n", "- "])
def test_odd_texts_are_cut_within_the_limits(unit: str) -> None:
    text = unit * (6000 // len(unit))
    blocks = blocks_of(text, LIMITS[0], step=97)
    assert text.startswith("".join(block.said for block in blocks))
    assert all(units(block.text) <= 4000 for block in blocks)
    assert blocks_of(text, LIMITS[0]) == blocks


PROSE = "\n\n".join(
    f"Paragraph {n}. " + "It says what has to be said, in plain words. " * (3 + n % 5) for n in range(40)
)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(("channel", "most"), [(telegram, 4000), (discord, 1904), (slack, 3600)])
def test_each_block_is_one_message_of_its_platform(name: str, channel: ModuleType, most: int) -> None:
    chunker = Chunker(800, 1200, most, joined=True, messages=lambda text: len(channel.bodies(text)))
    blocks = [*chunker.feed(ANSWERS[name]), *chunker.end()]
    assert [len(channel.bodies(block.text)) for block in blocks] == [1] * len(blocks)
    assert "".join(block.said for block in blocks) == ANSWERS[name]
    assert "web-" not in ANSWERS[name] or all("| Time |" in one.text for one in blocks if "web-" in one.text)


def test_few_messages_that_are_nearly_full() -> None:
    chunker = Chunker(800, 1200, 4000, joined=True)
    sizes = [units(block.text) for block in (*chunker.feed(PROSE[:9000]), *chunker.end())]
    assert len(sizes) == 4
    assert 800 <= sizes[0] <= 1200
    assert min(sizes[1:-1]) > 3600


@pytest.mark.parametrize("name", ANSWERS)
def test_a_pause_ends_a_block_only_where_nothing_is_cut(name: str) -> None:
    text = ANSWERS[name]
    chunker = Chunker(800, 1200, 4000, joined=True)
    blocks: list[ReplyBlock] = []
    paused: list[ReplyBlock] = []
    for at in range(0, len(text), 50):
        blocks += chunker.feed(text[at : at + 50])
        made = chunker.pause(300)
        blocks, paused = blocks + made, paused + made
    blocks += chunker.end()
    assert "".join(block.said for block in blocks) == text
    assert [one for block in blocks for one in seen(block.text)] == seen(text)
    assert all(block.text.count("```") % 2 == 0 and block.said.endswith("\n") for block in paused)
    assert paused or name in ("report", "code", "cjk", "emphasis", "links")


def test_a_pause_waits_for_what_stays_whole() -> None:
    for kept in (
        "```py\n" + "call()\n\n" * 20,
        "| a | b |\n|-|-|\n" + "| c | d |\n" * 20,
        "<details>\n" + "a\n\n" * 20,
    ):
        chunker = Chunker(80, 120, 4000, joined=True)
        chunker.feed("It begins so.\n\n" + kept)
        assert [block.text for block in chunker.pause(1)] == ["It begins so."]
        assert chunker.pause(1) == []


def test_what_is_cut_anyway_does_not_leave_a_few_words_alone() -> None:
    first, *_ = blocks_of("Look:\n\n| a | b |\n|-|-|\n" + "| some words | more |\n" * 100, (800, 1200, 1900))
    assert "some words" in first.text


def test_a_line_that_begins_with_spaces_does_not_end_the_code_of_an_item() -> None:
    text = "1. a\n\n   ```py\n" + "   one()\n\n" * 300 + "   ```\n2. b"
    for size in range(1190, 1210):
        for block in blocks_of(text, (800, size, 4000)):
            assert block.text.count("```") % 2 == 0


def test_a_long_formula_is_cut_as_code() -> None:
    blocks = blocks_of("\\[\n" + "x_1 = \\frac{a}{b} \\\\\n" * 150 + "\\]", (800, 1200, 1900))
    assert len(blocks) == 2
    assert all(block.text.startswith("\\[\nx_1") and block.text.endswith("\\\\\n\\]") for block in blocks)
