"""Blocks that are put into quotations for what they show, whatever their markup is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.markdown.formatted import EntityType
from channels.markdown.quoting import outside_code, quoted
from channels.markdown.render import render

WORD = "stop"
PIECES = ["stop", "st", "op", "**", "_", "`", "```\n", "\n", "\n\n", "- ", "1. ", "> ", "# ", "| a | b |\n|-|-|\n"]
PIECES += ["&#115;", "<!-- x -->", "[", "](http://a.b)", "<details>", "</details>", "\r", "    ", "words", "$$\n"]


def shown(markdown: str) -> list[str]:
    """What of a text is shown neither in a quotation nor in a block of code, a line each."""
    found = render(markdown, lambda url, words: True)
    quiet = {EntityType.PRE, EntityType.BLOCKQUOTE, EntityType.EXPANDABLE_BLOCKQUOTE}
    hidden = {n for start, end, style in found.entities if style.type in quiet for n in range(start, end)}
    return "".join(" " if n in hidden else char for n, char in enumerate(found.text)).split("\n")


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("one\n\nstop it\nhere\n\ntwo", "one\n\n> stop it\n> here\n\ntwo"),
        ("- one\n- s**to**p\n\ntwo", "> - one\n> - s**to**p\n> \ntwo"),
        ("s&#116;op", "> s&#116;op"),
        ("st<!-- no -->op", "> st<!-- no -->op"),
        ("[st](http://a.b)[op](http://a.b)", "> [st](http://a.b)[op](http://a.b)"),
        ("[words](<stop it>)", "> [words](<stop it>)"),
        ("![stop](http://a.b)", "> ![stop](http://a.b)"),
        ("`stop`", "> `stop`"),
        ("# stop\nwords", "> # stop\nwords"),
        ("| a |\n|-|\n| stop |", "> | a |\n> |-|\n> | stop |"),
        ("[a]: http://a.b 'stop'", "> [a]: http://a.b 'stop'"),
        ("one\r\rstop", "one\n\n> stop"),
        (
            "<details><summary>a</summary>\nb\n</details> stop",
            "> <details><summary>a</summary>\n> b\n> </details> stop",
        ),
    ],
)
def test_what_shows_the_word_is_quoted(markdown: str, expected: str) -> None:
    assert quoted(markdown, lambda words: WORD in words) == expected
    assert not any(WORD in line for line in shown(expected))


@pytest.mark.parametrize(
    "markdown", ["", "words", "```\nstop\n```", "    stop", "> stop", "a\r\nb", "- a\n\n  ~~~\n  stop\n  ~~~"]
)
def test_the_rest_stays_as_it_is(markdown: str) -> None:
    assert quoted(markdown, lambda words: WORD in words) == markdown


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_of_it_is_seen_outside_of_quotations_and_code(markdown: str) -> None:
    once = quoted(markdown, lambda words: WORD in words)
    assert not any(WORD in line for line in shown(once))
    assert quoted(once, lambda words: WORD in words) == once


def test_lines_outside_of_code_are_changed() -> None:
    markdown = "a\n\n```\na\n```\n\n- a\n\n  ```\n  a\n  ```\n\n      a"
    changed = "b\n\n```\na\n```\n\n- b\n\n  ```\n  a\n  ```\n\n      a"
    assert outside_code(markdown, lambda line: line.replace("a", "b")) == changed
