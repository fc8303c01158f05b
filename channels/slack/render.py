"""Markdown to the bodies of chat.postMessage: a `rich_text` block, and its words as `text`, which notifications show.

`rich_text` is to Slack what entities are to Telegram: text and styles, nothing to misread. mrkdwn has no escape for its
marks, and one beside a letter is none (so no bold within a word or beside Chinese text). `markdown` blocks are not
used: Slack's own parser would read the emphasis differently, shows neither tables nor task lists, changes what is
written into other blocks, and 12,000 characters a message are no gain. `table` blocks are not used either: a message
takes one, it cannot stand within a list or quote, and a phone shows two columns of it; tables become fixed-width text
or lists, as everywhere.

In `text` `&`, `<` and `>` are always escaped, so nothing that a model writes is a mention. That of `chat.update` is
refused from 4,000 characters on; what Slack counts it does not say, so UTF-16 units with their escapes are counted, the
most.
"""

import json
from collections.abc import Iterator

from channels.markdown.entities import EntityType, Formatted
from channels.markdown.parts import parts_of
from channels.markdown.render import render
from channels.markdown.split import shows, split
from channels.outgoing import as_body
from channels.utf16 import units

MAX_UNITS = 4000

_LONGEST_LINK = 2000
_MOST_RUNS = 300
_STYLES = {"bold": "bold", "italic": "italic", "strikethrough": "strike", "code": "code"}
SHOWS = frozenset(map(EntityType, (*_STYLES, "pre", "text_link", "url", "blockquote")))


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    whole = render(markdown, is_link, SHOWS)
    pieces = split(whole, MAX_UNITS, _MOST_RUNS, fits=lambda piece: units(_text(piece)) <= MAX_UNITS)
    return [_body(piece) for piece in pieces if shows(piece.text)]


def plain_body(body: str) -> str | None:
    """A message without its blocks; None when it has none."""
    arguments = json.loads(body)
    return as_body(arguments) if arguments.pop("blocks", None) else None


def _body(piece: Formatted) -> str:
    blocks = [{"type": "rich_text", "elements": list(_elements(piece))}]
    return as_body({"text": _text(piece), "unfurl_links": False, "unfurl_media": False, "blocks": blocks})


def _text(piece: Formatted) -> str:
    """Its words without their styles; links with their addresses."""
    said = ""
    for text, styles in (run for _, _, runs in parts_of(piece) for run in runs):
        url = next((style.url for style in styles if style.url), text)
        said += _escape(text) if url == text else f"<{_escape(url).replace('|', '%7C')}|{_escape(text)}>"
    return said


def is_link(url: str, words: str) -> bool:
    known = url.startswith(("http://", "https://", "mailto:")) and len(url) <= _LONGEST_LINK
    return known and not any(map(str.isspace, url))


def _elements(piece: Formatted) -> Iterator[dict[str, object]]:
    """The elements of a rich_text block; each stands in lines of its own, so the breaks between them go."""
    for quote, pre, runs in parts_of(piece):
        texts = [text for text, _ in runs]
        texts[0] = texts[0].lstrip("\n")
        texts[-1] = texts[-1].rstrip("\n")
        found: list[dict[str, object]] = []
        for shown, (_, styles) in zip(texts, runs, strict=True):
            style = {_STYLES[style.type]: True for style in styles if style.type in _STYLES}
            url = next((style.url for style in styles if style.url), "")
            if shown:
                kind = {"type": "link", "url": url, "text": shown} if url else {"type": "text", "text": shown}
                found.append(kind | ({"style": style} if style else {}))
        if found:
            name = "preformatted" if pre else "quote" if quote else "section"
            yield {"type": f"rich_text_{name}", "elements": found}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
