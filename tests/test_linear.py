"""No words cost more than their length: each expression and each function that takes a text is pumped.

Measured is processor time of this process, the best of three, and only above 20 ms.
"""

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, get_origin

import pytest

from tests.pumps import LENGTH, expressions, modules, pumps, worst

pytestmark = pytest.mark.skipif(os.environ.get("LINEAR") != "all", reason="takes long: LINEAR=all runs it")


def run(pattern: re.Pattern[str], methods: frozenset[str]) -> Callable[[str], object]:
    """Return what uses an expression as the product does."""
    if methods <= {"match", "fullmatch"}:
        return lambda text: [getattr(pattern, name)(text) for name in methods]
    return lambda text: [None for _ in pattern.finditer(text)]


# Expressions whose texts are short, with their length, by place: where their texts are cut.
BOUNDED = {
    "agent.bridge._": 400,  # the end of what was said
    "agent.calls.claims._PATTERNS": 400,  # a sentence
    "agent.calls.claims._OPEN": 400,
    "agent.calls.claims._EARLIER": 400,
    "agent.calls.claims.unfounded": 6_000,  # both ends of an answer
    "agent.calls.claims._unquoted": 6_000,
    "agent.compaction.identifiers._IDENTIFIER": 500,  # a word
    "agent.shell.": 8_000,  # a command line
    "bot.telemetry.shapes._GOES_ON": 130,  # the end of a piece, see `unfinished`
}
# The operator's own words, and the terminal of somebody who may do everything.
TRUSTED = ("bot.config.", "bot.cli.", "bot.reload.")


# Expressions that are only asked at the beginning of a text, where the source does not show it.
MATCHED = ("heartbeat.spoken.",)
# Where only what the service has written itself can match, and what a function guards that is pumped below.
OWN = ("bot.store.words_of.", "agent.calls.claims._QUOTED", "agent.shell.parse._tree", "agent.workspace_files._COMMENT")


def length(place: str) -> int:
    return next((most for begins, most in BOUNDED.items() if place.startswith(begins)), LENGTH)


def test_each_expression_takes_time_as_its_text_is_long() -> None:
    found = {place: one for place, one in expressions().items() if not place.startswith(TRUSTED + OWN)}
    for place, (pattern, _) in found.items():
        if place.startswith(MATCHED):
            found[place] = pattern, frozenset({"match"})
    assert len(found) > 200
    said = {place: worst(run(*one), pumps(one[0]), length(place)) for place, one in found.items()}
    assert {place: why for place, why in said.items() if why} == {}


# Marks and words of which texts are made that are hard to read, alone; and what such marks follow.
MARKS = (
    *"<[(*_`|#-:.\\\"'1a \n",
    *(
        "> ",
        "- ",
        "a ",
        "*]",
        "[a](",
        "![",
        "||",
        "\n|a",
        "$$",
        "```",
        "<!--",
        "<details>",
        "://",
        "„",
        "\u200b",
        "{a,",
    ),
)
MADE = (*(("", mark) for mark in MARKS), ("<", " "))
# Parameters that hold what others write, and those that are given along.
TEXTS = (
    "text words word markdown content source written beginning begun line name command label pattern arguments result"
    " details sentence typed given message value url address expression head title gap sent wanted said body"
)
# What acts, or belongs to the operator, or must be made first; and what others' words never reach.
LEFT_OUT = (
    *(
        "agent.sandbox.",
        "agent.removal.",
        "agent.programs.",
        "agent.mcp.connection.",
        "bot.config.",
        "bot.cli.",
        "bot.furniture.",
    ),
    *(
        "bot.reload.",
        "bot.mcp.",
        "channels.registry.",
        "channels.section.",
        "channels.settings.",
        "bot.wording.",
        "bot.store.codec.",
        "bot.voice.",
    ),
)


def arguments(function: Callable[..., object]) -> dict[str, object] | None:
    """Return what a function is given besides its text, None where that is more than words and numbers."""
    given = dict[str, object]()
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        kind = parameter.annotation
        if place == 0 or parameter.default is not inspect.Parameter.empty or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        origin = get_origin(kind)
        if kind in (str, int, float, bool):
            given[parameter.name] = kind(1)
        elif isinstance(origin, type) and issubclass(origin, Collection):
            given[parameter.name] = {} if issubclass(origin, Mapping) else ()
        elif origin is Callable:
            given[parameter.name] = lambda *words: words[0] if words else ""
        else:
            return None
    return given


def functions() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield the functions whose first parameter holds a text."""
    for module, _ in modules():
        for name, one in vars(module).items():
            place = f"{module.__name__}.{name}"
            if not inspect.isfunction(one) or one.__module__ != module.__name__ or place.startswith(LEFT_OUT + OWN):
                continue
            parameters = list(inspect.signature(one).parameters.values())
            if not parameters or parameters[0].name not in TEXTS.split() or inspect.iscoroutinefunction(one):
                continue
            if parameters[0].annotation is str and (given := arguments(one)) is not None:
                yield place, partial(called, one, parameters[0], given)


def called(one: Callable[..., Any], parameter: inspect.Parameter, given: dict[str, object], text: str) -> object:
    """Call a function with a text, and exhaust what it yields."""
    by_place = parameter.kind is not parameter.KEYWORD_ONLY
    made = one(text, **given) if by_place else one(**{parameter.name: text}, **given)
    return list(made) if inspect.isgenerator(made) else made


def test_each_function_takes_time_as_its_text_is_long() -> None:
    found = dict(functions())
    assert len(found) > 120
    said = {place: worst(work, MADE, length(place)) for place, work in found.items()}
    assert {place: why for place, why in said.items() if why} == {}
