"""Markdown to the bodies of "create message": Discord's own Markdown, which differs from everybody else's.

A body is JSON with the arguments of the call except the channel. Text that Discord would read as markup is escaped,
nobody is mentioned, and link previews are off. Discord refuses no markup, so a body needs no plain form.

Discord counts code points (github.com/discord/discord-api-docs, issue 1315), and takes 2000 of them.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from channels.markdown.formatted import EntityType, Formatted, Run, Style, parts_of, shows, split
from channels.markdown.render import render
from channels.outgoing import as_body

MAX_CHARS = 2000
SUPPRESS_EMBEDS = 1 << 2

_LONGEST_LINK = 512
SHOWS = frozenset(EntityType) - {EntityType.EXPANDABLE_BLOCKQUOTE}

# A zero-width space, put between a mark and a character beside which Discord would not read it as a mark.
_NOTHING = "\u200b"

# The mark on both sides of a style.
_AROUND = {
    EntityType.BOLD: "**",
    EntityType.ITALIC: "_",
    EntityType.UNDERLINE: "__",
    EntityType.STRIKETHROUGH: "~~",
    EntityType.SPOILER: "||",
}
# The levels of headings that Discord has; deeper ones are bold.
_LEVELS = 3
# Marks that Discord does not read as such when the second pattern matches on their outer side.
_FRAGILE, _APART = "_~", re.compile(r"\w", re.ASCII)
# To be escaped: marks and mentions, targets of links, the `#` at the end of a heading, bare addresses, names of emoji.
_SPECIAL = re.compile(r"[\\*_~`|<\[]|(?:\A|(?<=\]))\(|(?<=:)/(?=/)|:(?=[\w+-]+:)")
_FIRST = re.compile(r"(\d*)([#>+-]|(?<=\d)\.)")
_ODD = re.compile(r"[\\()<>]")  # in the target of a link
# The words that a link may have: brackets only in pairs.
WORDS = re.compile(r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*")
_LANGUAGE = re.compile(r"[\w+.#-]+", re.ASCII)
_EDGES = re.compile(r"(\A\s+|\s+\Z|\s*\n\s*)")
_FIRST_OF_LINE = re.compile(r"^", re.MULTILINE)


def bodies(markdown: str) -> list[str]:
    """Render a block to the bodies of its messages, in order; none when the block shows nothing."""
    whole = render(markdown, is_link, SHOWS)
    pieces = split(whole, 2 * MAX_CHARS, MAX_CHARS, _share)
    return [_body(written(piece)) for piece in pieces if shows(piece.text)]


def _share(piece: Formatted) -> float:
    content = written(piece) if len(piece.text) <= MAX_CHARS else piece.text
    return MAX_CHARS / max(len(content), 1)


def _body(content: str) -> str:
    return as_body({"content": content, "flags": SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}})


def is_link(url: str, words: str) -> bool:
    """Whether an address is made the target of these words.

    Discord takes web addresses behind words whose brackets are in pairs. A long one would leave too little room.
    """
    web = url.startswith(("http://", "https://")) and len(url) <= _LONGEST_LINK and not any(map(str.isspace, url))
    return web and WORDS.fullmatch(words) is not None


def written(whole: Formatted) -> str:
    """Formatted text as Discord's Markdown."""
    parts = []
    for quote, inside in groupby(parts_of(whole), key=lambda part: part[0]):
        text = ""
        for _, pre, runs in inside:
            text += _pre("".join(run[0] for run in runs), pre.language) if pre else _Line().write(runs)
        parts.append(_FIRST_OF_LINE.sub("> ", text) if quote else text)
    return "".join(parts)


class _Line:
    """Writes runs with their marks, which have no white space on their inner side and end with the line."""

    def __init__(self) -> None:
        self._text = self._space = ""
        self._open: tuple[EntityType, ...] = ()
        self._is_heading = False
        self._closed = False  # whether the text ends with a fragile mark

    def write(self, runs: Sequence[Run]) -> str:
        """Return the Markdown of the runs."""
        for text, styles in runs:
            for part in _EDGES.split(text):
                if part.isspace():
                    self._space += part
                elif part:
                    self._put(part, styles)
        self._close(0)
        return self._text + self._space

    def _put(self, text: str, styles: Sequence[Style]) -> None:
        begins = not self._text or "\n" in self._space
        heading = next((style for style in styles if style.type is EntityType.HEADING), None)
        sign = "#" * heading.level + " " if heading and begins and heading.level <= _LEVELS else ""
        self._is_heading = bool(sign) if begins else self._is_heading
        kinds = [style.type for style in styles if style.type in _AROUND]
        if heading and not self._is_heading:
            kinds.insert(0, EntityType.BOLD)
        url = next((style.url for style in styles if style.url), "")
        if url:  # an address cannot be escaped, so a mark in it would end the style around it
            kinds = [kind for kind in kinds if _AROUND[kind][0] not in url]
        wanted = tuple(dict.fromkeys(kinds))
        same = 0
        while not begins and self._open[same : same + 1] == wanted[same : same + 1] != ():
            same += 1
        self._close(same)
        self._add((self._space[: self._space.rfind("\n") + 1] if sign else self._space) + sign)
        self._space = ""
        opening = "".join(_AROUND[kind] for kind in wanted[same:])
        self._open = wanted
        code = any(style.type is EntityType.CODE for style in styles)
        words = _code(text) if code else _escape(text, begins or bool(opening))
        first = opening or (words if code else "")
        if self._touches(first):
            self._closed = False
            self._add(_NOTHING)
        if url:
            words = f"<{text}>" if "://" in text else _link(words, url)
        self._add(opening + words)
        self._closed = code and words[-1] in _FRAGILE

    def _touches(self, mark: str) -> bool:
        """Whether Discord would not read a mark as one directly behind the text so far."""
        if not self._text or not mark:
            return False
        fragile = mark[0] in _FRAGILE and _APART.match(self._text[-1])
        return bool(fragile) or (mark[0] == "`" == self._text[-1])

    def _close(self, keep: int) -> None:
        marks = "".join(_AROUND[kind] for kind in reversed(self._open[keep:]))
        if marks:
            self._text += (_NOTHING if self._text[-1] == marks[0] else "") + marks
            self._closed = marks[-1] in _FRAGILE
        self._open = self._open[:keep]

    def _add(self, text: str) -> None:
        if text:
            self._text += (_NOTHING if self._closed and _APART.match(text) else "") + text
            self._closed = False


def _escape(text: str, begins_line: bool) -> str:
    words = text.rstrip("#")
    text = _SPECIAL.sub(r"\\\g<0>", words) + r"\#" * (len(text) - len(words))
    first = _FIRST.match(text) if begins_line else None
    return f"{first[1]}\\{first[2]}{text[first.end() :]}" if first else text


def _link(words: str, url: str) -> str:
    words = words.replace("\\[", "[")
    if not WORDS.fullmatch(words):  # they were cut inside a pair of brackets
        return words.replace("[", "\\[")
    return f"[{words}]({_ODD.sub(lambda sign: f'%{ord(sign[0]):02X}', url)})"


def _code(text: str) -> str:
    """Inline code. Backticks in it are kept apart, because three of them begin a block."""
    if "`" not in text:
        return f"`{text}`"
    return f"`` {re.sub('`(?=`)', f'`{_NOTHING}', text)} ``"


def _pre(text: str, language: str) -> str:
    known = language if _LANGUAGE.fullmatch(language) else ""
    inside = re.sub("``(?=`)", f"``{_NOTHING}", text)
    return f"```{known}\n{inside}\n```"
