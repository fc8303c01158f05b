"""Parses a shell command into the simple commands it is made of, with tree-sitter's grammar of bash.

The grammar accepts more than bash does, and reads some lines differently. So the tree is checked: between the parts of
a node there may only be blanks, each keyword stands by itself, each word is read a second time (`words`), and
here-documents are removed first and checked by their own rules. Whatever does not fit is reported as a miss.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from agent.shell.source import nodes_of
from agent.shell.walk import Parsed, Redirect, Walk
from agent.shell.words import Disagreement, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_CHARACTERS = 8_000
# The most signs of a command that the grammar takes long to read in great numbers, each time as long as all before it.
_MAX_SIGNS = 500
_MAX_NODES = 6_000
_MAX_DEPTH = 40

_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'(\w+)'|\"(\w+)\"|(\w+))(?=[\s;|&])", re.ASCII)
_REST_OF_LINE = re.compile(r"[\w ./|&;<>,:=@%+-]*\n", re.ASCII)
_SUBSTITUTION = re.compile(r"[$<]\(|`")  # inside of one, old shells end a here-document elsewhere
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_SIGNS = re.compile(r"[|<(]")
_EXPANDS = re.compile(r"[`\\]|\$[^A-Za-z_\s]")


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(command: str, folder: str, home: str | None) -> Parsed:
    """Parse a command that starts in `folder`. home: the value of `$HOME`, if known. Never raises."""
    parsed = Parsed()
    try:
        source = parsed.source = command.encode().decode("latin-1")
    except UnicodeEncodeError:
        parsed.misses.append("The command is not valid text.")
        return parsed
    try:
        if len(command) > MAX_CHARACTERS or len(_SIGNS.findall(command)) > _MAX_SIGNS:
            raise Disagreement("The command is too long to be analysed.")
        source = _without_heredocs(source, parsed)
        root = _tree(source)
        _check(root)
        Walk(source, root, parsed, folder, home).program(root)
    except Disagreement as reason:
        parsed.misses.append(str(reason))
    return parsed


def _tree(source: str) -> "Node":
    """Return the tree of a source in which a letter stands for each byte that is not ASCII.

    Such bytes are letters of words for the shell, but for some of them the grammar's scanner reads beyond its tables,
    which can crash this program.
    """
    return _parser().parse(_NOT_ASCII.sub("x", source).encode()).root_node


def _check(root: "Node") -> None:
    """Raise Disagreement for a tree with errors, or one that is too large."""
    if root.has_error:
        raise Disagreement("The command is not valid, or not in a way that is understood.")
    cursor, depth, count = root.walk(), 0, 0
    while True:
        count += 1
        if count > _MAX_NODES or depth > _MAX_DEPTH:
            raise Disagreement("The command is too large or too deeply nested to be analysed.")
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            depth -= 1


def _without_heredocs(source: str, parsed: Parsed) -> str:
    """Replace each here-document by a plain redirection and blank lines; the length of the source stays the same."""
    if "<<" not in source:
        return source
    at = 0
    for node in nodes_of(_tree(source), "heredoc_redirect"):
        if node.start_byte < at:
            raise Disagreement("Here-documents are understood one by one, each on a line of its own.")
        match = _HEREDOC.match(source, node.start_byte)
        line = match and _REST_OF_LINE.match(source, match.end())
        if not match or not line or "<<" in line[0] or _SUBSTITUTION.search(source, 0, match.start()):
            raise Disagreement("A here-document is not understood.")
        mark = match[2] or match[3] or match[4]
        end = re.compile(rf"^{'	*' if match[1] else ''}{mark}$", re.MULTILINE).search(source, line.end())
        if not end or (end.end() < len(source) and source[end.end()] != "\n"):
            raise Disagreement("A here-document does not end.")
        if match[4] and _EXPANDS.search(source, line.end(), end.start()):
            parsed.misses.append("A here-document is not plain text.")
        if match[4] and "$" in source[line.end() : end.start()]:
            parsed.redirects.append(Redirect("<<", Word("", exact=False, shown=match[0])))
        parsed.heredocs[match.start()] = source[line.end() : end.end()]
        body = re.sub(r"[^\n]", " ", source[line.end() : end.end()])
        operator = "<" + "_" * (match.end() - match.start() - 1)  # must be found as a redirection, by its place
        source = source[: match.start()] + operator + line[0] + body + source[end.end() :]
        at = end.end()
    return source
