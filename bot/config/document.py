"""A configuration file as a plain tree that remembers where everything stood, and the `.env` file beside it.

YAML 1.2 (so `on` is a text and JSON is accepted), read by ruamel.yaml down to its nodes; variables are put in
here, duplicate keys and missing variables are found here. Knows no key by name. Called by `load`.
"""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from agent.message import well_formed
from bot.config.errors import ConfigError, KeyPath, Problem

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"

_VALUES = YAML(typ="safe", pure=True).constructor
_VARIABLE = re.compile(
    r"\$(?:\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}\n]*))?\}"
    r"|\$(?P<literal>\{[^}\n]*\}?)|(?P<bad>\{[^}\n]*\}?))",
    re.ASCII,
)
# Variables travel through the parser as one private character each, so that `[${KEY}]` is a list of one text
# and the value of a variable is never read as YAML.
_FIRST_MARK = 0xE000
_MOST_VARIABLES = 0xF8FF - _FIRST_MARK
_MARK = re.compile("[\ue000-\uf8ff]")
_NO_VARIABLE = "not a variable; allowed: ${NAME}, ${NAME:-default}, $${ for a plain ${"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a value stood: its line, counted from 1, and what it looked like before variables were put in."""

    line: int
    written: str
    is_text: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that stands in a file, or is what a command writes."""

    kind: Literal["file", "command"]
    # The path, with its variables put in; or the command as it is written, whose variables the shell puts in.
    text: str
    # The variables that the command names, the only secrets of the environment that it gets.
    variables: tuple[str, ...]


