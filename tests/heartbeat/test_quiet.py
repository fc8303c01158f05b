"""The rules of silence: what is quiet, what is left of the rest, the same in ordinary answers however they stream."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.replies.directives import Directives
from heartbeat.quiet import alert, is_silent

MOST = 300
LONG = "The disk is **full**.\n\n    df -h\n\n- one\n- two " + "x" * MOST

SILENT = [
    "NO_REPLY",
    " no_reply\n",
    "`NO_REPLY`.",
    "HEARTBEAT_OK",
    "heartbeat_ok!",
    "**HEARTBEAT_OK**",
    "***HEARTBEAT_OK***",
    "**`HEARTBEAT_OK`**",
    '"HEARTBEAT_OK"',
    "HEARTBEAT_OK…",
    "HEARTBEAT_OK ✅",
    "# HEARTBEAT_OK",
    "> HEARTBEAT_OK",
    "- HEARTBEAT_OK\n",
    "```\nHEARTBEAT_OK\n```",
    "```text\nHEARTBEAT_OK\n```",
    r"HEARTBEAT\_OK",
    "<p>HEARTBEAT_OK</p>",
    '<p class="x"><b>HEARTBEAT_OK</b></p>',
    "&nbsp;HEARTBEAT_OK&nbsp;",
    "HEARTBEAT_OK<br/>",
    "HEARTBEAT_OK\n\nHEARTBEAT_OK",
    "NO_REPLY HEARTBEAT_OK",
    '{"action": "NO_REPLY"}',
    '```json\n{"action": "HEARTBEAT_OK"}\n```',
]

# What a model writes, and what of it is left when the token at its edge is taken away.
AT_AN_EDGE = [
    (f"HEARTBEAT_OK\n\n{LONG}", LONG),
    (rf"HEARTBEAT\_OK. {LONG}", LONG),
    (f"{LONG}\n\nHEARTBEAT_OK", LONG),
    (f"**HEARTBEAT_OK**\n\n{LONG}", LONG),
    (f"**HEARTBEAT_OK.** {LONG}", LONG),
    (f"(HEARTBEAT_OK) {LONG}", LONG),
    (f"HEARTBEAT_OK, {LONG}", LONG),
    (f"HEARTBEAT_OK — {LONG}", LONG),
    (f"HEARTBEAT_OK!!!\n{LONG}", LONG),
    (f"HEARTBEAT_OK\u00a0{LONG}", LONG),
    (f"HEARTBEAT_OK&nbsp;{LONG}", LONG),
    (f"HEARTBEAT_OK<br>{LONG}", LONG),
    (f"<b>HEARTBEAT_OK</b> {LONG}", LONG),
    (f"<P>HEARTBEAT_OK</p><p>{LONG}</p>", f"<p>{LONG}</p>"),
    (f"# HEARTBEAT_OK\n\n{LONG}", LONG),
    (f"- HEARTBEAT_OK\n- {LONG}", f"- {LONG}"),
    (f"HEARTBEAT_OK\n    indented\n{LONG}", f"    indented\n{LONG}"),
    (f"HEARTBEAT_OK\n```\ncode\n```\n{LONG}", f"```\ncode\n```\n{LONG}"),
    (f"{LONG} HEARTBEAT_OK!!!", LONG),
    (f"{LONG} **HEARTBEAT_OK**.", LONG),
    (f"{LONG} (HEARTBEAT_OK) ✅", LONG),
    (f"{LONG} - HEARTBEAT_OK", LONG),
    (f"{LONG}\n- HEARTBEAT_OK", LONG),
    (f"{LONG}\n\n<p><strong>HEARTBEAT_OK</strong></p>\n", LONG),
    (f"<p>{LONG}</p><p>HEARTBEAT_OK</p>", f"<p>{LONG}</p>"),
    (f"HEARTBEAT_OK\n{LONG}\nHEARTBEAT_OK", LONG),
    # marks that belong to the words beside it stay with them
    (f"**HEARTBEAT_OK all is well.** {LONG}", f"**all is well.** {LONG}"),
    (f"## HEARTBEAT_OK all is well\n{LONG}", f"## all is well\n{LONG}"),
    (f"<p>HEARTBEAT_OK {LONG}</p>", f"<p>{LONG}</p>"),
    (f"**{LONG}** HEARTBEAT_OK", f"**{LONG}**"),
    (f"**{LONG} HEARTBEAT_OK.**", f"**{LONG}**"),
    (f"({LONG} HEARTBEAT_OK)", f"({LONG})"),
    (f"{LONG} `cmd` HEARTBEAT_OK", f"{LONG} `cmd`"),
]

# In code or quotation marks, in a line of its own: a beat's sign, and text of everybody else.
QUOTED = [
    (f"```\nHEARTBEAT_OK\n```\n{LONG}", LONG),
    (f"**`HEARTBEAT_OK`**\n\n{LONG}", LONG),
    (f"{LONG}\n```\nHEARTBEAT_OK\n```", LONG),
    (f"{LONG}\n\n`HEARTBEAT_OK`.", LONG),
    (f"{LONG}\n- “HEARTBEAT_OK”", LONG),
]

TEXT = [
    "No",
    "Set it to `NO_REPLY`",
    "Set it to `HEARTBEAT_OK`.",
    'It answers "NO_REPLY"!',
    "It answers **“HEARTBEAT_OK”**.",
    "`NO_REPLY` is the sign for silence.",
    "**`HEARTBEAT_OK`** is what it says.",
    "`HEARTBEAT_OK`: all is well",
    "'NO_REPLY' it said",
    "NO",
    "HEARTBEAT_OKAY then",
    "no_reply_needed is a flag",
    "NO_REPLY's meaning",
    "HEARTBEAT_OK/NO_REPLY are signs.",
    "Answer HEARTBEAT_OK when all is well.",
    "See MY_NO_REPLY",
    "curl --NO_REPLY",
    "Say no_reply",
    "Type `echo HEARTBEAT_OK`",
    "`HEARTBEAT_OK is` the sign.",
    "```\necho HEARTBEAT_OK\n```",
    "```\nHEARTBEAT_OK is the sign\n```",
    "The disk is full.",
    '{"action": "go"}',
    "a < b",
]


def streamed(text: str, cuts: list[int]) -> str:
    """What people see of an ordinary answer that comes in pieces which end at `cuts`."""
    made = Directives()
    ends = [0, *cuts, len(text)]
    return "".join([made.feed(text[a:b]) for a, b in pairwise(ends)] + [made.end()])


def in_every_cut(text: str) -> set[str]:
    """What is seen of a text in two pieces, cut anywhere near its edges, and in pieces of any one size."""
    near = [*range(min(len(text), 70)), *range(max(0, len(text) - 70), len(text) + 1)]
    sizes = [list(range(size, len(text), size)) for size in (*range(1, 30), len(text) + 1)]
    return {streamed(text, cuts) for cuts in ([[at] for at in near] + sizes)}


@pytest.mark.parametrize("text", SILENT)
def test_nothing_but_a_token_is_silence(text: str) -> None:
    assert is_silent(text)
    assert alert(text, 0) == ""
    assert in_every_cut(text) == {""}


@pytest.mark.parametrize(("text", "rest"), AT_AN_EDGE)
def test_a_token_at_an_edge_is_taken_away_and_the_rest_is_as_it_was(text: str, rest: str) -> None:
    assert not is_silent(text)
    assert alert(text, MOST) == rest
    assert in_every_cut(text) == {rest}


@pytest.mark.parametrize(("text", "rest"), AT_AN_EDGE)
def test_a_beat_with_the_token_and_few_other_words_is_quiet(text: str, rest: str) -> None:
    beside = len(rest.strip())
    assert alert(text, beside) == ""
    assert alert(text, beside - 1) == rest


@pytest.mark.parametrize(("text", "rest"), QUOTED)
def test_a_quoted_token_in_a_line_of_its_own_is_a_sign_of_beats_alone(text: str, rest: str) -> None:
    assert alert(text, MOST) == rest
    assert in_every_cut(text) == {text}


@pytest.mark.parametrize("text", TEXT)
def test_in_the_middle_in_code_and_within_words_it_is_text(text: str) -> None:
    assert not is_silent(text)
    assert alert(text, MOST) == text
    assert in_every_cut(text) == {text}


def test_what_no_reply_stands_beside_is_an_alert_however_short() -> None:
    assert alert("NO_REPLY\n\nThe disk is full.", MOST) == "The disk is full."
    assert alert("The disk is full. NO_REPLY", MOST) == "The disk is full."
    assert alert(" \n", MOST) == ""


PIECES = [
    "NO_REPLY",
    "HEARTBEAT_OK",
    " ",
    "\n",
    "*",
    "**",
    "`",
    "```",
    "<b>",
    "</b>",
    "<",
    "&nbsp;",
    ".",
    "- ",
    "x",
    "NO",
    "(",
    ")",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.lists(st.integers(1, 20), max_size=12))
@example("x NO_REPLY y NO_REPLY", [15, 17])
@example("HEARTBEAT_OK" + " " * 300 + "x", [200, 30, 30])
@example("x" + " " * 70 + "HEARTBEAT_OK" + " " * 60, [75, 9])
def test_any_edges_in_any_cut(text: str, sizes: list[int]) -> None:
    cuts = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    whole = streamed(text, [])
    assert streamed(text, cuts) == whole
    assert streamed(text, list(range(len(text)))) == whole
    if "`" not in text:  # beats may quote, and of a fence that is not closed only the stream knows
        assert whole.strip() == alert(text, 0).strip()


@pytest.mark.parametrize("piece", ["*", "`", "<b>", "<b ", "&nbsp;", " ", "HEARTBEAT_OK", "(", "\n```\n"])
def test_hostile_texts_take_no_time(piece: str) -> None:
    text = f"HEARTBEAT_OK{piece * 20_000}x"
    assert not is_silent(text)
    assert alert(text, 0) != ""
