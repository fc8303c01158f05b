"""A second parser as witness: each command that shfmt finds in a line, the judge has found too, or covers nothing."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.shell import Judge, Judgement, Rule
from tests.shell import composed
from tests.shell.corpus import Line, Place, benign, bypass, make_place

_SHFMT = Path(sys.executable).with_name("shfmt")
_PLAIN = re.compile(r"[^\\*?\[\]{}~$`'\"]+")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="module")
def lenient(place: Place) -> Judge:
    """Every program has a rule, so that as many lines as can be are covered and shfmt asked about them."""
    return place.judge([Rule("/*")])


def called(command: str) -> Counter[str] | None:
    """The commands with a literal first word, by name; None: shfmt cannot parse it."""
    run = subprocess.run([_SHFMT, "-ln", "bash", "-tojson"], input=command.encode(), capture_output=True, check=False)
    return Counter(_names(json.loads(run.stdout))) if run.returncode == 0 else None


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for entry in node:
            yield from _names(entry)
    elif isinstance(node, dict):
        if node.get("Type") == "CallExpr" and node.get("Args") and (name := _literal(node["Args"][0]["Parts"])):
            yield name
        for entry in node.values():
            yield from _names(entry)


def _literal(parts: list[dict[str, Any]]) -> str | None:
    """What the word says; None: that is only known when it runs."""
    said = []
    for part in parts:
        match part:
            case {"Type": "Lit", "Value": text} if _PLAIN.fullmatch(plain := re.sub(r"\\(\n|(.))", r"\2", text)):
                said.append(plain)
            case {"Type": "SglQuoted", "Value": text} if not part.get("Dollar"):
                said.append(text)
            case {"Type": "DblQuoted", "Parts": [{"Type": "Lit", "Value": text}]} if _PLAIN.fullmatch(text):
                said.append(text)
            case _:
                return None
    return "".join(said)


def unseen(command: str, judgement: Judgement) -> str:
    """What shfmt finds in a covered command and the judge did not, in words; empty: nothing."""
    calls = called(command)
    if calls is None:
        return f"shfmt cannot parse what is covered: {command!r}"
    found = Counter(words[0].rsplit("/", 1)[-1] for words in judgement.commands if words)
    real = Counter(Path(words[0]).resolve().name for words in judgement.commands if words and words[0][0] == "/")
    missed = {}
    for name, times in calls.items():
        plain = name.rsplit("/", 1)[-1]
        if max(found[plain], real[plain]) < times:
            missed[name] = times
    return f"{command!r}: not seen {missed}, seen {dict(found)}" if missed else ""


def _all_seen(lines: Sequence[Line], place: Place, lenient: Judge) -> int:
    """How many of these were covered, and so compared."""
    covered = [(line, place.judged(lenient, line.command)) for line in lines]
    covered = [(line, judgement) for line, judgement in covered if judgement.covered]
    missed = [unseen(line.command, judgement) for line, judgement in covered]
    assert not any(missed), "\n".join(filter(None, missed))
    return len(covered)


def test_what_shfmt_finds_in_a_sample_of_the_corpora_has_been_seen(place: Place, lenient: Judge) -> None:
    assert _all_seen(benign()[::5], place, lenient) > 50


@pytest.mark.soak
def test_what_shfmt_finds_in_the_corpora_has_been_seen(place: Place, lenient: Judge) -> None:
    assert _all_seen([*benign(), *bypass()], place, lenient) > 250


@given(line=composed.lines(changing=True))
def test_what_shfmt_finds_in_composed_lines_has_been_seen(line: str, place: Place, lenient: Judge) -> None:
    judgement = place.judged(lenient, line)
    assert not judgement.covered or not unseen(line, judgement)


@given(line=composed.mutated(st.sampled_from([line.command for line in benign()]) | composed.lines(changing=True)))
def test_what_shfmt_finds_in_mutated_lines_has_been_seen(line: str, place: Place, lenient: Judge) -> None:
    judgement = place.judged(lenient, line)
    assert not judgement.covered or not unseen(line, judgement)
