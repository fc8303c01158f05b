"""Pieces of plain words take a short way through directives, cutting and rendering: the result is that of the long one.

A text that is fed in one piece takes the long way, because nothing is known of it before.
"""

from hypothesis import example, given
from hypothesis import strategies as st

from bot.replies.directives import Directives
from bot.speech import spoken
from channels.markdown.parse import is_plain, parse
from channels.markdown.render import render
from channels.stream.chunker import Chunker

WORDS = (
    *"abN H9.,;:!?'-…_*~`[]()<>|#&/",
    *(
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "\r\n",
        " word",
        "word ",
        " No",
        " NO",
        "_REPLY",
        " NO_REPLY",
        "HEARTBEAT_OK",
        "é",
        "文",
    ),
    *(" and then,", " 1. ", "\n- ", "\n> ", "\n```\n", "\n~~~\n", "MEDIA: a.png", "\nMEDIA: ", "[[reply_to_current]]"),
    *(
        "[[",
        "]]",
        " &nbsp;",
        "<br>",
        "😀",
        "\u200b",
        "\u2028",
        "https://a.b",
        "$$",
        "<details>",
        "</details>",
        " 🔐",
        "/approve",
    ),
)
COMMENT = "\n\n<!-- -->"  # is not seen, and is no plain text
TOKENS = (
    " word",
    "word,",
    " NO",
    " NO_REPLY",
    "_REPLY",
    " HEART",
    "BEAT_OK",
    "\n",
    "\n\n",
    "[",
    "[reply_to_current]]",
    "`",
)
PIECE = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=4).map("".join)
PIECES = st.lists(PIECE, max_size=30) | st.lists(st.lists(st.sampled_from(TOKENS), max_size=3).map("".join), max_size=9)


@given(PIECES)
def test_directives_are_the_same_in_pieces_as_in_one(pieces: list[str]) -> None:
    parts, whole = Directives(), Directives()
    found = "".join([*map(parts.feed, pieces), parts.end()])
    text = whole.feed("".join(pieces)) + whole.end()
    assert (found, parts.files, parts.reply_to) == (text, whole.files, whole.reply_to)
    assert parts.written(found + "|") == whole.written(text + "|") == "".join(pieces) + "|"


@given(PIECES, st.sampled_from(["", "cut here", "```\ncode"]))
def test_blocks_are_the_same_in_pieces_as_in_one(pieces: list[str], after: str) -> None:
    parts, whole = Chunker(20, 64, 96, after, joined=True), Chunker(20, 64, 96, after, joined=True)
    blocks, text = [], ""
    for piece in pieces:
        blocks += parts.feed(piece)
        text += piece
    assert blocks == whole.feed(text)
    assert parts.rest() == whole.rest()
    assert blocks + parts.end() == blocks + whole.end()


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=9).map("".join))
@example("ne, two.\nThree: four (five)!\n\nSix – “seven” 8:9/1")
def test_plain_text_is_what_the_parser_would_make_of_it(rest: str) -> None:
    text = f"a{rest}"
    if not is_plain(text):
        return
    tokens = parse(text)[0]
    assert {one.type for one in tokens} == {"paragraph_open", "inline", "paragraph_close"}
    paragraphs = [one.children or [] for one in tokens if one.type == "inline"]
    assert {one.type for children in paragraphs for one in children} <= {"text", "softbreak"}
    shown = "\n\n".join("".join(one.content or "\n" for one in children) for children in paragraphs)
    assert shown == text == render(text, lambda url, words: True).text
    assert spoken(text) == spoken(text + COMMENT).removesuffix(COMMENT)


def test_what_has_a_mark_is_not_plain() -> None:
    assert is_plain("Words, and more words: 5 - 3 (two)!\nAnother line.\n\nAnother paragraph")
    for marked in (
        "a *b*",
        "a\n- b",
        "a\n1. b",
        "a\n---",
        "a  \nb",
        "a\n    b",
        "see http://a.b",
        "a \n\n\nb",
        "a &amp; b",
        "a ",
    ):
        assert not is_plain(marked), marked