@dataclass(slots=True)
class Document:
    """What a configuration file holds, the place of each path in it, and what is wrong with it."""

    # The name of the file as its owner would write it.
    file: str
    tree: dict[str, Tree] = field(default_factory=dict)
    places: dict[KeyPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    # Paths that have no value, because an environment variable is missing.
    unset: set[KeyPath] = field(default_factory=set)
    # What stands elsewhere, and the variables that the rest of the document names.
    references: dict[KeyPath, Reference] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def put(self, key: KeyPath, value: str | None) -> None:
        """Set the value at a key that was written."""
        above: Any = self.tree
        for part in key[:-1]:
            above = above[part]
        above[key[-1]] = value

    def add(self, text: str, line: int | None = None, key: KeyPath = (), *, unset: bool = False) -> None:
        """A mistake of the document itself, before any key has a meaning. line: None for the whole file."""
        self.problems.append(Problem(self.file, line, key, text, unset))

    def report(self, text: str, key: KeyPath) -> None:
        """A mistake at a key, in the line where that or what is above it was written."""
        written = (self.places.get(key[:length]) for length in range(len(key), 0, -1))
        self.add(text, next((place.line for place in written if place), None), key)

    def refuse(self) -> None:
        """Raises ConfigError with all mistakes in the order of the file, when there are any."""
        order = {key: number for number, key in enumerate(self.places)}
        found = sorted(set(self.problems), key=lambda p: (p.line or 0, order.get(p.key, -1), p.text))
        if found:
            raise ConfigError(tuple(found))


def read_document(text: str, environ: Mapping[str, str], file: str) -> Document:
    """Parse `text`, putting `${NAME}` and `${NAME:-default}` in from `environ`; `$${` is a literal `${`.

    Never raises for what the text holds: a file that is no YAML gives an empty tree and one problem.
    """
    document = Document(file)
    variables = list(_VARIABLE.finditer(text))
    if len(variables) > _MOST_VARIABLES or _MARK.search(text):
        document.add("too many variables, or characters for private use")
        return document
    marks = (chr(_FIRST_MARK + number) for number in range(len(variables)))
    try:
        root = YAML(typ="safe", pure=True).compose(_VARIABLE.sub(lambda _: next(marks), text))
        if root is None or (isinstance(root, ScalarNode) and _plain(root) is None):
            return document
        if not isinstance(root, MappingNode):
            document.add("the file must be a mapping of keys to values", _line(root))
            return document
        tree = _Reader(document, environ, variables).value(root, (), _line(root))
        assert isinstance(tree, dict)
        document.tree = tree
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        complaint = ", ".join(part for part in (error.context, error.problem) if part)
        document.add(f"not valid YAML: {_without_content(complaint)}", line)
    except YAMLError:
        document.add("not valid YAML: it holds characters that no text may hold")
    except RecursionError:
        document.add("too deep or too large for a configuration")
    return document


def mark_variables(text: str) -> tuple[str, Callable[[str], str]]:
    """Return a text with one private character for each variable, and what puts the variables back into another one."""
    written: dict[str, str] = {}

    def mark(found: re.Match[str]) -> str:
        written[letter := chr(_FIRST_MARK + len(written))] = found[0]
        return letter

    marked = _VARIABLE.sub(mark, text)
    return marked, lambda other: _MARK.sub(lambda found: written.get(found[0], found[0]), other)


class _Reader:
    """Walks the nodes of one document; what it finds goes into `document`."""

    def __init__(self, document: Document, environ: Mapping[str, str], variables: Sequence[re.Match[str]]) -> None:
        self._document = document
        self._environ = environ
        self._variables = variables

    def value(self, node: Node, path: KeyPath, line: int) -> Tree:
        if isinstance(node, MappingNode):
            self._document.places[path] = Position(line, "a mapping", False)
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            self._document.places[path] = Position(line, "a list", False)
            return [self.value(item, (*path, i), _line(item)) for i, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, path, line)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            line = _line(key_node)
            if not isinstance(key_node, ScalarNode):
                self._document.add("a key must be a text", line, path)
                continue
            key = _MARK.sub(lambda mark: self._variable(mark)[0], str(key_node.value))
            below = (*path, key)
            if key in result:
                first = self._document.places[below].line
                self._document.add(f"written twice; the first one is in line {first}", line, below)
                continue
            result[key] = self.value(value_node, below, line)
        return result

    def _scalar(self, node: ScalarNode, path: KeyPath, line: int) -> Tree:
        value = _plain(node)
        written = _MARK.sub(lambda mark: self._variable(mark)[0], well_formed(str(node.value)))
        self._document.places[path] = Position(line, written or "nothing", isinstance(value, str))
        if not isinstance(value, str):
            return value
        kind, _, rest = value.partition(":")
        if kind == "command" and rest:
            names = tuple(name for mark in _MARK.finditer(rest) if (name := self._variable(mark)["name"]))
            raw = _MARK.sub(lambda mark: self._variable(mark)[0].replace("$${", "${"), rest)
            self._document.references[path] = Reference("command", raw.strip(), names)
            return value
        text = self._with_variables(value, path, line)
        if kind == "file" and rest and text is not None:
            self._document.references[path] = Reference("file", text.partition(":")[2].strip(), ())
        return text

    def _variable(self, mark: re.Match[str]) -> re.Match[str]:
        return self._variables[ord(mark[0]) - _FIRST_MARK]

    def _with_variables(self, text: str, path: KeyPath, line: int) -> str | None:
        flaws: list[str] = []

        def put_in(mark: re.Match[str]) -> str:
            variable = self._variable(mark)
            name, default = variable["name"], variable["default"]
            if variable["literal"]:
                return "$" + variable["literal"]
            if variable["bad"]:
                flaws.append(_NO_VARIABLE)
                return ""
            self._document.named.add(name)
            found = self._environ.get(name)
            if not found and default is None:
                state = "empty" if found == "" else "not set"
                flaws.append(f"the environment variable {name} is {state}")
            return found or default or ""

        result = _MARK.sub(put_in, text)
        for flaw in flaws:
            self._document.add(flaw, line, path, unset=flaw != _NO_VARIABLE)
            self._document.unset.add(path)
        return None if flaws else result


def _plain(node: ScalarNode) -> Tree:
    """The value of a scalar under YAML 1.2's core schema; what is none of its types stays text."""
    if str(node.tag).removeprefix("tag:yaml.org,2002:") in ("null", "bool", "int", "float"):
        with contextlib.suppress(ValueError, LookupError):
            return _VALUES.construct_object(node)  # type: ignore[no-any-return]
    return well_formed(str(node.value))  # JSON may hold half a surrogate pair, and YAML leaves the halves apart


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _without_content(complaint: str) -> str:
    """The parser's complaint without what it quotes of the file, which may be part of a secret."""
    harmless = re.compile(r"'(?:<[a-z ]+>|.{0,2})'")
    return re.sub(r"'[^']*'", lambda part: part[0] if harmless.fullmatch(part[0]) else "...", complaint)


# The name of the file beside the configuration whose variables the shell need not have.
VARIABLES = ".env"


def read_variables(file: Path, label: str) -> dict[str, str]:
    """The variables in the file, none where there is no file. Values are taken as they are written.

    Raises ConfigError, which shows nothing of the file.
    """
    if not file.is_file():  # a folder of that name is somebody's environment of Python
        return {}
    from dotenv.parser import parse_stream  # most have none

    found = list(parse_stream(StringIO(read_text(file, label))))
    lines = (
        one.original.line + _blank(one.original.string) for one in found if one.error or (one.key and not one.value)
    )
    problems = tuple(Problem(label, line, (), "not NAME=value with a value, nor a comment (# …)") for line in lines)
    if problems:
        raise ConfigError(problems)
    return {one.key: one.value for one in found if one.key and one.value}


def read_text(file: Path, label: str) -> str:
    """The text of a file of the configuration. Raises ConfigError when it cannot be read, or is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        problem = "not a text in UTF-8"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'unknown error'}"
    raise ConfigError((Problem(label, None, (), problem),))


def _blank(text: str) -> int:
    """How many blank lines an entry begins with."""
    return text[: len(text) - len(text.lstrip())].count("\n")
