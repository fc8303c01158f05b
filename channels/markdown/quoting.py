"""Markdown, part of which is to be seen as somebody's words: put into quotations, block by block.

What a block says is read from the tokens of the renderer, so that emphasis, entities, links and comments within a word
hide nothing. Code that stands in a block of its own is passed over: it is seen as what it is.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from markdown_it.token import Token

from channels.markdown.parse import parse, parser

_LINE = re.compile(r"\r\n?|\n")  # as the parser counts them
_CODE = ("fence", "code_block")


def quoted(markdown: str, looks: Callable[[str], bool]) -> str:
    """The same Markdown, with each outermost block in a quotation whose words `looks` says yes to.

    looks: is asked about the words that a block shows, without markup, a line for each of its lines, the targets of
    links included. Blocks that are quotations already stay as they are; Markdown without such a block is returned as it
    was given. Never fails.
    """
    lines, found = _LINE.split(markdown), False
    for first, last, tokens in _outermost(parse(markdown)[0]):
        shown = tokens[0].type == "blockquote_open" and tokens[0].markup == ">"
        if not shown and looks("\n".join(_said(tokens))):
            lines[first:last], found = [f"> {line}" for line in lines[first:last]], True
    return "\n".join(lines) if found else markdown


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """The same Markdown with its lines changed, but for those of blocks of code. change: keeps a line one line."""
    lines = _LINE.split(markdown)
    code = {number for token in parse(markdown)[0] if token.type in _CODE and token.map for number in range(*token.map)}
    return "\n".join(line if number in code else change(line) for number, line in enumerate(lines))


def _outermost(tokens: Sequence[Token]) -> Iterator[tuple[int, int, Sequence[Token]]]:
    """The first line of each outermost block, the line behind it, and its tokens."""
    begins = [number for number, one in enumerate(tokens) if one.level == 0 and one.nesting >= 0 and one.map]
    for begin, end in zip(begins, [*begins[1:], len(tokens)], strict=False):  # text may have no block
        first, last = tokens[begin].map or (0, 0)
        yield first, last, tokens[begin:end]


def _said(tokens: Sequence[Token]) -> Iterator[str]:
    """The words of blocks, those of code left out; the targets of links apart, for not every platform shows them."""
    for token in tokens:
        if token.type == "inline":
            yield _words(token.children or ())
            yield from map(_target, token.children or ())
        elif token.type == "definition":
            yield " ".join((token.meta["label"], token.meta["url"], token.meta["title"]))


def _words(tokens: Sequence[Token]) -> str:
    breaks = {"softbreak": "\n", "hardbreak": "\n"}
    return "".join(
        _words(one.children or ()) if one.type == "image" else breaks.get(one.type, one.content) for one in tokens
    )


def _target(token: Token) -> str:
    """Where a link or an image leads, as it is shown behind words that cannot be a link; else nothing."""
    address = token.attrs.get("href") or token.attrs.get("src")
    return parser().normalizeLinkText(str(address)) if address else ""
