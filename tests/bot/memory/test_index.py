"""The index over the memory of one room: always as the files are, and made anew where it is damaged."""

import os
import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import watchfiles
import watchfiles.main

from agent.memory.base import MemoryUnavailable
from agent.tools.workspace import Workspace
from bot.memory import terms
from bot.memory.index import Index
from bot.memory.ranking import ranked
from tests.bot.memory.test_embeddings import recalled, write
from tests.service import Hark, running


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here alone memories are watched, see conftest.py."""
    monkeypatch.setattr(watchfiles, "awatch", watchfiles.main.awatch)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    (tmp_path / "state").mkdir()
    (tmp_path / "room" / "memory").mkdir(parents=True)
    return Index(tmp_path / "state", Workspace(tmp_path / "room"))


def found(index: Index, question: str) -> list[str]:
    """The paths with lines of what is found."""
    hits = ranked(index.find(question), {}, date(2026, 7, 14), 10)
    return [f"{hit.path}:{hit.first}-{hit.last}" for hit in hits]


def test_what_is_written_changed_and_deleted_is_known_at_once(index: Index) -> None:
    file = index.room.root / "memory" / "a.md"
    file.write_text("- the cat is grey\n")
    assert found(index, "cat") == ["memory/a.md:1-1"]
    before = file.stat()
    file.write_text("- the dog is grey\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same size, and as old as before
    assert found(index, "cat") == []
    assert found(index, "dog") == ["memory/a.md:1-1"]
    file.unlink()
    assert found(index, "dog") == []


def test_a_damaged_index_is_made_anew(index: Index, tmp_path: Path) -> None:
    (index.room.root / "MEMORY.md").write_text("# Pets\n\n- the cat\n  is grey\n")
    assert found(index, "grey cats") == ["MEMORY.md:3-4"]
    (damaged,) = (tmp_path / "state").glob("memory-*.db")
    damaged.write_bytes(b"no database" * 1000)
    assert found(index, "grey cats") == ["MEMORY.md:3-4"]


def test_links_and_folders_below_are_no_memory(index: Index, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("- the cat\n")
    (index.room.root / "memory" / "b.md").symlink_to(tmp_path / "secret.md")
    (index.room.root / "memory" / "pending").mkdir()
    (index.room.root / "memory" / "pending" / "c.md").write_text("- the cat\n")
    assert found(index, "cat") == []


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of pieces that are cut into words, which is most of the work of reading a file."""
    seen: list[str] = []

    def indexed(text: str) -> list[str]:
        seen.append(text)
        return terms.indexed(text)

    monkeypatch.setattr("bot.memory.index.terms", SimpleNamespace(**vars(terms) | {"indexed": indexed}))
    return seen


