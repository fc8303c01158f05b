"""Formatted text to Discord's own Markdown; what that would read otherwise is escaped."""

import re
from collections.abc import Sequence
from itertools import groupby

from channels.markdown.entities import EntityType, Formatted, Style
from channels.markdown.parts import Run, parts_of

# A space without width, which keeps a mark from what it must not touch.
_NOTHING = "\u200b"

# The mark on both sides of a style.
_AROUND = {
    EntityType.BOLD: "**",
    EntityType.ITALIC: "_",
    EntityType.UNDERLINE: "__",
    EntityType.STRIKETHROUGH: "~~",
    EntityType.SPOILER: "||",
}
# Deeper headings are bold.
_LEVELS = 3
# Marks that are none beside what is matched here on their outer side.
_FRAGILE, _APART = "_~", re.compile(r"\w", re.ASCII)
# Marks and mentions, targets of links, the `#` at the end of a heading, addresses outside of links, names of emoji.
_SPECIAL = re.compile(r"[\\*_~`|<\[]|(?:\A|(?<=\]))\(|#(?=#*\Z)|(?<=:)/(?=/)|:(?=[\w+-]+:)")
_FIRST = re.compile(r"(\d*)([#>+-]|(?<=\d)\.)")
_ODD = re.compile(r"[\\()<>]")  # in the target of a link
# Words of a link: no brackets but pairs.
WORDS = re.compile(r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*")
_LANGUAGE = re.compile(r"[\w+.#-]+", re.ASCII)

_EDGES = re.compile(r"(\A\s+|\s+\Z|\s*\n\s*)")
_FIRST_OF_LINE = re.compile(r"^", re.MULTILINE)


def written(whole: Formatted) -> str:
    """The text with its marks."""
    parts = []
    for quote, inside in groupby(parts_of(whole), key=lambda part: part[0]):
        text = ""
        for _, pre, runs in inside:
            text += _pre("".join(run[0] for run in runs), pre.language) if pre else _Line().write(runs)
        parts.append(_FIRST_OF_LINE.sub("> ", text) if quote else text)
    return "".join(parts)


class _Line:
    """Writes runs. No mark has white space on its inner side, and none goes on over the end of a line."""

    def __init__(self) -> None:
        self._text = self._space = ""
        self._open: tuple[EntityType, ...] = ()
        self._is_heading = False
        self._closed = False  # whether the last thing written is a fragile mark

    def write(self, runs: Sequence[Run]) -> str:
        """The runs with their marks."""
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
        if url:  # nothing in an address can be escaped, so marks in it would end those around it
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
        """Whether a mark would not be seen as one, directly behind what is there."""
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
    text = _SPECIAL.sub(r"\\\g<0>", text)
    return _FIRST.sub(r"\1\\\2", text, count=1) if begins_line and _FIRST.match(text) else text


def _link(words: str, url: str) -> str:
    words = words.replace("\\[", "[")
    if not WORDS.fullmatch(words):  # a part of words that had been cut
        return words.replace("[", "\\[")
    return f"[{words}]({_ODD.sub(lambda sign: f'%{ord(sign[0]):02X}', url)})"


def _code(text: str) -> str:
    """Between two backticks where it has some, none of them side by side: three would begin a block."""
    if "`" not in text:
        return f"`{text}`"
    return f"`` {re.sub('`(?=`)', f'`{_NOTHING}', text)} ``"


def _pre(text: str, language: str) -> str:
    known = language if _LANGUAGE.fullmatch(language) else ""
    inside = re.sub("``(?=`)", f"``{_NOTHING}", text)
    return f"```{known}\n{inside}\n```"
