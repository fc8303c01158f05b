"""The read-only table, `read_only.toml`: whether a command with these words reads, and does nothing else.

Options are taken as GNU's getopt takes them: anywhere before `--`, short ones combined, values attached or in the next
word. What is not in the table is not harmless, abbreviations of long options included.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from agent.shell.words import Word

_NUMBER = re.compile(r"-\d+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One command; see `read_only.toml` for the fields."""

    does: Literal["text", "names", "reads"] = "text"
    any: bool = False
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    several: dict[str, int] = field(default_factory=dict)
    most: int | None = None
    only: str = ""
    unless: str = ""
    needs: frozenset[str] = frozenset()
    recursive: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    subcommands: bool = False
    program: str = ""
    programs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a harmless command reads. operands: its words that are no options, and values of options."""

    does: str
    operands: tuple[Word, ...]
    recursive: bool
    follows: bool


class Harmful(Exception):
    """Not in the table; the message is a sentence."""


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / "read_only.toml").read_text("utf-8"))


def names(group: str) -> frozenset[str]:
    """A group of `[names]` in the file."""
    return frozenset(_file()["names"][group].split())


@cache
def _table() -> dict[str, Entry]:
    raw = _file()
    table = {name: Entry(does=does, any=True) for does, names in raw["any"].items() for name in names.split()}
    for name, fields in raw["options"].items():
        table[name] = _entry(raw["options"], fields)
    return table


def _entry(options: dict[str, Any], fields: dict[str, Any]) -> Entry:
    values = dict(fields)
    base = _entry(options, options[values.pop("like")]) if "like" in values else Entry()
    merged: dict[str, Any] = {name: getattr(base, name) for name in Entry.__dataclass_fields__}
    for name, value in values.items():
        merged[name] = merged[name] | set(value.split()) if isinstance(merged[name], frozenset) else value
    return Entry(**merged)


def harmless(name: str, words: Sequence[Word]) -> Reading:
    """What `name` with these words behind it reads. Raises Harmful."""
    entry, known = _table().get(name), name
    first = next((at for at, word in enumerate(words) if not (word.exact and word.text.startswith("-"))), None)
    if entry and entry.subcommands and first is not None:
        _Options(name, entry).take(words[:first])
        for last in (first + 2, first + 1):
            known = " ".join([name, *(word.text if word.exact else word.shown for word in words[first:last])])
            if (entry := _table().get(known)) and all(word.exact for word in words[first:last]):
                return _Options(known, entry).take(words[last:])
        entry = None
    if entry is None:
        raise Harmful(f"`{known}` is not on the list of allowed commands.")
    return _Options(known, entry).take(words)


class _Options:
    """The words of one command, sorted into options and operands."""

    def __init__(self, name: str, entry: Entry) -> None:
        self._name, self._entry = name, entry
        self._programmed = not entry.program

    def take(self, words: Sequence[Word]) -> Reading:
        entry, operands, seen, literal = self._entry, list[Word](), set[str](), False
        positional = 0
        left = iter(words)
        for word in left:
            if word.exact and word.text == "--" and not literal:
                literal = True
            elif literal or word.text == "-" or not word.may_be_option():
                positional += 1 if word.one else 1000
                if not self._programmed:
                    self._program(word)
                    continue
                operands.append(word)
                if entry.only and not (word.exact and re.fullmatch(entry.only, word.text, re.DOTALL)):
                    raise Harmful(f"`{self._name}` with `{word.shown}` is not known to be harmless.")
            elif word.kind == "pattern" and word.text.endswith("=") and word.text[:-1] in entry.patterns:
                continue
            elif entry.any or (entry.patterns and word.kind == "pattern"):
                operands.append(word)
            elif not word.exact:
                raise Harmful(f"What is made of `{word.shown}` may be an option of `{self._name}`.")
            else:
                seen.update(self._option(word, left, operands))
        if entry.most is not None and positional > entry.most:
            raise Harmful(f"`{self._name}` with so many words is not known to be harmless.")
        if entry.unless and re.search(entry.unless, " ".join(word.text for word in words)):
            raise Harmful(f"`{self._name}` with these words is not known to be harmless.")
        if entry.needs and not entry.needs & seen:
            raise Harmful(f"`{self._name}` without one of {', '.join(sorted(entry.needs))} may write.")
        recursive, follows = (bool(some & {"*", *seen}) for some in (entry.recursive | entry.follows, entry.follows))
        return Reading(entry.does, (*operands, *([Word(".")] if recursive else [])), recursive or follows, follows)

    def _option(self, word: Word, left: Iterator[Word], operands: list[Word]) -> Iterator[str]:
        """The options of one word; takes values from the words behind it."""
        entry, text = self._entry, word.text
        if text in entry.flags or (_NUMBER.fullmatch(text) and "-#" in entry.flags):
            yield text
            return
        if text in entry.several:
            for _ in range(entry.several[text]):
                self._value(word, next(left, None), operands)
            return
        if text.startswith("--") or text in entry.values:
            name, equals, value = text.partition("=")
            if name not in entry.values:
                raise self._unknown(text)
            if equals:
                self._given(name, Word(value, shown=word.shown), operands)
            else:
                self._value(word, next(left, None), operands)
            yield name
            return
        for at, letter in enumerate(text[1:], 1):
            option = f"-{letter}"
            if option in entry.values:
                if text[at + 1 :]:
                    self._given(option, Word(text[at + 1 :], shown=word.shown), operands)
                else:
                    self._value(word, next(left, None), operands)
                yield option
                return
            if option not in entry.flags:
                raise self._unknown(text)
            yield option

    def _value(self, option: Word, value: Word | None, operands: list[Word]) -> None:
        """A value that looks like an option may be one to another version of the program."""
        if value is None or not value.exact or (value.text.startswith("-") and not _NUMBER.fullmatch(value.text)):
            raise Harmful(f"What `{option.shown}` of `{self._name}` is given is not known to be harmless.")
        self._given(option.text if option.text.startswith("--") else f"-{option.text[-1]}", value, operands)

    def _given(self, option: str, value: Word, operands: list[Word]) -> None:
        if option in self._entry.programs:
            self._program(value)
        else:
            operands.append(value)

    def _program(self, word: Word) -> None:
        if not (word.exact and re.fullmatch(self._entry.program, word.text, re.VERBOSE)):
            raise Harmful(f"What `{self._name}` does with `{word.shown}` is not analysed.")
        self._programmed = True

    def _unknown(self, text: str) -> Harmful:
        return Harmful(f"`{text}` of `{self._name}` is not known to be harmless.")
