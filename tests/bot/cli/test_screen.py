"""Pieces rendered for a terminal."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.cli.terminal.screen import Screen
from bot.cli.terminal.view import Live, Piece, Tone, clean

STYLE = re.compile(r"\x1b\[[0-9;]*m")
ANSWER = """\
# Title

Some **bold** and `code`.
A line of its own.

```python
def f(x):
\treturn x
```

- one
- [words](https://example.org/a)
"""


def plain(rendered: str) -> str:
    return STYLE.sub("", rendered)


def test_markdown_becomes_text_for_a_terminal() -> None:
    shown = plain(Screen("256").piece(Piece(Tone.SAID, ANSWER), 60))
    assert shown.splitlines() == [
        " " * 27 + "Title",
        "",
        "Some bold and code.",
        "A line of its own.",
        "",
        "",
        " def f(x):",
        "     return x",
        "",
        "",
        " • one",
        " • words (https://example.org/a)",
        "",
    ]


def test_without_colours_there_are_no_codes_for_them() -> None:
    shown = Screen(None).piece(Piece(Tone.SAID, ANSWER), 60)
    assert "\x1b[3" not in shown


@given(st.text(max_size=200), st.sampled_from(Tone), st.integers(1, 80))
def test_no_text_moves_the_cursor(text: str, tone: Tone, width: int) -> None:
    screen = Screen("truecolor")
    for shown in (screen.piece(Piece(tone, f"x{text}"), width), screen.piece(Piece(Tone.ASKED, text), width)):
        rest = plain(shown)
        assert clean(rest) == rest
    live = Live(text, "", (text,), 0)
    assert "\x1b" not in plain(screen.live(live, width, 10, 0))


@given(st.text(), st.integers(1, 200))
def test_what_is_plain_is_shown_to_its_last_word(text: str, width: int) -> None:
    shown = plain(Screen(None).piece(Piece(Tone.ASIDE, text), width))
    assert "".join(shown.split()) == "".join(clean(text).expandtabs(8).split())


def test_a_live_answer_shows_its_end_in_the_room_there_is() -> None:
    screen = Screen(None)
    text = "\n\n".join(f"Paragraph {number}." for number in range(100))
    lines = screen.live(Live(text, "", (), 0), 60, 10, 0).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "Paragraph 99."
    very_long = "word " * 50_000
    assert len(screen.live(Live(very_long, "", (), 0), 60, 10, 0).splitlines()) == 10


def test_thinking_and_tools_are_shown_with_the_time_that_has_passed() -> None:
    thinking = "\n".join(f"thought {number}" for number in range(9))
    shown = Screen(None).live(Live("", thinking, ("read AGENTS.md",), 1_000), 60, 20, 8_500)
    assert plain(shown).splitlines() == [
        "thought 6",
        "thought 7",
        "thought 8",
        "  … read AGENTS.md",
        "thinking … 7 s",
    ]


def test_lines_of_tools_stand_together_and_apart_from_the_rest() -> None:
    screen = Screen(None)
    pieces = [
        Piece(Tone.SAID, "I look."),
        Piece(Tone.TOOL, "read a"),
        Piece(Tone.FAILED_TOOL, "read b: no"),
        Piece(Tone.SAID, "Done."),
    ]
    shown = "".join(screen.piece(piece, 60) for piece in pieces)
    assert plain(shown) == "I look.\n\n  ✓ read a\n  ✗ read b: no\n\nDone.\n\n"
