"""Compares the source of a command with its tree: what stands between the parts of a node.

All methods raise Disagreement if the shell could read what stands there differently than the grammar does.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from agent.shell.words import Disagreement, utf8

if TYPE_CHECKING:
    from tree_sitter import Node

# A backslash that continues a line must follow a blank: else it could join words, or the halves of an operator.
BLANKS = re.compile(r"(?:[ \t]++(?:\\\n)?)*+")
BREAKS = re.compile(r"(?:[ \t\n]++(?:\\\n)?)*+")


class Source:
    """The source of a command as text with one character for each byte."""

    def __init__(self, raw: str) -> None:
        self._raw = raw

    def parts(self, node: "Node", operators: Sequence[str], count: int | None = None) -> list["Node"]:
        """Return the commands of a list. A line may break only after an operator. count: how many there must be."""
        at, after = self.span(node)[0], False
        for child in node.children:
            first, last = self.span(child)
            if not (BREAKS if after else BLANKS).fullmatch(self._raw, at, first):
                raise Disagreement("Something stands between commands that is not understood.")
            after, at = not child.is_named, last
            if after and child.type not in operators:
                raise Disagreement(f"`{child.type}` is not understood here.")
            if child.type == "!":
                self.keyword(child)
        named = node.named_children
        if not named or len(named) != (count or len(named)) or any(child.type == "comment" for child in named):
            raise Disagreement("A list of commands is not understood.")
        return named

    def gaps(self, nodes: Sequence["Node"]) -> None:
        """Check that nothing but at least one blank stands between the parts of a command."""
        for left, right in pairwise(nodes):
            first, last = self.span(left)[1], self.span(right)[0]
            redirect = left.type in ("<", ">", ">>", ">&", "<&", "&>", "&>>", ">|", "<<<", "<&-", ">&-")
            if not BLANKS.fullmatch(self._raw, first, last) or (first == last and not redirect):
                raise Disagreement("It is not clear where a word ends.")

    def keyword(self, node: "Node") -> None:
        first, last = self.span(node)
        before, after = self._raw[first - 1 : first], self._raw[last : last + 1]
        if node.type in ("(", "$(", "<(") and after == "(":
            raise Disagreement("It is not clear whether parentheses are arithmetic.")
        if node.type not in ("(", ")", "$(", "<(", "`") and not (
            before in ("", *" \t\n;|&(`") and after in ("", *" \t\n;|&)<>`")
        ):
            raise Disagreement(f"`{node.type}` is not understood here.")

    def comment(self, first: int, last: int) -> None:
        before, after = self._raw[first - 1 : first], self._raw[last : last + 1]
        if before not in ("", *" \t\n;&|(") or after not in ("", "\n") or "\n" in self._raw[first:last]:
            raise Disagreement("A comment is not understood.")

    def text(self, node: "Node") -> str:
        first, last = self.span(node)
        return utf8(self._raw[first:last])

    @staticmethod
    def span(node: "Node") -> tuple[int, int]:
        return node.start_byte, node.end_byte


def flat(node: "Node", kinds: Sequence[str]) -> list["Node"]:
    """Return the parts of a node; parts of these kinds are replaced by their own parts."""
    return [part for child in node.children for part in (flat(child, kinds) if child.type in kinds else [child])]


def nodes_of(root: "Node", *kinds: str) -> list["Node"]:
    """Return all nodes of these kinds, in their order in the source."""
    found, left = [], [root]
    while left:
        node = left.pop()
        if node.type in kinds:
            found.append(node)
        left.extend(reversed(node.children))
    return sorted(found, key=lambda node: node.start_byte)