def stop_half_read(index: Index) -> None:
    """Let another index of the same room be closed while it reads."""
    half = Index(index._path.parent, index.room)

    def closes(text: str) -> list[str]:
        half.close()
        return terms.indexed(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bot.memory.index.terms.indexed", closes)
        with pytest.raises(MemoryUnavailable):
            half.refresh()


def test_reading_a_large_file_ends_when_it_is_told_and_goes_on_later(index: Index, cut: list[str]) -> None:
    file = index.room.root / "MEMORY.md"
    file.write_text("".join(f"- entry{number}\n" for number in range(3000)) + "- the cat\n")
    index.close()
    with pytest.raises(MemoryUnavailable):
        index.refresh()
    assert cut == []
    stop_half_read(index)
    last = Index(index._path.parent, index.room)
    assert found(last, "cat") == ["MEMORY.md:3001-3001"]
    assert 0 < len(cut) < 2 * 3001 - 100, "what was read before is not read again"


def test_of_a_file_that_has_grown_only_the_new_is_read(index: Index, cut: list[str]) -> None:
    file = index.room.root / "MEMORY.md"
    file.write_text("- one\n- two\n- three\n")
    index.refresh()
    cut.clear()
    file.write_text("- one\n- two\n- cat\n- dog\n")
    assert found(index, "dog") == ["MEMORY.md:4-4"]
    assert found(index, "three") == []
    assert [text for text in cut if text.startswith("- ")] == ["- cat", "- dog"]


def test_a_file_that_changes_while_it_is_half_read_is_made_whole(index: Index, cut: list[str]) -> None:
    """Also where it becomes what it was before that."""
    file = index.room.root / "MEMORY.md"
    pages = ["".join(f"- {word}{number}\n" for number in range(1200)) for word in ("a", "b")]
    file.write_text(pages[0])
    index.refresh()
    file.write_text(pages[1])
    stop_half_read(index)
    file.write_text(pages[0])
    last = Index(index._path.parent, index.room)
    assert found(last, "a7") == ["MEMORY.md:8-8"]
    assert found(last, "a1199") == ["MEMORY.md:1200-1200"]
    assert found(last, "b7") == []


# The index of a room that was searched follows its files by itself, without another search.


def known(hark: Hark) -> dict[str, str]:
    """What the indexes know by the paths of its files; files without a piece have no text."""
    found: dict[str, str] = {}
    for path in hark.state.glob("memory-*.db"):
        with sqlite3.connect(path) as db:
            pieces = "SELECT path, coalesce(group_concat(text, ' | '), '') FROM file LEFT JOIN piece USING (file_id)"
            found |= dict(db.execute(f"{pieces} GROUP BY file_id").fetchall())
        db.close()
    return found


async def searched(hark: Hark) -> None:
    """Search the room of the owner once, from when on it is watched."""
    write(hark, "MEMORY.md", "- the first\n")
    await hark.say("something", answers=["hm"])
    await hark.until(lambda: known(hark) == {"MEMORY.md": "- the first"}, "the index")


async def follows(hark: Hark, change: Callable[[], object], expected: dict[str, str]) -> None:
    """Make a change again and again until it is noticed: when watching begins is not known."""

    def noticed() -> bool:
        change()
        return known(hark) == expected

    await hark.until(noticed, f"{expected} in the index")
    assert len(hark.model.requests) == 1, "nobody searched"


def replaced(path: Path, text: str) -> None:
    """Write a file as editors do: another one takes its place."""
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text)
    os.replace(beside, path)


async def test_edits_new_files_names_and_ends_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.memory.service._STEP", 5)
    monkeypatch.setattr("bot.memory.service._DEBOUNCE", 20)
    async with running(tmp_path) as hark:
        await searched(hark)
        main, folder = write(hark, "MEMORY.md", "- the second\n"), hark.state.parent / "workspace" / "memory"
        await follows(hark, main.touch, {"MEMORY.md": "- the second"})
        await follows(hark, lambda: replaced(main, "- the third\n"), {"MEMORY.md": "- the third"})
        day = write(hark, "memory/a.md", "- a day\n")  # in a folder that was not there
        await follows(hark, lambda: None, {"MEMORY.md": "- the third", "memory/a.md": "- a day"})
        day.rename(folder / "b.md")
        await follows(hark, lambda: None, {"MEMORY.md": "- the third", "memory/b.md": "- a day"})
        (folder / "b.md").unlink()
        (folder / "note.txt").write_text("no memory")
        await follows(hark, lambda: None, {"MEMORY.md": "- the third"})
        for number in range(300):
            (folder / f"{number}.md").write_text(f"- flood {number}\n")
            (folder / f"{number - 1}.md").unlink(missing_ok=True)
        await follows(hark, lambda: None, {"MEMORY.md": "- the third", "memory/299.md": "- flood 299"})


async def test_memory_that_cannot_be_watched_is_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fails(*paths: Any, **_: Any) -> Any:
        tried.append(paths)
        raise OSError("no space left for watches")

    monkeypatch.setattr(watchfiles, "awatch", fails)
    async with running(tmp_path) as hark:
        await searched(hark)
        await hark.until(lambda: tried, "the watch")
        write(hark, "MEMORY.md", "- the plumber is called Okonkwo\n")
        await hark.say("who is the plumber?", answers=["hm"])
        assert "Okonkwo" in "".join(recalled(hark))
