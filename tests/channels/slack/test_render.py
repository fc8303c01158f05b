"""Bodies of chat.postMessage, and deliveries as calls."""

import json
from typing import Any

import pytest

from channels.slack.api import is_slack
from channels.slack.history import position
from channels.slack.render import bodies, emoji_name, plain_body


def message(markdown: str) -> dict[str, Any]:
    (body,) = map(json.loads, bodies(markdown))
    return body


ITALIC = {"type": "text", "text": "a", "style": {"italic": True}}
STRUCK = {"type": "text", "text": "b", "style": {"strike": True}}


def section(*elements: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}]


def test_the_arguments_of_a_message() -> None:
    words = [{"type": "text", "text": "hi", "style": {"bold": True}}, {"type": "text", "text": " there"}]
    shown = {"text": "hi there", "unfurl_links": False, "unfurl_media": False, "blocks": section(*words)}
    assert message("**hi** there") == shown
    assert bodies("") == bodies("<!-- x -->") == []


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# A\n\n**b** *c* ~~d~~ `e`", "A\n\nb c d e"),
        ("<!channel> <@U1> a & b > c", "&lt;!channel&gt; &lt;@U1&gt; a &amp; b &gt; c"),
        ("[a](https://e.org/?x=1&y=2|3) <https://e.org>", "<https://e.org/?x=1&amp;y=2%7C3|a> https://e.org"),
        ("[a](mailto:b@c.d) [e](tel:1)", "<mailto:b@c.d|a> e (tel:1)"),
        ("> a\n>\n> b\n\nc", "a\n\nb\n\nc"),
        ("```py\na < b\n```", "a &lt; b"),
        ("- a\n  1. b", "• a\n   1. b"),
        ("|a|b|\n|-|-|\n|1|2|", "a │ b\n──┼──\n1 │ 2"),
        ("||a|| <u>b</u>", "||a|| b"),
    ],
)
def test_what_notifications_say_are_its_words(markdown: str, text: str) -> None:
    assert message(markdown)["text"] == text


@pytest.mark.parametrize(
    ("markdown", "elements"),
    [
        ("中**文**", [{"type": "text", "text": "中"}, {"type": "text", "text": "文", "style": {"bold": True}}]),
        ("# A", [{"type": "text", "text": "A", "style": {"bold": True}}]),
        ("*a* ~~b~~", [ITALIC, {"type": "text", "text": " "}, STRUCK]),
        ("2 * 3 * 4", [{"type": "text", "text": "2 * 3 * 4"}]),
        ("\\> a", [{"type": "text", "text": "> a"}]),
        (":tada: x", [{"type": "text", "text": ":tada: x"}]),
        ("`` a`b ``", [{"type": "text", "text": "a`b", "style": {"code": True}}]),
        (
            "x[y_z](https://e.org)",
            [{"type": "text", "text": "x"}, {"type": "link", "url": "https://e.org", "text": "y_z"}],
        ),
    ],
)
def test_what_people_read_is_a_block(markdown: str, elements: list[dict[str, Any]]) -> None:
    assert message(markdown)["blocks"] == section(*elements)


def test_code_and_quotes_are_elements_of_their_own() -> None:
    (block,) = message("a_b\n\n> c\n>\n> ```\n> d\n> ```\n\ne")["blocks"]
    assert [(one["type"], one["elements"][0]["text"]) for one in block["elements"]] == [
        ("rich_text_section", "a_b"),
        ("rich_text_quote", "c"),
        ("rich_text_preformatted", "d"),
        ("rich_text_section", "e"),
    ]


def test_the_plain_form_has_no_blocks() -> None:
    (body,) = bodies("a*b*c")
    plain = plain_body(body)
    assert plain is not None
    assert json.loads(plain) == {"text": "abc", "unfurl_links": False, "unfurl_media": False}
    assert plain_body(plain) is None


def test_a_text_has_at_most_4000_characters_with_its_escapes() -> None:
    found = [json.loads(body)["text"] for body in bodies("a & b " * 1000)]
    assert len(found) == 3
    assert all(len(text) <= 4000 for text in found)
    assert "".join(found).replace(" ", "") == "a&amp;b" * 1000


@pytest.mark.parametrize(
    ("emoji", "name"),
    [
        ("👀", "eyes"),
        ("👍", "+1"),
        ("✅", "white_check_mark"),
        ("⏳", "hourglass_flowing_sand"),
        ("❤️", "heart"),
        ("❤", "heart"),
        ("🤔", "thinking_face"),
        ("👨‍💻", "male-technologist"),
        ("👍🏿", "+1::skin-tone-6"),
        ("🇩🇪", "de"),
        (":party-parrot:", "party-parrot"),
        ("eyes", "eyes"),
    ],
)
def test_names_of_emoji_are_slack_s(emoji: str, name: str) -> None:
    assert emoji_name(emoji) == name


@pytest.mark.parametrize("emoji", ["", "::", "ä", "👀👀", "☃x"])
def test_what_is_no_emoji(emoji: str) -> None:
    with pytest.raises(ValueError, match="no emoji that Slack has"):
        emoji_name(emoji)


def test_ids_of_messages_are_in_order() -> None:
    assert position(1_700_000_000_123) == "1700000000.123000"
    assert position(-5) == "0000000000.000000"


def test_hosts_of_slack() -> None:
    good = ["https://files.slack.com/x", "https://hooks.slack.com/x", "https://slack.com/x", "http://127.0.0.1:80/x"]
    bad = ["http://slack.com/x", "https://slack.com.evil.org/x", "https://evilslack.com", "http://127.0.0.1:81/", ""]
    assert [url for url in good + bad if is_slack(url, "http://127.0.0.1:80/api")] == good
