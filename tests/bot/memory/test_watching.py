"""The index of a room that was searched follows its files by itself, without another search."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import watchfiles
import watchfiles.main

from tests.bot.memory.test_recall import recalled, write
from tests.service import Hark, running


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here alone memories are watched, see conftest.py."""
    monkeypatch.setattr(watchfiles, "awatch", watchfiles.main.awatch)


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
    hark.model.add("hm")
    await hark.say("something")
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
        hark.model.add("hm")
        await hark.say("who is the plumber?")
        assert "Okonkwo" in "".join(recalled(hark))
