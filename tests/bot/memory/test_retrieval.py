"""How well and how fast memories are found: 500 labelled questions in seven languages, and 100,000 entries."""

import time
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from agent.tools.workspace import Workspace
from bot.memory.index import Index
from bot.memory.ranking import ranked
from tests.bot.memory import ways
from tests.bot.memory.corpus import Question, corpus
from tests.examples import stride

SEED = 20260714
TODAY = date(2026, 7, 14)


def made(home: Path, files: dict[str, str]) -> Index:
    for path, text in files.items():
        file = home / "room" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (home / "state").mkdir()
    index = Index(home / "state", Workspace(home / "room"))
    index.refresh()
    return index


def missed(index: Index, questions: list[Question]) -> tuple[list[Question], list[float]]:
    """The questions whose answer is not among the first ten, and the CPU time of each search in milliseconds."""
    gone, took = [], []
    for one in questions:
        begin = time.thread_time()
        hits = ranked(index.find(one.text), {}, TODAY, 10)
        took.append((time.thread_time() - begin) * 1000)
        if not any(one.answer in hit.text for hit in hits):
            gone.append(one)
    return gone, sorted(took)


def check(gone: list[Question], asked: list[Question]) -> None:
    by_language = Counter(one.language for one in asked)
    found = {name: 1 - Counter(one.language for one in gone)[name] / count for name, count in by_language.items()}
    assert len(gone) <= 0.1 * len(asked), (SEED, found, gone[:10])
    assert min(found.values()) >= 0.8, (SEED, found)


def test_what_was_written_is_found_in_every_language(tmp_path: Path) -> None:
    files, questions = corpus(SEED, 500 // stride(3))
    gone, _ = missed(made(tmp_path, files), questions)
    check(gone, questions)


@pytest.mark.parametrize("kind", ways.WAYS)
def test_it_is_found_however_it_is_written(tmp_path: Path, kind: str) -> None:
    text, asked = ways.memory(SEED, 20)
    index = made(tmp_path, {"MEMORY.md": text})
    for question, answer in asked[kind]:
        hits = ranked(index.find(question), {}, TODAY, 3)
        assert any(answer in hit.text for hit in hits), (question, hits)


@pytest.mark.soak
def test_a_large_memory_is_searched_fast(tmp_path: Path) -> None:
    files, questions = corpus(SEED, 500, entries=100_000)
    gone, took = missed(made(tmp_path, files), questions)
    check(gone, questions)
    assert took[475] <= 20
