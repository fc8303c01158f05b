"""A shell command as the simple commands it is made of, read with tree-sitter's grammar of bash.

The grammar takes more than bash does, and reads some lines in another way. So nothing of the tree is believed: between
the parts of each node there may be blanks alone, each keyword stands by itself, each word is read a second time
(`words`), here-documents are taken out before and found again by their own rules. Whatever does not fit is a miss.
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
_MAX_NODES = 6_000
_MAX_DEPTH = 40

_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'(\w+)'|\"(\w+)\"|(\w+))(?=[\s;|&])", re.ASCII)
_REST_OF_LINE = re.compile(r"[\w ./|&;<>,:=@%+-]*\n", re.ASCII)
_SUBSTITUTION = re.compile(r"[$<]\(|`")  # in one, shells of age end a here-document elsewhere
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_EXPANDS = re.compile(r"[`\\]|\$[^A-Za-z_\s]")


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(command: str, folder: str, home: str | None) -> Parsed:
    """All simple commands of `command`, started in `folder`. home: what `$HOME` is, if known. Never raises."""
    parsed = Parsed()
    try:
        source = parsed.source = command.encode().decode("latin-1")
    except UnicodeEncodeError:
        parsed.misses.append("The command is not valid text.")
        return parsed
    try:
        if len(command) > MAX_CHARACTERS:
            raise Disagreement("The command is too long to be analysed.")
        source = _without_heredocs(source, parsed)
        root = _tree(source)
        _check(root)
        Walk(source, root, parsed, folder, home).program(root)
    except Disagreement as reason:
        parsed.misses.append(str(reason))
    return parsed


def _tree(source: str) -> "Node":
    """The tree, with a letter for each byte of characters that are not ASCII: these are letters of words for the shell,
    and the grammar's scanner reads beyond its tables for some of them, which may end this program."""
    return _parser().parse(_NOT_ASCII.sub("x", source).encode()).root_node


def _check(root: "Node") -> None:
    """Raises Disagreement about a tree with errors, or one that is too large to be walked."""
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
    """The source with a plain redirection and blank lines for each here-document, of the same length."""
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
