"""The chunker: limits, what was said, fences, graphemes, and that neither slicing nor continuing changes a cut."""

import random
import re
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from channels.markdown.render import render
from channels.outgoing import ReplyBlock
from channels.stream.chunker import Chunker
from channels.stream.outline import Cut
from channels.utf16 import units
from tests.examples import fewer
from tests.memory import held_by

PARSER = MarkdownIt("commonmark", {"html": False})


def chunk(text: str, low: int, high: int, after: str = "", step: int | None = None) -> list[ReplyBlock]:
    """All blocks of a text, fed in pieces of `step` characters."""
    chunker = Chunker(low, high, after=after)
    size = step or max(len(text), 1)
    blocks = [block for at in range(0, len(text), size) for block in chunker.feed(text[at : at + size])]
    return blocks + chunker.end()


def words(alphabet: str, most: int = 12) -> st.SearchStrategy[str]:
    return st.text(alphabet=alphabet, min_size=1, max_size=most)


WORD = st.one_of(
    words("abcdefghij"),
    words("abc.!?,"),
    words("漢字。！」", 30),
    words("😀👍🏽é́", 8),
    st.sampled_from(["👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "e\u0301" * 5, "`code`", "**bold**", "-", "#", "1.", ">", "[x]:", "x" * 150]),
)
LINE = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
CODE = st.lists(st.one_of(LINE, st.just(""), LINE.map(lambda line: "    " + line)), max_size=20)


@st.composite
def fenced(draw: st.DrawFn) -> str:
    marker = draw(st.sampled_from(["```", "~~~", "````", "~~~~~"]))
    info = draw(st.sampled_from(["", "py", " js"]))
    indent = " " * draw(st.integers(0, 3))
    # A code line must not end its own fence, nor look like another one.
    lines = [line for line in draw(CODE) if "`" not in line and "~" not in line]
    closing = draw(st.sampled_from([marker, marker + marker[0], marker + "  "]))
    return "\n".join([indent + marker + info, *(indent + line for line in lines), indent + closing])


PARAGRAPH = st.lists(LINE, min_size=1, max_size=6).map("\n".join)
DOCUMENT = st.lists(st.one_of(PARAGRAPH, PARAGRAPH, fenced()), max_size=8).map("\n\n".join)
LIMITS = st.tuples(st.integers(1, 200), st.integers(144, 400))


def visible(text: str) -> str:
    """What a reader sees: the text of all tokens, code marked by the fence it stands in."""
    found = []
    for token in PARSER.parse(text):
        if token.type == "fence":
            found += ["\x01" + word for word in token.content.split()]
        elif token.type == "inline":
            found += "".join(
                child.content if child.type in ("text", "code_inline") else " " for child in token.children or []
            ).split()
    return " ".join(found)


@fewer(50)
@given(DOCUMENT, LIMITS)
def test_blocks_fit_are_not_blank_and_join_to_what_was_fed(text: str, limits: tuple[int, int]) -> None:
    low, high = limits
    blocks = chunk(text, low, high, step=7)
    low = min(low, high * 2 // 3)
    for block in blocks:
        assert units(block.text) <= high
        assert block.text.strip()
    for block, behind in pairwise(blocks):
        assert units(block.said) >= low or behind.text.lstrip()[:3] in ("```", "~~~")
    said = "".join(block.said for block in blocks)
    assert text.startswith(said)
    assert re.fullmatch(r"\s*[`~]*\s*", text[len(said) :])
    if text and text[-1] not in "`~ ":
        assert said == text


@fewer(50)
@given(DOCUMENT, LIMITS, st.integers(1, 40))
def test_slicing_of_the_stream_does_not_matter(text: str, limits: tuple[int, int], step: int) -> None:
    assert chunk(text, *limits, step=step) == chunk(text, *limits)


@fewer(50)
@given(DOCUMENT, LIMITS)
def test_every_block_closes_the_fences_it_opens(text: str, limits: tuple[int, int]) -> None:
    for block in chunk(text, *limits):
        tokens = PARSER.parse(block.text + "\n\nSENTINEL")
        assert tokens[-2].content == "SENTINEL", block.text
        assert tokens[-1].type == "paragraph_close"


@given(
    st.lists(
        st.one_of(words("abc .\n", 200), st.sampled_from(["👨‍👩‍👧‍👦", "e\u0301\u0302", "🇩🇪", "👍🏽", "각", "\r\n"]))
    )
)
def test_no_grapheme_is_cut(parts: list[str]) -> None:
    text = "".join(parts)
    ends = {0}
    for grapheme in regex.finditer(r"\X", text):
        ends.add(grapheme.end())
    at = 0
    for block in chunk(text, 40, 64):
        at += len(block.said)
        assert at in ends or at == len(text)


@fewer(50)
@given(DOCUMENT, LIMITS)
def test_an_answer_cut_after_any_block_goes_on_as_if_it_had_not_been(text: str, limits: tuple[int, int]) -> None:
    blocks = chunk(text, *limits)
    for number in range(1, len(blocks)):
        said = "".join(block.said for block in blocks[:number])
        assert chunk(text[len(said) :], *limits, after=said) == blocks[number:]


@fewer(50)
@given(st.lists(st.one_of(PARAGRAPH.filter(lambda p: "[x]:" not in p), fenced()), max_size=8).map("\n\n".join), LIMITS)
def test_nothing_visible_is_lost(text: str, limits: tuple[int, int]) -> None:
    blocks = chunk(text, *limits)
    seen = "".join(visible(block.text) for block in blocks)

    def plain(found: str) -> str:
        # an item that goes on without its marker begins with a comment, which is shown to nobody
        return re.sub(r"<!---->|[\s*`\x01\\#>-]|\d\.", "", found)

    assert plain(seen) == plain(visible(text))


# -- against a naive chunker: everything worked out anew at every place, no fences, one letter one unit --------------


def naive(text: str, low: int, high: int) -> list[str]:
    """Texts of the blocks of a text without fences, with ASCII words shorter than the limit."""
    low = min(low, high * 2 // 3)
    blocks = []
    start = len(text) - len(text.lstrip())
    middle = False
    while start < len(text.rstrip()):
        starts = [m.start() for m in re.finditer(r"(?<=\s)\S", text) if m.start() > start]
        cut, best = len(text), 9
        for place in starts:
            gap = re.search(r"\s+\Z", text[:place])
            assert gap is not None
            if middle + len(text[start:place].rstrip()) > high:
                break
            if place - start < low:
                continue
            newlines = gap[0].count("\n")
            rank = 0 if newlines > 1 else 1 if newlines else 2 if re.search(r"(?<!\d)[.!?]\s+\Z", text[:place]) else 3
            if best > 0 and rank <= best:
                cut, best = place, rank
        rest = middle + len(text[start:].rstrip())
        if best > 0 and rest <= high:
            cut = len(text)
        body = text[start:cut].rstrip()
        blocks.append(body)
        middle = text[:cut].rsplit("\n", 1)[-1].strip() != ""
        start = cut
    return blocks


NAIVE_TEXT = st.lists(
    st.tuples(words("abc", 9), st.sampled_from([" ", " ", " ", ". ", "! ", "1. ", "\n", ".\n", "\n\n", "\n\n\n"])),
    max_size=120,
).map(lambda pairs: "".join(word + gap for word, gap in pairs))


@given(NAIVE_TEXT, st.integers(1, 90), st.integers(64, 120))
@example("a" * 60 + "\n" + "b", 1, 64)
def test_it_agrees_with_a_naive_one(text: str, low: int, high: int) -> None:
    assert [block.text for block in chunk(text, low, high, step=3)] == naive(text, low, high)


# -- single rules ---------------------------------------------------------------------------------------------------


def test_a_paragraph_end_past_the_minimum_is_taken_as_soon_as_the_next_begins() -> None:
    chunker = Chunker(10, 64)
    assert chunker.feed("first paragraph\n\n") == []
    assert chunker.feed("s") == [ReplyBlock("first paragraph", "first paragraph\n\n")]
    assert chunker.end() == [ReplyBlock("s", "s")]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a" * 50 + "\nb c. " + "d" * 30, "a" * 50),
        ("a" * 50 + " b. c " + "d" * 30, "a" * 50 + " b."),
        ("a" * 50 + " b c " + "d" * 30, "a" * 50 + " b c"),
        ("a" * 90, "a" * 64),
        ("漢" * 50 + "。" + "字" * 30, "漢" * 50 + "。"),
        ("a" * 50 + " 2. c " + "d" * 30, "a" * 50 + " 2. c"),
    ],
)
def test_line_before_sentence_before_word_before_hard_cut(text: str, first: str) -> None:
    assert chunk(text, 40, 64)[0].text == first


def test_a_fence_is_closed_and_opened_again_with_its_info_string() -> None:
    code = "\n".join(f"line {number} of code" for number in range(8))
    first, second = chunk(f"```python\n{code}\n```\n", 60, 128)
    assert first.text.startswith("```python\nline 0")
    assert first.text.endswith("\n```")
    assert second.text.startswith("```python\nline ")
    assert second.text.endswith("line 7 of code\n```")


def test_a_break_before_the_fence_is_better_than_one_inside() -> None:
    text = "word " * 20 + "\n```\n" + "code\n" * 12 + "```"
    assert chunk(text, 80, 144)[0].text == ("word " * 20).strip()


def test_code_in_a_list_goes_on_in_the_item_without_its_marker() -> None:
    code = "\n".join(f"      call({number})" for number in range(13))
    blocks = chunk(f"- a\n    - b\n\n      ```js\n{code}\n      ```\n    - c\n    - d", 60, 160)
    assert [block.text.count("call(") for block in blocks] == [9, 4]
    for block in blocks[1:]:
        assert block.text.startswith("- <!---->\n    - <!---->\n      ```js\n      call(")
        assert render(block.text, lambda url, words: True).text.startswith("call(")
    assert render(blocks[-1].text, lambda url, words: True).text.endswith("   ◦ c\n   ◦ d")


def test_a_quoted_fence_is_quoted_again() -> None:
    blocks = chunk("> ```py\n" + "> code line\n" * 20 + "> ```\n> after", 60, 144)
    assert len(blocks) > 1
    for block in blocks[1:]:
        assert block.text.startswith("> ```py\n> code")
    assert blocks[-1].text.endswith("> ```\n> after")


def test_text_from_within_a_line_does_not_begin_a_list() -> None:
    blocks = chunk("a" * 63 + " - b", 40, 64)
    assert [block.text for block in blocks] == ["a" * 63, "<!---->- b"]


def test_a_cut_answer_inside_a_fence_is_continued_inside_it() -> None:
    assert chunk("more\n```\nend", 1, 200, after="text\n```py\ncode\n") == [
        ReplyBlock("```py\nmore\n```\nend", "more\n```\nend")
    ]


def test_a_closing_line_that_the_block_before_has_already_written_is_no_block() -> None:
    assert chunk("```\n", 1, 200, after="```py\ncode\n") == []
    assert chunk("```\nend", 1, 200, after="```py\ncode\n") == [ReplyBlock("end", "```\nend")]


def test_a_limit_too_small_for_fences_is_kept_all_the_same() -> None:
    text = "```py\nsome code\n```\nand words"
    for high in range(16, 64):
        blocks = chunk(text * 3, high, high)
        assert all(units(block.text) <= high for block in blocks)
        assert "".join(block.said for block in blocks) == text * 3


@pytest.mark.parametrize("text", ["", " ", "\n\n \n", "\t"])
def test_white_space_alone_is_no_block(text: str) -> None:
    assert chunk(text, 1, 64) == []


def test_white_space_belongs_to_the_block_before_it_and_at_the_start_to_the_first() -> None:
    assert chunk("\n\none\n\n\ntwo \n", 4, 64) == [
        ReplyBlock("one", "\n\none\n\n\n"),
        ReplyBlock("two", "two \n"),
    ]


def test_a_grapheme_longer_than_the_limit_is_cut_but_no_pair_is() -> None:
    text = "👍" + "\u0301" * 300
    blocks = chunk(text, 1, 64)
    assert "".join(block.said for block in blocks) == text
    assert all(units(block.text) <= 64 for block in blocks)


def test_the_limit_has_a_least_value() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        Chunker(1, 15)


def test_what_is_held_does_not_grow_with_the_length_of_the_answer() -> None:
    """All work is on the buffer, so a bounded buffer bounds the work for each character."""
    rng = random.Random(7)
    text = " ".join("x" * rng.randint(1, 9) for _ in range(20_000))
    chunker = Chunker(800, 1200)
    most = empty = held_by(chunker)
    for at in range(0, len(text), 5):
        chunker.feed(text[at : at + 5])
        most = max(most, held_by(chunker))
    assert most <= empty + 2 * 1200


# Every cut takes something away from what is left: no text keeps the chunker cutting for ever.

PIECES = [
    *("_", "</details>", "<details>", "\u2028", "[", "]", "(", ")", ":", "H", ".", ",", "!", "~", "|", "\t", "#", "&"),
    *("$$", "\n", "\n\n", "<", ">", "word", "`", "```", "```py\n", "*", "**", "-", "\xa0", "\u3000", "😀", "。", "\r"),
    *(" ", "  ", "- item\n", "> ", "| a | b |\n|---|---|\n", "x" * 20, "[w][l]", "\n[l]: http://x.y\n"),
]
# Texts at which it did not end.
ENDLESS = (
    (
        8,
        24,
        48,
        "cut here",
        "_</details>\u2028  [  :HH.,HEARTBEAT_OK!MEDIA: a.png~|(N\t)#_REPLY/approve </details>&$$\nMEDIA: a",
    ),
    (16, 16, 16, "> q\n> ", "EAT_OK,😀\r<.\u00a0[~" + "x" * 20),
)


class Counting(Chunker):
    """Fails instead of going on for ever."""

    cuts = 0

    def _cut(self, cut: Cut) -> list[ReplyBlock]:
        self.cuts += 1
        assert self.cuts < 500, "it does not end"
        return super()._cut(cut)


def cut(least: int, most: int, whole: int, after: str, text: str, *, joined: bool, size: int) -> str:
    """What all blocks of a text say, fed in pieces of a size."""
    chunker = Counting(least, most, whole, after, joined=joined)
    blocks = [block for at in range(0, len(text), size) for block in chunker.feed(text[at : at + size])]
    return "".join(block.said for block in [*blocks, *chunker.end()])


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(("least", "most", "whole", "after", "text"), ENDLESS, ids=["unusual", "hard"])
def test_white_space_that_is_cut_off_does_not_come_back(
    least: int, most: int, whole: int, after: str, text: str, joined: bool
) -> None:
    assert text.startswith(cut(least, most, whole, after, text, joined=joined, size=len(text)))


@pytest.mark.parametrize("seed", range(60))
def test_any_text_comes_to_its_end(seed: int) -> None:
    """The seed is the name of the case."""
    chance = random.Random(seed)
    text = "".join(chance.choices(PIECES, k=chance.randrange(1, 60)))
    limits = chance.choice([(8, 24, 48), (16, 16, 16), (20, 64, 96), (30, 60, 200)])
    after = chance.choice(["", "cut here", "```py\nx", "> q\n> "])
    said = cut(*limits, after, text, joined=chance.random() < 0.5, size=chance.randrange(1, 12))
    assert text.startswith(said)
