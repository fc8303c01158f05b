"""Reads the words of a shell command, with their quotes and expansions, from the source byte by byte.

This is a second reading, independent of the tree. If both disagree about what is quoted or where a word ends,
`Disagreement` is raised, and the command counts as not understood.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

_SIMPLE = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!_-])", re.ASCII)
_NAMED = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
# Expansions that only yield text, with a literal or nothing as their second part.
_BRACED = re.compile(r"\$\{(#?[A-Za-z_]\w*|([A-Za-z_]\w*)(:?[-+]|%%?|##?)[\w./*?,: @%+-]*)\}", re.ASCII)
# Arithmetic that cannot fail, because an error would end the line. Names are excluded, because they can evaluate more.
_ARITHMETIC = re.compile(r"\$\(\( ?[1-9]\d{0,5}( ?(\*\*|[+*-]) ?[1-9]\d{0,5})* ?\)\)")
_NOT_QUOTED = set(" \t\n;|&()<>")  # these end a word


class Disagreement(Exception):
    """The text differs from the tree, or is not understood. The message is a sentence."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a word of a command becomes."""

    # The value; empty when it is not exact.
    text: str
    # Whether it becomes exactly one word whose value is known before anything runs.
    exact: bool = True
    # The source of the word.
    shown: str = ""


class Reader:
    """Reads the word between two positions of a source with one character for each byte."""

    def __init__(
        self, source: str, start: int, end: int, hole: Callable[[int], int], home: str | None, assigned: bool
    ) -> None:
        """hole: walks the substitution at a position of `$(`, a backquote, `<(` or `${` and returns where it ends;
        raises Disagreement when the tree has none there. home: the value of `$HOME`, if known. assigned: whether the
        word is the value of a variable, which is not split."""
        self._source, self._start, self._end, self._at = source, start, end, start
        self._hole, self._home, self._assigned = hole, home, assigned
        self._text: list[str] = []
        self._exact = True
        self._plain: list[str] = []  # what is not quoted, to find braces

    def word(self) -> Word:
        """Read the word. Raises Disagreement."""
        if self._start >= self._end or self._source[self._start] == "#":
            raise Disagreement("It is not clear where a word begins.")
        if self._source[self._start] == "~" and not self._assigned:
            self._tilde()
        while self._at < self._end:
            self._unquoted(self._source[self._at])
        if self._at != self._end or (self._end < len(self._source) and self._source[self._end] not in "`\t\n ;|&()<>"):
            raise Disagreement("It is not clear where a word ends.")
        in_braces = "".join(self._plain).partition("{")[2]
        if ("," in in_braces or ".." in in_braces) and not self._assigned:
            self._exact = False
        shown = utf8(self._source[self._start : self._end])
        return Word(utf8("".join(self._text)) if self._exact else "", self._exact, shown)

    def _unquoted(self, c: str) -> None:
        if c in _NOT_QUOTED and not (c == "<" and self._source.startswith("<(", self._at)):
            raise Disagreement("It is not clear where a word ends.")
        if c == "'":
            self._take(self._until("'", self._at + 1))
        elif c == '"':
            self._quoted()
        elif c == "\\":
            self._escaped()
        elif c in "$`<":
            self._expansion(quoted=False)
        else:
            pattern = c in "*?" or (c == "[" and "]" in self._source[self._at : self._end])
            home = c == "~" and (self._assigned or self._source[self._at - 1] in "=:")
            if home or (pattern and not self._assigned):
                self._exact = False
            self._text.append(c)
            self._plain.append(c)
            self._at += 1

    def _escaped(self) -> None:
        """Read a backslash and what it quotes. It may not continue a line, which could join parts of an expansion."""
        if self._at + 1 >= self._end or self._source[self._at + 1] == "\n":
            raise Disagreement("A word goes on in the next line.")
        self._text.append(self._source[self._at + 1])
        self._at += 2

    def _quoted(self) -> None:
        self._at += 1
        while (c := self._source[self._at : self._at + 1]) != '"':
            if not c or self._at >= self._end:
                raise Disagreement("A quotation does not end.")
            if c in "$`":
                self._expansion(quoted=True)
            elif c == "\\" and self._source[self._at + 1] in '$`"\\\n':
                self._escaped()
            else:
                self._text.append(c)
                self._at += 1
        self._at += 1

    def _expansion(self, quoted: bool) -> None:
        """Read what begins with a `$`, a backquote or a `<`. quoted: whether it stands in double quotes."""
        source, at = self._source, self._at
        if match := _SIMPLE.match(source, at, self._end) or _NAMED.match(source, at, self._end):
            self._at = match.end()
            self._variable(match[1], quoted or self._assigned)
        elif source.startswith(("$(", "${", "`", "<("), at):
            self._exact = False
            match = _ARITHMETIC.match(source, at, self._end) or _BRACED.match(source, at, self._end)
            self._at = match.end() if match else self._hole(at)
        elif source[at] == "$" and (quoted or not source.startswith(("$'", '$"'), at)) and source[at : at + 2] != "$[":
            self._text.append("$")
            self._at += 1
        else:
            raise Disagreement("An expansion is not understood.")

    def _variable(self, name: str, whole: bool) -> None:
        """Add the value of a variable, if it is known. whole: whether it is neither split into words nor a pattern."""
        value = self._home if name == "HOME" else None
        if value is None or not (whole or re.fullmatch(r"[^\s*?\[\\]+", value)):
            self._exact = False
        else:
            self._text.extend(value.encode().decode("latin-1"))

    def _tilde(self) -> None:
        """Read a `~` at the beginning of the word."""
        if self._home and self._source[self._start + 1 : self._end][:1] in ("", "/"):
            self._text.extend(self._home.encode().decode("latin-1"))
        else:
            self._exact = False
        self._at += 1

    def _until(self, mark: str, start: int) -> str:
        end = self._source.find(mark, start, self._end)
        if end < 0:
            raise Disagreement("A quotation does not end.")
        return self._source[start:end]

    def _take(self, text: str) -> None:
        self._text.extend(text)
        self._at += len(text) + 2


def utf8(text: str) -> str:
    """Decode UTF-8 from a text with one character for each byte."""
    return text.encode("latin-1").decode("utf-8", "replace")


def a_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())
