"""Takes files of the memory apart into pieces that each say one thing, with the lines where they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# The most characters of a piece, and of the headings and items above it.
LONGEST, ABOVE = 1500, 200
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r" {0,3}(#{1,6})\s++((?:.*[^\s#])?)[\s#]*")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_RULE = re.compile(r"[\s\-=*_|:`~]*")
# A line that is shorter, or ends like this, is not continued by the next one.
_WRAPPED = 60
_ENDS = tuple(".!?:;。！？：；।")


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that is written down."""

    # The first and the last line, from 1.
    first: int
    last: int
    text: str
    # The headings and items above it, on one line.
    above: str


def pieces(text: str) -> Iterator[Piece]:
    """Yield the items, sentences on lines of their own, and paragraphs of a file; headings and comments are none."""
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    above: list[tuple[int, str]] = []  # headings by their level below zero, items by their indentation
    begun: list[str] = []
    first, over = 0, ""

    def ended() -> Iterator[Piece]:
        whole, begin = "\n".join(begun), first
        for at in range(0, len(whole), LONGEST):
            part = whole[at : at + LONGEST]
            yield Piece(begin, begin + part.rstrip("\n").count("\n"), part.strip(), over)
            begin += part.count("\n")
        begun.clear()

    for number, line in enumerate(text.splitlines() if "\r" in text else text.split("\n"), 1):
        heading, item = _HEADING.fullmatch(line), _ITEM.fullmatch(line)
        apart = heading or item or _RULE.fullmatch(line) or (begun and _is_over(begun[-1], line))
        if apart and begun:
            yield from ended()
        if heading:
            above = [one for one in above if one[0] < len(heading[1]) - 10]
            above.append((len(heading[1]) - 10, heading[2]))
        elif not _RULE.fullmatch(line):
            if not begun:
                indent = len(item[1].expandtabs(4)) if item else 0
                above = [one for one in above if one[0] < (indent if item else 0)]
                first, over = number, " › ".join(words for _, words in above)[-ABOVE:]
                if item:
                    above.append((indent, " ".join(item[2].split())))
            begun.append(line.strip())
    if begun:
        yield from ended()


def _is_over(before: str, line: str) -> bool:
    """Whether a line begins something new behind another one, which is no item and no heading."""
    if line[:1].isspace():
        return False
    return len(before) < _WRAPPED or before.endswith(_ENDS)
