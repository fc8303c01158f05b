"""Discord Markdown as Discord's clients read it (simple-markdown with their rules), as an oracle.

The rules are tried at each position in their order; of those for emphasis the longest match wins. A list, a small line,
a mention, an emoji and a time are nothing that a rendered text may contain, so they show up as words of their own.
"""

import re

from tests.channels.markdown.reading import Seen, seen

_HEADING = re.compile(r" *(#{1,3})\s+((?:\\[\s\S]|[^\\])+?)#*\s*(?:\n|\Z)")
_SMALL = re.compile(r"-# +\S")
_LIST = re.compile(r" *(?:[*+-]|\d+\.) +\S")
_QUOTE = re.compile(r" *>>> +([\s\S]*)| *>(?!>>) +[^\n]*(?:\n *>(?!>>) +[^\n]*)*\n?")
_PRE = re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
_AUTOLINK = re.compile(r"<([^: >]+:/[^ >]+)>")
_SPECIAL = re.compile(
    r"<(?:@[!&]?\d+|#\d+|t:-?\d+(?::\w)?|a?:\w+:\d+|/[^:>]+:\d+|id:\w+)>|:(?:[+-]1|[a-z0-9]+(?:_[a-z0-9]+)*):", re.ASCII
)
_URL = re.compile(r"(?:https?|steam)://[^\s<]+[^<.,:;\"'\]\s]")
_LINK = re.compile(r"\[((?:\[[^\]]*\]|[^\[\]]|\](?=[^\[]*\]))*)\]\(\s*<?((?:\([^)]*\)|[^\s\\]|\\.)*?)>?\s*\)")
_EMPHASIS = {
    "italic": re.compile(
        r"_((?:__|\\[\s\S]|[^\\_])+?)_(?![A-Za-z0-9_])|\*(?=\S)((?:\*\*|\s+(?:[^*\s]|\*\*)|[^\s*])+?)\*(?!\*)"
    ),
    "bold": re.compile(r"\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)"),
    "underline": re.compile(r"__((?:\\[\s\S]|[^\\])+?)__(?!_)"),
}
_STRIKE = re.compile(r"~~([\s\S]+?)~~(?!_)")
_CODE = re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)")
_SPOILER = re.compile(r"\|\|([\s\S]+?)\|\|")
_TEXT = re.compile(r"[\s\S]+?(?=[^0-9A-Za-z\s\u00c0-\U0010ffff-]|\n\n|\n|\w+:\S|\Z)")
_LINE_BEGINS = re.compile(r"(?:\A|\n) *\Z")


def read(content: str, looks: frozenset[str] = frozenset()) -> Seen:
    """The characters of a message."""
    found: Seen = []
    at = 0
    while at < len(content):
        part, length = _next(content, at, looks)
        found += part
        at += length
    return found


def _next(source: str, at: int, looks: frozenset[str]) -> tuple[Seen, int]:
    if _LINE_BEGINS.search(source[:at]):
        if match := _HEADING.match(source, at):
            return read(match[2], looks | {f"heading{len(match[1])}"}), len(match[0])
        if match := _SMALL.match(source, at) or _LIST.match(source, at):
            return seen(f"⟦{match[0]}⟧"), len(match[0])
        if "quote" not in looks and (match := _QUOTE.match(source, at)):
            return read(re.sub(r"(?m)^ *>(?:>>)? ?", "", match[0]), looks | {"quote"}), len(match[0])
    if match := _PRE.match(source, at):
        return seen(match[2], looks | {"pre"}), len(match[0])
    if match := _ESCAPE.match(source, at):
        return seen(match[1], looks), len(match[0])
    if match := _AUTOLINK.match(source, at) or _URL.match(source, at):
        return seen(match[match.lastindex or 0], looks | {"link"}), len(match[0])
    if match := _SPECIAL.match(source, at):
        return seen(f"⟦{match[0]}⟧"), len(match[0])
    if (match := _LINK.match(source, at)) and "://" not in match[1]:
        return read(match[1], looks | {"link"}), len(match[0])
    emphasis = [
        (len(m[0]), -n, name, m) for n, (name, rule) in enumerate(_EMPHASIS.items()) if (m := rule.match(source, at))
    ]
    if emphasis:
        length, _, name, match = max(emphasis)
        return read(match[1] or match[2], looks | {name}), length
    if match := _STRIKE.match(source, at):
        return read(match[1], looks | {"strikethrough"}), len(match[0])
    if match := _CODE.match(source, at):
        return seen(re.sub(r"\A (?= *`)|(` *) \Z", r"\1", match[2]), looks | {"code"}), len(match[0])
    if match := _SPOILER.match(source, at):
        return read(match[1], looks | {"spoiler"}), len(match[0])
    match = _TEXT.match(source, at)
    assert match is not None
    return seen(match[0], looks), len(match[0])
