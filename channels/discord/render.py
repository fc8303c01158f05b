"""Markdown to the bodies of "create message": Discord's own Markdown, which differs from everybody else's.

A body is JSON with the arguments of the call but the channel. What Discord would read otherwise is escaped, nobody is
called and no address is fetched for a preview. Discord refuses no markup, so a body has no plain form.

Discord counts code points (github.com/discord/discord-api-docs, issue 1315): 2000 of them.
"""

from channels.discord.markup import WORDS, written
from channels.markdown.entities import EntityType, Formatted
from channels.markdown.render import render
from channels.markdown.split import shows, split
from channels.outgoing import as_body

MAX_CHARS = 2000
SUPPRESS_EMBEDS = 1 << 2

_LONGEST_LINK = 512
SHOWS = frozenset(EntityType) - {EntityType.EXPANDABLE_BLOCKQUOTE}


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    whole = render(markdown, is_link, SHOWS)
    pieces = split(whole, 2 * MAX_CHARS, MAX_CHARS, _fits)
    return [_body(written(piece)) for piece in pieces if shows(piece.text)]


def _fits(piece: Formatted) -> bool:
    content = written(piece) if len(piece.text) <= MAX_CHARS else piece.text
    return len(content) <= MAX_CHARS


def _body(content: str) -> str:
    return as_body({"content": content, "flags": SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}})


def is_link(url: str, words: str) -> bool:
    """Discord takes web addresses behind words with no brackets but pairs; a long one would leave too little room."""
    web = url.startswith(("http://", "https://")) and len(url) <= _LONGEST_LINK and not any(map(str.isspace, url))
    return web and WORDS.fullmatch(words) is not None
