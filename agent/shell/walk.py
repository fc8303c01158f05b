"""Walks the tree of a command and collects what it runs: simple commands, each with its folder, and redirections.

The tree is checked on the way: only blanks may stand between the parts of a node, each keyword stands by itself, and
each word is read a second time (`words`). Disagreement is raised where that is not so.

A `cd` changes the folder of what follows if it runs exactly once whatever happens: as a plain statement without
redirections. A `cd` anywhere else raises Disagreement.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.shell.source import BREAKS, Source, flat, nodes_of
from agent.shell.words import Disagreement, Reader, Word, a_set, utf8

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_COMMANDS = 100
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
_RESERVED = a_set("if then else elif fi do done case esac while until for in function select coproc time { } ! [[ ]]")
_OPENING = frozenset(("if", "then", "else", "elif", "do", "{", "(", "$(", "<(", "`", "while", "until"))
_CLOSING = frozenset(("then", "else", "elif", "fi", "do", "done", "}"))  # after a separator alone
_SEPARATORS = frozenset((";", "&", "\n"))
_WORDS = a_set(
    "word string raw_string ansi_c_string translated_string concatenation simple_expansion expansion number "
    "command_substitution process_substitution brace_expression arithmetic_expansion variable_name"
)
_TESTS = ("unary_expression", "binary_expression", "negated_expression")
_SETS_HOME = re.compile(r"(?<![\w$])(?<!\$\{)HOME\b", re.ASCII)  # the name without `$`: HOME may be set
_PLAIN_PATTERN = re.compile(r"[\w.*?/=:@%+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection."""

    # Without the number of a descriptor. `<<` stands for a here-document that expands variables.
    operator: str
    # The word after the operator.
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command."""

    words: tuple[Word, ...]
    # The folder in which it starts.
    folder: str
    # The source of its input: earlier commands of the pipeline, and redirections of input with the text of
    # here-documents, also those of the statements around it.
    fed: str


@dataclass(slots=True)
class Parsed:
    """What a command runs, as far as it was understood."""

    commands: list[Simple] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    # Variables that the line sets, also those for a single command.
    assigned: list[tuple[str, Word]] = field(default_factory=list)
    # Sentences that say why the command was not understood; empty: it was.
    misses: list[str] = field(default_factory=list)
    # The text of each here-document, by its position in the source.
    heredocs: dict[int, str] = field(default_factory=dict)
    # The command as text with one character for each byte.
    source: str = ""


class Walk:
    """Collects what one command runs. All methods raise Disagreement."""

    def __init__(self, source: str, root: "Node", parsed: Parsed, folder: str, home: str | None) -> None:
        """source: one character for each byte. parsed: collects what is found. home: the value of `$HOME`, if known."""
        self._raw = source
        self._source = Source(source)
        self._parsed = parsed
        self._home = None if _SETS_HOME.search(source) else home
        holes = nodes_of(root, "command_substitution", "process_substitution")
        self._holes = {node.start_byte: node for node in reversed(holes)}
        self._folder = folder
        self._left = set(parsed.heredocs)  # here-documents that were not found again yet
        self._fed = ""
        self._substituted = False
        self._top = True  # whether the present statement runs exactly once in its process

    def program(self, root: "Node") -> None:
        first, last = self._source.span(root)
        if BREAKS.fullmatch(self._raw, 0, first) is None or BREAKS.fullmatch(self._raw, last) is None:
            raise Disagreement("Something stands outside of what was understood.")
        self._sequence(root)
        if self._left:
            raise Disagreement("A here-document is not understood.")

    # --- lists ---

    def _sequence(self, node: "Node") -> None:
        """Walk statements, what separates them, and the keywords around them."""
        separated, opened, at = True, False, self._source.span(node)[0]
        for child in flat(node, ("else_clause", "elif_clause")):
            first, last = self._source.span(child)
            gap = BREAKS.fullmatch(self._raw, at, first)
            if not gap:
                raise Disagreement("Something stands between commands that is not understood.")
            separated = separated or "\n" in gap[0].replace("\\\n", "")
            kind, at = child.type, last
            if kind == "comment" and not self._substituted:
                self._source.comment(first, last)
            elif child.is_named:
                if not separated or kind == "comment":
                    raise Disagreement("It is not clear where a command ends.")
                background = child.next_sibling is not None and child.next_sibling.type == "&"
                self._apart(child) if background else self._statement(child)
                separated = opened = False
            elif kind in _SEPARATORS:
                separated = True
            elif kind in _OPENING or kind in _CLOSING or kind in (")", "`"):
                if kind in _CLOSING and not separated:
                    raise Disagreement(f"`{kind}` stands where it may be an argument.")
                if opened:
                    raise Disagreement(f"Nothing stands before `{kind}`.")
                self._source.keyword(child)
                separated = opened = kind in _OPENING
            else:
                raise Disagreement(f"`{kind}` is not understood here.")
        if not BREAKS.fullmatch(self._raw, at, self._source.span(node)[1]):
            raise Disagreement("Something stands between commands that is not understood.")

    def _statement(self, node: "Node") -> None:
        kind = node.type
        if kind in ("command", "test_command"):
            self._simple(node, ())
        elif kind == "redirected_statement":
            self._redirected(node)
        elif kind == "list":
            self._list(node)
        elif kind == "pipeline":
            self._pipeline(*self._source.parts(node, ("|", "|&")))
        elif kind in ("variable_assignment", "variable_assignments"):
            self._assign(node)
        elif kind == "negated_command":
            for child in self._source.parts(node, ("!",)):
                self._statement(child)
        elif kind == "compound_statement" and node.children[0].type == "{":
            self._sequence(node)
        elif kind == "subshell":
            self._apart(node)
        elif kind in ("if_statement", "while_statement", "do_group"):
            self._maybe(self._sequence, node)
        elif kind == "for_statement" and node.children[0].type == "for":
            self._for(node)
        else:
            raise Disagreement(f"This part of the shell's language is not analysed: {kind.replace('_', ' ')}.")

    def _list(self, node: "Node") -> None:
        """Walk `a && b` or `a || b`, of which the second may run or not."""
        first, second = self._source.parts(node, ("&&", "||"), 2)
        self._statement(first)
        self._maybe(self._statement, second)

    def _pipeline(self, first: "Node", *rest: "Node") -> None:
        """Walk a pipeline, each part of which runs in a process of its own.

        The grammar takes `a && b < f` of `a && b < f | c` for one part, while the shell runs `a` itself.
        """
        if _ends_in_list(first):
            self._statement(first)
        else:
            self._apart(first)
        for part in rest:
            if _ends_in_list(part) or self._raw.startswith("!", self._source.span(part)[0]):
                raise Disagreement("It is not clear what a pipeline is made of.")
            with self._reading(self._said(self._source.span(first)[0], self._source.span(part)[0])):
                self._apart(part)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Add to the input of the commands that are walked in this context."""
        was, self._fed = self._fed, f"{self._fed}{what}"
        yield
        self._fed = was

    def _maybe(self, look: Callable[["Node"], None], node: "Node") -> None:
        """Walk what runs once, several times, or not at all."""
        was, self._top = self._top, False
        look(node)
        self._top = was

    def _apart(self, node: "Node") -> None:
        """Walk what runs in a process of its own, and so changes no folder for what follows."""
        before = self._folder, self._top, self._substituted
        self._top = True
        self._substituted = self._substituted or node.type.endswith("_substitution")
        if node.type == "subshell" or node.type.endswith("_substitution"):
            self._sequence(node)
        else:
            self._statement(node)
        self._folder, self._top, self._substituted = before

    def _for(self, node: "Node") -> None:
        """Walk a loop that runs its body once for each word."""
        children = node.children
        names = [child for child in children if child.type in _WORDS]
        self._source.gaps(children[: children.index(names[-1]) + 1])
        body = children[-1]
        head = utf8(self._raw[self._source.span(names[-1])[1] : self._source.span(body)[0]])
        if not re.fullmatch(r"[ \t]*[;\n][ \t\n]*", head) or body.type != "do_group" or len(names) < 2:
            raise Disagreement("A loop is not understood.")
        for keyword in (children[0], children[2]):
            self._source.keyword(keyword)
        for child in names[1:]:
            self._word(child)
        self._parsed.assigned.append((self._source.text(names[0]), Word("", exact=False)))
        self._maybe(self._sequence, body)

    def _redirected(self, node: "Node") -> None:
        children = [child for child in node.children if child.type != "comment"]
        redirects = [child for child in children if child.type.endswith("_redirect")]
        body = [child for child in children if child not in redirects]
        self._source.gaps(children)
        if not body:
            self._redirects(redirects)
        elif body[0] is not children[0] or len(body) != 1:
            raise Disagreement("A redirection is not understood.")
        elif body[0].type in ("command", "test_command"):
            self._simple(body[0], redirects)
        else:
            with self._reading(self._given(redirects)):
                if body[0].type in ("list", "pipeline"):  # it is one of the last command alone
                    self._statement(body[0])
                else:
                    self._maybe(self._statement, body[0])
            self._redirects(redirects)

    # --- simple commands ---

    def _simple(self, node: "Node", redirects: Sequence["Node"]) -> None:
        words = list[Word]()
        children = flat(node, _TESTS) if node.type == "test_command" else node.children
        self._source.gaps([*children])
        own = [child for child in children if child.type.endswith("_redirect")]
        fed = self._fed + self._given([*own, *redirects])
        for child in children:
            if child in own:
                self._redirects([child])
            elif child.type == "variable_assignment" and not words and node.type == "command":
                self._parsed.assigned.append(self._assignment(child))
            elif child.type in _WORDS or child.type == "command_name":
                words.append(self._word(child))
            elif child.type in ("test_operator", "extglob_pattern", "regex") or not child.is_named:
                text = self._source.text(child)
                if not child.is_named or child.type == "test_operator" or _PLAIN_PATTERN.fullmatch(text):
                    words.append(Word(text, shown=text))
                else:
                    raise Disagreement("A test is not understood.")
            else:
                raise Disagreement(f"`{child.type}` is not understood in a command.")
        self._redirects(redirects)
        if not words:
            raise Disagreement("A command without a name is not understood.")
        name = words[0].shown
        if name in _RESERVED and node.type != "test_command":
            raise Disagreement(f"`{name}` is not understood here.")
        if node.type == "command" and "=" in name:
            raise Disagreement("It is not clear whether something is a command or an assignment.")
        if len(self._parsed.commands) >= _MAX_COMMANDS:
            raise Disagreement("The command is made of too many commands to be analysed.")
        self._parsed.commands.append(Simple(tuple(words), self._folder, fed))
        if words[0].text == "cd":
            plain = self._top and len(words) == 2 and words[1].exact and words[1].text[:1] not in ("", "-")
            found = _plain_folder(self._folder, words[1].text) if plain and not redirects and not own else None
            if not found:
                raise Disagreement("It is not known in which folder the rest would run.")
            self._folder = found

    def _given(self, nodes: Iterable["Node"]) -> str:
        """Return the source of those redirections that are input."""
        return "".join(self._said(*self._source.span(node)) for node in nodes if "<" in self._source.text(node))

    def _said(self, first: int, last: int) -> str:
        """Return the source between two positions, with the text of the here-documents that begin there."""
        heredocs = (text for at, text in self._parsed.heredocs.items() if first <= at < last)
        return utf8("\n".join((self._parsed.source[first:last], *heredocs)))

    def _redirects(self, nodes: Iterable["Node"]) -> None:
        """Collect redirections. Words after a target are refused, since bash takes them as words of the command."""
        for node in nodes:
            children = node.children
            operator = children[1] if children[0].type == "file_descriptor" else children[0]
            number = "".join(self._source.text(child) for child in children[: children.index(operator)])
            at = self._source.span(operator)[0]
            if number and not (number.isdigit() and self._source.span(children[0])[1] == at):
                raise Disagreement("A redirection is not understood.")
            if self._raw[: at - len(number)][-1:] not in ("", *" \t\n;|&)"):
                raise Disagreement("A redirection that follows a word without a blank is not understood.")
            targets = children[children.index(operator) + 1 :]
            self._source.gaps(children[children.index(operator) :])
            if len(targets) != 1 or targets[0].type not in _WORDS:
                raise Disagreement("A redirection is not understood.")
            target = self._word(targets[0])
            if at in self._left:
                self._left.discard(at)
            else:
                self._parsed.redirects.append(Redirect(operator.type, target))

    def _assign(self, node: "Node") -> None:
        nodes = [node] if node.type == "variable_assignment" else node.children
        self._source.gaps(nodes)
        for child in nodes:
            self._parsed.assigned.append(self._assignment(child))

    def _assignment(self, node: "Node") -> tuple[str, Word]:
        first, last = self._source.span(node)
        match = _ASSIGNMENT.match(self._raw, first, last)
        if not match:
            raise Disagreement("An assignment is not understood.")
        value = self._read(match.end(), last, assigned=True) if match.end() < last else Word("")
        return match[1], value

    # --- words and text ---

    def _read(self, first: int, last: int, assigned: bool = False) -> Word:
        return Reader(self._raw, first, last, self._hole, self._home, assigned).word()

    def _word(self, node: "Node") -> Word:
        return self._read(*self._source.span(node))

    def _hole(self, at: int) -> int:
        """Look into the substitution that begins there; where it ends."""
        node = self._holes.get(at)
        if node is None:
            raise Disagreement("A substitution is not understood.")
        first, last = self._source.span(node)
        text = self._raw[first:last]
        if text.startswith("`") and ("\\" in text or "`" in text[1:-1]):
            raise Disagreement("Backquotes within backquotes are not understood.")
        self._apart(node)
        return last


def _ends_in_list(node: "Node") -> bool:
    while node.type in ("redirected_statement", "negated_command", "pipeline") and node.named_children:
        node = node.named_children[0]
    return node.type == "list"


def _plain_folder(folder: str, path: str) -> str | None:
    """Return the folder that a path leads to from another folder; None: it does not exist, or a link is on the way."""
    full = os.path.normpath(os.path.join(folder, path))
    try:
        plain = os.path.realpath(full) == full == os.path.realpath(os.path.join(folder, path))
        return full if plain and os.path.isdir(full) and os.access(full, os.X_OK) else None
    except (OSError, ValueError):
        return None
