"""Bodies of sendMessage: within Telegram's limits, the same bytes each time, never empty, no preview."""

import json

from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.render import bodies
from channels.utf16 import units


def test_the_arguments_of_a_message() -> None:
    (body,) = bodies("**hi** [x](https://e.org)\n\n```py\n1\n```")
    assert json.loads(body) == {
        "text": "hi x\n\n1",
        "entities": [
            {"type": "bold", "offset": 0, "length": 2},
            {"type": "text_link", "offset": 3, "length": 1, "url": "https://e.org"},
            {"type": "pre", "offset": 6, "length": 1, "language": "py"},
        ],
        "link_preview_options": {"is_disabled": True},
    }


def test_plain_text_has_no_entities() -> None:
    assert json.loads(bodies("hi")[0]) == {"text": "hi", "link_preview_options": {"is_disabled": True}}


@given(
    st.lists(
        st.sampled_from(
            ["word ", "*x* ", "`c` ", "😀", "\n\n", "\n", "- a\n", "```\ncode\n```\n", "&nbsp;", "\u200b", "> q\n"]
        ),
        max_size=300,
    ).map(lambda parts: "".join(parts) * 12)
)
def test_every_body_is_within_the_limits(markdown: str) -> None:
    found = bodies(markdown)
    assert found == bodies(markdown)
    for body in found:
        arguments = json.loads(body)
        assert 0 < units(arguments["text"]) <= 4096
        assert arguments["text"].strip("\u200b\xa0\n ")
        assert len(arguments.get("entities", [])) <= 100


def test_offsets_are_utf16_units() -> None:
    (body,) = bodies("😀 **a** 👍 *b*👍")
    bold, italic = ("bold", 3, 1), ("italic", 8, 1)
    found = json.loads(body)["entities"]
    assert [(entity["type"], entity["offset"], entity["length"]) for entity in found] == [bold, italic]
    (body,) = bodies("**👍**")
    assert json.loads(body)["entities"] == [{"type": "bold", "offset": 0, "length": 2}]
