"""Words of a shell command: what their quoting and expansions come to, read from the source byte by byte.

This is a second reading beside the tree's: where the two disagree about what is quoted or where a word ends,
`Disagreement` is raised and nothing of the command is taken as understood.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["exact", "pattern", "pipe", "unknown"]

_SIMPLE = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!_-])", re.ASCII)
_NAMED = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
# Expansions that yield text and do nothing else, with a literal or nothing as their second part.
_BRACED = re.compile(r"\$\{(#?[A-Za-z_]\w*|([A-Za-z_]\w*)(:?[-+]|%%?|##?)[\w./*?,: @%+-]*)\}", re.ASCII)
# A sum that cannot fail: an error would end the line and not what comes after it. Names could evaluate more.
_ARITHMETIC = re.compile(r"\$\(\( ?[1-9]\d{0,5}( ?(\*\*|[+*-]) ?[1-9]\d{0,5})* ?\)\)")
_NOT_QUOTED = set(" \t\n;|&()<>")  # end a word
_DOTS = re.compile(r"\.\.|(^|/)\.[^/]*[*?\[]")  # a pattern that begins with a dot finds `..`


class Disagreement(Exception):
    """The text is not what the tree says, or not what this module understands. The message is a sentence."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a word becomes. text: all of it when exact, otherwise how it begins for certain, maybe not at all.

    A pattern becomes names of existing files, which begin with `text` and hold no `..` after it. A pipe is what `<(…)`
    becomes. one: it is a single word whatever happens. shown: its source. rest: of a pattern, what comes after `text`.
    """

    text: str
    kind: Kind = "exact"
    one: bool = True
    shown: str = ""
    rest: str = ""

    @property
    def exact(self) -> bool:
        return self.kind == "exact"

    def may_be_option(self) -> bool:
        """Whether it could begin with a hyphen."""
        return self.text.startswith("-") if self.text else not self.exact


class Reader:
    """Reads the word that stands between two places of a source, given as one character per byte."""

    def __init__(
        self,
        source: str,
        start: int,
        end: int,
        hole: Callable[[int], int],
        variables: Mapping[str, Word],
        assigned: bool,
    ) -> None:
        """hole: takes the position of `$(`, a backquote, `<(` or `${` and returns where that ends, having looked at
        what is inside; raises Disagreement when the tree has no such. assigned: what is assigned is not split."""
        self._source, self._start, self._end, self._at = source, start, end, start
        self._hole, self._variables, self._assigned = hole, variables, assigned
        self._text: list[str] = []
        self._sure: int | None = None  # how many of `_text` are certain, once something is not
        self._kind: Kind = "exact"
        self._one = True
        self._pipe = 0  # where the substitution ends that the word begins with
        self._plain: list[str] = []  # what is not quoted, for braces and `..`

    def word(self) -> Word:
        """Raises Disagreement."""
        if self._start >= self._end or self._source[self._start] == "#":
            raise Disagreement("It is not clear where a word begins.")
        if self._source[self._start] == "~" and not self._assigned:
            self._home()
        while self._at < self._end:
            self._unquoted(self._source[self._at])
        if self._at != self._end or (self._end < len(self._source) and self._source[self._end] not in "`\t\n ;|&()<>"):
            raise Disagreement("It is not clear where a word ends.")
        shown = utf8(self._source[self._start : self._end])
        in_braces = "".join(self._plain).partition("{")[2]
        if ("," in in_braces or ".." in in_braces) and not self._assigned:
            self._kind, self._one = "unknown", False
            self._sure = 0
            groups, runs = in_braces.count("{"), ".." in in_braces
            if groups > 1 or (groups and (runs or len(in_braces) > 60)) or (runs and re.search(r"\d{4}", in_braces)):
                raise Disagreement("Braces may become too many words.")
        if self._kind == "exact":
            return Word(utf8("".join(self._text)), "exact", True, shown)
        if shown.startswith("<(") and self._pipe == self._end:
            return Word("/dev/fd/", "pipe", True, shown)
        if self._kind == "pattern" and _DOTS.search("".join(self._text)):
            self._kind = "unknown"
        sure = "" if self._kind == "unknown" and not self._one else utf8("".join(self._text[: self._sure]))
        return Word(sure, self._kind, self._one, shown, utf8("".join(self._text[self._sure :])))

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
            if c in "*?[" and not self._assigned and not self._bracket_alone(c):
                self._uncertain("pattern", one=False)
            if c == "~" and self._assigned:
                self._uncertain("unknown", one=True)
            self._text.append(c)
            self._plain.append(c)
            self._at += 1

    def _bracket_alone(self, c: str) -> bool:
        return c == "[" and "]" not in self._source[self._at : self._end]

    def _escaped(self) -> None:
        """At a backslash. A line that it continues could make an expansion of what stands around it."""
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
        """At a `$`, a backquote or a `<`. quoted: by double quotes."""
        source, at = self._source, self._at
        if match := _SIMPLE.match(source, at, self._end) or _NAMED.match(source, at, self._end):
            self._at = match.end()
            self._variable(match[1], quoted or self._assigned)
        elif source.startswith(("$(", "${", "`", "<("), at):
            self._uncertain("unknown", one=quoted or self._assigned or source[at] == "<")
            match = _ARITHMETIC.match(source, at, self._end) or _BRACED.match(source, at, self._end)
            self._at = match.end() if match else self._hole(at)
            if at == self._start:
                self._pipe = self._at
        elif source[at] == "$" and (quoted or not source.startswith(("$'", '$"'), at)) and source[at : at + 2] != "$[":
            self._text.append("$")
            self._at += 1
        else:
            raise Disagreement("An expansion is not understood.")

    def _variable(self, name: str, whole: bool) -> None:
        """whole: it is not split into words."""
        value = self._variables.get(name)
        if value is None:
            return self._uncertain("unknown", one=whole and name != "@")
        if not whole and (not value.exact or not value.text or re.search(r"[\s*?\[\\]", value.text)):
            return self._uncertain("unknown", one=False)
        self._text.extend(value.text.encode().decode("latin-1"))
        if not value.exact:
            self._uncertain(value.kind, one=True)
            self._text.extend(value.rest.encode().decode("latin-1"))
        return None

    def _home(self) -> None:
        """A leading tilde."""
        home = self._variables.get("HOME")
        if home and self._source[self._start + 1 : self._end][:1] in ("", "/"):
            self._text.extend(home.text.encode().decode("latin-1"))
        else:
            self._uncertain("unknown", one=True)
        self._at += 1

    def _uncertain(self, kind: Kind, one: bool) -> None:
        """From here on the text is not known."""
        if self._sure is None:
            self._sure = len(self._text)
        if self._kind != "unknown":
            self._kind = kind
        self._one = self._one and one

    def _until(self, mark: str, start: int) -> str:
        end = self._source.find(mark, start, self._end)
        if end < 0:
            raise Disagreement("A quotation does not end.")
        return self._source[start:end]

    def _take(self, text: str) -> None:
        self._text.extend(text)
        self._at += len(text) + 2


def utf8(text: str) -> str:
    """The text of characters that are one byte each."""
    return text.encode("latin-1").decode("utf-8", "replace")
