"""Bodies of sendMessage: within Telegram's limits, never empty, without previews, with the links that it takes."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from channels.telegram.render import bodies, is_link, plain_body
from channels.utf16 import units
from tests.standins.telegram_links import checked, misread


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


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://example.org:8080/a?b=c#d",
        "HTTPS://EXAMPLE.ORG",
        "http://192.168.1.20:8123/lovelace",
        "https://xn--mnchen-3ya.de/",
        "https://a-b.c-d.co.uk/~x",
        "tg://resolve?domain=telegram",
    ],
)
def test_taken(url: str) -> None:
    assert is_link(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "#top",
        "docs/a.md",
        "/etc/passwd",
        "tel:+123",
        "mailto:a@b.c",
        "ftp://example.org",
        "javascript:alert(1)",
        "http://",
        "http:///x",
        "http://localhost:3000",
        "http://raspberrypi:8123/",
        "https://your-domain/x",
        "http://example.org:0",
        "http://example.org:99999",
        "http://example.org:port",
        "http://.org",
        "http://example..org",
        "http://exa mple.org",
        "http://user@example.org",
        "http://[::1",
        "tg://user?id=1",
        "https://example.org/" + "x" * 2100,
    ],
)
def test_not_taken(url: str) -> None:
    assert not is_link(url)


def test_what_is_not_taken_is_written_behind_the_words() -> None:
    (body,) = bodies("See [the board](http://localhost:3000/b) or [later](), or [mail](mailto:a@b.c).")
    arguments = json.loads(body)
    assert arguments["text"] == "See the board (http://localhost:3000/b) or later, or mail (a@b.c)."
    assert "entities" not in arguments


def test_the_plain_form_keeps_every_target() -> None:
    (body,) = bodies("😀 **[a](https://a.org) and [b](https://b.org)** `c`")
    plain = plain_body(body)
    assert plain is not None
    assert json.loads(plain) == {
        "text": "😀 a (https://a.org) and b (https://b.org) c",
        "link_preview_options": {"is_disabled": True},
    }
    assert plain_body(plain) is None


def test_the_plain_form_is_never_too_long() -> None:
    (body,) = bodies("[a](https://a.org/" + "x" * 1000 + ") " + "b" * 3500)
    plain = plain_body(body)
    assert plain is not None
    assert json.loads(plain)["text"] == "a " + "b" * 3500


WORDS = "http https tg HTTP ftp : // / ? # @ . .. localhost example org user id=1 1.2.3.4 [::1] 0 80 99999 - _ %2E é ("
PIECE = st.sampled_from([*WORDS.split(), "\\", "\u212a", "～"])


@given(st.lists(PIECE, max_size=9).map("".join), st.sampled_from(["", "http://", "https://a.org", "tg://"]))
@example("user?id=1", "tg://")
@example("/user?id=1", "tg:")
def test_what_is_taken_is_taken_by_the_server_as_it_is(rest: str, start: str) -> None:
    url = start + rest
    if is_link(url):
        assert misread(url) is None
        assert checked(url)
