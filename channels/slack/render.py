"""Markdown to the bodies of chat.postMessage: `text` in Slack's mrkdwn, and `blocks` where that cannot say it.

mrkdwn has no escape for its marks, and one beside a letter is none (so no bold within a word or beside Chinese text).
Where that matters the same message goes out as a `rich_text` block as well, which is to Slack what entities are to
Telegram: text and styles, nothing to misread; `text` is then what notifications show. `markdown` blocks are not used:
Slack's own parser would read the emphasis differently, shows neither tables nor task lists, changes what is written
into other blocks, and 12,000 characters a message are no gain. `table` blocks are not used either: a message takes one,
it cannot stand within a list or quote, and a phone shows two columns of it; tables become fixed-width text or lists, as
everywhere.

`&`, `<` and `>` are always escaped, so nothing that a model writes is a mention. The text of `chat.update` is refused
from 4,000 characters on; what Slack counts it does not say, so UTF-16 units with their escapes are counted, the most.
"""

import json
import re
from collections.abc import Iterator

from channels.markdown.entities import EntityType, Formatted
from channels.markdown.markup import NOTHING, Marks, parts_of, written
from channels.markdown.render import render
from channels.markdown.split import shows, split
from channels.outgoing import as_body
from channels.utf16 import units

MAX_UNITS = 4000

_LONGEST_LINK = 2000
_MOST_RUNS = 300
_AROUND = {EntityType.BOLD: "*", EntityType.ITALIC: "_", EntityType.STRIKETHROUGH: "~"}
_STYLES = {"bold": "bold", "heading": "bold", "italic": "italic", "strikethrough": "strike", "code": "code"}
SHOWS = frozenset({*_AROUND, *map(EntityType, ("code", "pre", "text_link", "url", "blockquote"))})
# Marks, names of emoji, and what begins a line like a quote.
_MISREAD = re.compile(r"[*_~`]|:[\w+-]+:|^\s*>", re.MULTILINE)


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    whole = render(markdown, is_link, SHOWS)
    pieces = split(whole, MAX_UNITS, _MOST_RUNS, fits=lambda piece: units(written(piece, _MARKS)) <= MAX_UNITS)
    return [_body(piece) for piece in pieces if shows(piece.text)]


def plain_body(body: str) -> str | None:
    """A message without its blocks; None when it has none."""
    arguments = json.loads(body)
    return as_body(arguments) if arguments.pop("blocks", None) else None


def _body(piece: Formatted) -> str:
    text = written(piece, _MARKS)
    arguments: dict[str, object] = {"text": text, "unfurl_links": False, "unfurl_media": False}
    if NOTHING in text or _is_misread(piece):
        arguments["blocks"] = [{"type": "rich_text", "elements": list(_elements(piece))}]
    return as_body(arguments)


def is_link(url: str, words: str) -> bool:
    known = url.startswith(("http://", "https://", "mailto:")) and len(url) <= _LONGEST_LINK
    return known and not any(map(str.isspace, url))


def _is_misread(piece: Formatted) -> bool:
    """Whether mrkdwn would show something else: marks in the text, backticks in code, code in a quote."""
    for quote, pre, runs in parts_of(piece):
        text = "".join(text for text, styles in runs if all(style.type is not EntityType.CODE for style in styles))
        code = "".join(text for text, styles in runs if any(style.type is EntityType.CODE for style in styles))
        if ("```" in text or quote) if pre else (_MISREAD.search(text) or "`" in code):
            return True
    return False


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


def _escape(text: str, begins_line: bool = False) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _link(words: str, url: str) -> str:
    target = url.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
    return f"<{target}|{words}>" if words else f"<{target}>"


_MARKS = Marks(
    around=_AROUND,
    escape=_escape,
    link=_link,
    code=lambda text: f"`{_escape(text)}`",
    pre=lambda text, language: f"```\n{_escape(text)}\n```",
    fragile="*_~`",
    apart=re.compile(r"[^\s!-/:-@\[-`{-~]|[*_~`]"),
)
