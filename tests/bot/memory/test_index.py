"""The index over the memory of one room: always as the files are, and made anew where it is damaged."""

import os
from datetime import date
from pathlib import Path

import pytest

from agent.tools.workspace import Workspace
from bot.memory.index import Index
from bot.memory.ranking import ranked


@pytest.fixture
def index(tmp_path: Path) -> Index:
    (tmp_path / "state").mkdir()
    (tmp_path / "room" / "memory").mkdir(parents=True)
    return Index(tmp_path / "state", Workspace(tmp_path / "room"))


def found(index: Index, question: str) -> list[str]:
    """The paths with lines of what is found."""
    hits = ranked(question, index.find(question), {}, date(2026, 7, 14), 10)
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
