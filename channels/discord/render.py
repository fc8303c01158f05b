"""Markdown to the bodies of "create message": Discord's own Markdown, which differs from everybody else's.

A body is JSON with the arguments of the call but the channel. What Discord would read otherwise is escaped, nobody is
called and no address is fetched for a preview. Discord refuses no markup, so a body has no plain form.

Discord counts code points (github.com/discord/discord-api-docs, issue 1315): 2000 of them.
"""

import re

from channels.markdown.entities import EntityType, Formatted
from channels.markdown.markup import NOTHING, Marks, written
from channels.markdown.render import render
from channels.markdown.split import shows, split
from channels.outgoing import as_body

MAX_CHARS = 2000
SUPPRESS_EMBEDS = 1 << 2

_LONGEST_LINK = 512
_AROUND = {
    EntityType.BOLD: "**",
    EntityType.ITALIC: "_",
    EntityType.UNDERLINE: "__",
    EntityType.STRIKETHROUGH: "~~",
    EntityType.SPOILER: "||",
}
SHOWS = frozenset(EntityType) - {EntityType.EXPANDABLE_BLOCKQUOTE}
# Marks and mentions, targets of links, the `#` at the end of a heading, addresses outside of links, names of emoji.
_SPECIAL = re.compile(r"[\\*_~`|<\[]|(?:\A|(?<=\]))\(|#(?=#*\Z)|(?<=:)/(?=/)|:(?=[\w+-]+:)")
_FIRST = re.compile(r"(\d*)([#>+-]|(?<=\d)\.)")
_ODD = re.compile(r"[\\()<>]")  # in the target of a link
_WORDS = re.compile(r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*")
_LANGUAGE = re.compile(r"[\w+.#-]+", re.ASCII)


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    whole = render(markdown, is_link, SHOWS)
    pieces = split(whole, 2 * MAX_CHARS, MAX_CHARS, _fits)
    return [_body(written(piece, _MARKS)) for piece in pieces if shows(piece.text)]


def _fits(piece: Formatted) -> bool:
    content = written(piece, _MARKS) if len(piece.text) <= MAX_CHARS else piece.text
    return len(content) <= MAX_CHARS


def _body(content: str) -> str:
    return as_body({"content": content, "flags": SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}})


def is_link(url: str, words: str) -> bool:
    """Discord takes web addresses behind words with no brackets but pairs; a long one would leave too little room."""
    web = url.startswith(("http://", "https://")) and len(url) <= _LONGEST_LINK and not any(map(str.isspace, url))
    return web and _WORDS.fullmatch(words) is not None


def _escape(text: str, begins_line: bool) -> str:
    text = _SPECIAL.sub(r"\\\g<0>", text)
    return _FIRST.sub(r"\1\\\2", text, count=1) if begins_line and _FIRST.match(text) else text


def _link(words: str, url: str) -> str:
    if not words:
        return f"<{url}>"
    words = words.replace("\\[", "[")
    if not _WORDS.fullmatch(words):  # a part of words that had been cut
        return words.replace("[", "\\[")
    return f"[{words}]({_ODD.sub(lambda sign: f'%{ord(sign[0]):02X}', url)})"


def _code(text: str) -> str:
    """Between two backticks where it has some, none of them side by side: three would begin a block."""
    if "`" not in text:
        return f"`{text}`"
    return f"`` {re.sub('`(?=`)', f'`{NOTHING}', text)} ``"


def _pre(text: str, language: str) -> str:
    known = language if _LANGUAGE.fullmatch(language) else ""
    inside = re.sub("``(?=`)", f"``{NOTHING}", text)
    return f"```{known}\n{inside}\n```"


_MARKS = Marks(
    around=_AROUND,
    escape=_escape,
    link=_link,
    code=_code,
    pre=_pre,
    heading=lambda level: "#" * level + " " if level <= 3 else "",
    fragile="_~",
    apart=re.compile(r"\w", re.ASCII),
)
