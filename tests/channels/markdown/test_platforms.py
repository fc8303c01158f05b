"""What a reader sees on each platform is what the Markdown says, within the platform's rules, and nobody is called."""

import json
from collections import Counter
from itertools import zip_longest

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from channels.discord import render as discord
from channels.markdown.formatted import EntityType
from channels.markdown.quoting import outside_code, quoted
from channels.markdown.render import render
from channels.slack import render as slack
from channels.telegram import render as telegram
from channels.telegram.render import is_link
from tests.channels.markdown import discord_reader, slack_reader
from tests.channels.markdown.documents import DOCUMENTS, EXAMPLES, REAL, TABLES
from tests.channels.markdown.reading import Seen, as_meant, seen, text_of
from tests.examples import fewer
from tests.standins import discord_content, discord_fields, slack_blocks, telegram_fields, telegram_text
from tests.standins.telegram_ledger import Rule

ALL = [*REAL, *TABLES, *(str(example["markdown"]) for example in EXAMPLES)]


def on_discord(markdown: str) -> Seen:
    found: Seen = []
    for body in map(json.loads, discord.bodies(markdown)):
        discord_fields.check(body, discord_fields.MESSAGE)
        discord_content.check_message(None, {}, body, {})
        assert discord_content.allowed_of(body, discord_content.Allowed()).parse == frozenset()
        assert body["flags"] == discord.SUPPRESS_EMBEDS
        found += discord_reader.read(body["content"])
    return found


def on_slack(markdown: str) -> Seen:
    found: Seen = []
    for body in map(json.loads, slack.bodies(markdown)):
        slack_blocks.check_text(body["text"], slack_blocks.MAX_UPDATE_TEXT)
        blocks = slack_blocks.check_blocks(body.get("blocks", []))
        assert body["text"].strip()
        assert not slack_blocks.pings(body["text"], blocks)
        assert not slack_blocks.fetched(body["text"], blocks, body)
        assert "blocks" not in json.loads(slack.plain_body(json.dumps(body)) or "{}")
        found += slack_reader.read(body)
    return found


def on_telegram(markdown: str) -> str:
    def complain(rule: Rule, detail: str) -> None:
        raise AssertionError(f"{rule}: {detail}, from {markdown!r}")

    text = ""
    for body in map(json.loads, telegram.bodies(markdown)):
        params = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
        telegram_text.check_text(telegram_fields.read_parameters("sendMessage", params, complain), complain)
        text += body["text"]
    return text_of(seen(text))


def same(found: Seen, meant: Seen, markdown: str) -> None:
    for at, (left, right) in enumerate(zip_longest(found, meant)):
        assert left == right, f"at {at} of {text_of(meant)!r}, from {markdown!r}"


def check(markdown: str) -> None:
    same(on_discord(markdown), as_meant(render(markdown, discord.is_link, discord.SHOWS)), markdown)
    meant = as_meant(render(markdown, slack.is_link, slack.SHOWS))
    # Code within a quote has no form of its own on Slack.
    meant = [(char, frozenset({"pre"}) if "pre" in looks else looks) for char, looks in meant]
    same(on_slack(markdown), meant, markdown)
    assert on_telegram(markdown) == text_of(as_meant(render(markdown, lambda url, words: is_link(url))))


def test_each_document_says_the_same_on_each_platform() -> None:
    for markdown in ALL:
        check(markdown)


@fewer(40)
@given(DOCUMENTS)
def test_any_text_says_the_same_on_each_platform(markdown: str) -> None:
    check(markdown)


def test_a_long_answer_says_the_same_in_several_messages() -> None:
    check("\n\n".join(markdown for markdown in REAL if "<details>" not in markdown) * 3)


def letters(text: str) -> Counter[str]:
    return Counter(char for char in text if char.isascii() and char.isalnum())


def texts(tokens: list[Token]) -> str:
    """What CommonMark shows, according to the parser as it comes."""
    own = ("text", "text_special", "code_inline", "fence", "code_block")
    return "".join((token.content if token.type in own else "") + texts(token.children or []) for token in tokens)


@given(DOCUMENTS)
def test_no_letter_of_any_text_is_lost(markdown: str) -> None:
    # HTML, boxes, notes and whole lines of mathematics are translated; the tables of tests say how.
    assume(not any(sign in markdown for sign in ("<", "[x]", "[X]", "[!", "$$", "\\[")))
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    kept = letters(render(markdown, lambda url, words: False).text)
    assert not letters(texts(parser.parse(markdown))) - kept


# Blocks that are put into quotations for what they show, whatever their markup is.

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
