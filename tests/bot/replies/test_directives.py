"""What a model writes for the service: taken out of the words, the same however the stream was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.replies.directives import Directives


def read(text: str, cuts: list[int], after: str = "") -> tuple[str, str | None, tuple[str, ...], str]:
    """What people see, the chosen message, the files, and what was written where all of that is."""
    made = Directives(after)
    shown, at = [], 0
    for cut in cuts:
        shown.append(made.feed(text[at : at + cut]))
        at += cut
    shown += [made.feed(text[at:]), made.end()]
    return "".join(shown), made.reply_to, tuple(made.files), made.written("".join(shown) + "|").removesuffix("|")


CASES = [
    ("NO_REPLY", "", None, ()),
    (" no_reply\n", "", None, ()),
    ("**NO_REPLY**", "", None, ()),
    ("`NO_REPLY`.", "", None, ()),
    ('{"action": "NO_REPLY"}', "", None, ()),
    ('```json\n{"action": "NO_REPLY"}\n```', "", None, ()),
    ("HEARTBEAT_OK", "", None, ()),
    ("No", "No", None, ()),
    ("no_reply_needed is a flag", "no_reply_needed is a flag", None, ()),
    ("NO_REPLY\n\nThe weather is fine.", "The weather is fine.", None, ()),
    ("The weather is fine.\n\nNO_REPLY", "The weather is fine.", None, ()),
    ("All is well. **HEARTBEAT_OK**", "All is well.", None, ()),
    ("Answer NO_REPLY when nothing is to say.", "Answer NO_REPLY when nothing is to say.", None, ()),
    ("Say no_reply", "Say no_reply", None, ()),
    ('{"action": "go"}', '{"action": "go"}', None, ()),
    ("[[reply_to_current]] Yes.", "Yes.", "", ()),
    ("Yes, [[ reply_to: 42 ]]of course.", "Yes, of course.", "42", ()),
    ("`[[reply_to_current]]` is a tag.", "`[[reply_to_current]]` is a tag.", None, ()),
    ("Put `a [[reply_to_current]] b` there.", "Put `a [[reply_to_current]] b` there.", None, ()),
    ("`a`, `b [[reply_to:7]] c`\n[[reply_to:8]]d", "`a`, `b [[reply_to:7]] c`\nd", "8", ()),
    ('Put "[[reply_to_current]]" there.', 'Put "[[reply_to_current]]" there.', None, ()),
    ("Set it to `NO_REPLY`", "Set it to `NO_REPLY`", None, ()),
    ("Use:\n```\nNO_REPLY\n```", "Use:\n```\nNO_REPLY\n```", None, ()),
    ("a [[link]] b [", "a [[link]] b [", None, ()),
    ("See:\nMEDIA: plots/a b.png\nDone.", "See:\nDone.", None, ("plots/a b.png",)),
    ("MEDIA:`x.png`", "", None, ("x.png",)),
    ("MEDIA: https://example.org/x.png", "MEDIA: https://example.org/x.png", None, ()),
    ("Not MEDIA: x.png here", "Not MEDIA: x.png here", None, ()),
    ("```\nMEDIA: x\n[[reply_to_current]]\n```\nMEDIA: y", "```\nMEDIA: x\n[[reply_to_current]]\n```\n", None, ("y",)),
]


@pytest.mark.parametrize(("text", "shown", "reply_to", "files"), CASES)
def test_every_cut_gives_the_same(text: str, shown: str, reply_to: str | None, files: tuple[str, ...]) -> None:
    for size in (1, 2, 3, 5, len(text)):
        assert read(text, [size] * (len(text) // size)) == (shown, reply_to, files, text)


def test_a_token_is_only_a_sign_where_an_answer_begins() -> None:
    assert read("NO_REPLY and so on", [], after="What stands there: ")[0] == "NO_REPLY and so on"


@given(
    st.text(st.sampled_from("NO_REPLY [[]]reply_to:current MEDIA\n`~x *"), max_size=60),
    st.lists(st.integers(1, 9), max_size=40),
)
def test_any_text_in_any_cut(text: str, cuts: list[int]) -> None:
    whole = read(text, [])
    assert read(text, cuts) == whole
    assert whole[3] == text
