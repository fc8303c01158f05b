"""What a reader sees on Discord and Slack is what the Markdown says, within their limits, and nobody is called."""

import json
from itertools import zip_longest

from hypothesis import given, settings

from channels.discord import render as discord
from channels.markdown.render import render
from channels.slack import render as slack
from tests.channels.markdown import discord_reader, slack_reader
from tests.channels.markdown.documents import DOCUMENTS, EXAMPLES, REAL, TABLES
from tests.channels.markdown.reading import Seen, as_meant, text_of

ALL = [*REAL, *TABLES, *(str(example["markdown"]) for example in EXAMPLES)]


def on_discord(markdown: str) -> Seen:
    found: Seen = []
    for body in map(json.loads, discord.bodies(markdown)):
        assert body.keys() == {"content", "flags", "allowed_mentions"}
        assert body["flags"] == 4
        assert body["allowed_mentions"] == {"parse": []}
        assert 0 < len(body["content"]) <= 2000
        assert body["content"].count("\n") < 17
        found += discord_reader.read(body["content"])
    return found


def on_slack(markdown: str) -> Seen:
    found: Seen = []
    for body in map(json.loads, slack.bodies(markdown)):
        assert (body["unfurl_links"], body["unfurl_media"]) == (False, False)
        assert 0 < len(body["text"]) <= 4000
        found += slack_reader.read(body)
    return found


def same(found: Seen, meant: Seen, markdown: str) -> None:
    one, other = shown(found), shown(meant)
    for at, (left, right) in enumerate(zip_longest(one, other)):
        assert left == right, f"{left} for {right} at {at} of {text_of(meant)!r}, from {markdown!r}"


def check(markdown: str) -> None:
    same(on_discord(markdown), as_meant(render(markdown, discord._is_link, discord._SHOWS)), markdown)
    meant = as_meant(render(markdown, slack._is_link, slack._SHOWS))
    # Code within a quote has no form of its own on Slack.
    meant = [(char, frozenset({"pre"}) if "pre" in looks else looks) for char, looks in meant]
    same(on_slack(markdown), meant, markdown)


def shown(characters: Seen) -> list[str]:
    """Readable when it differs. A piece that would show nothing is not sent."""
    return [f"{char} {' '.join(sorted(looks))}" for char, looks in characters]


def test_each_document_says_the_same_on_each_platform() -> None:
    for markdown in ALL:
        check(markdown)


@settings(max_examples=60)
@given(DOCUMENTS)
def test_any_text_says_the_same_on_each_platform(markdown: str) -> None:
    check(markdown)
