"""Folders go with all that is in them, at any depth, apart from the event loop."""

import asyncio
import os
import threading
from pathlib import Path

from structlog.testing import capture_logs

from agent.removal import remove, remove_apart, remove_leftovers


def deep(folder: Path, depth: int = 3_000) -> None:
    """Make a chain of folders, longer than any path and deeper than the stack."""
    folder.mkdir()
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("x", dir_fd=inside)
        below = os.open("x", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = below
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
    os.close(inside)


def test_a_chain_of_folders_is_removed(tmp_path: Path) -> None:
    deep(tmp_path / "chain")
    assert remove(tmp_path / "chain") is None
    assert not (tmp_path / "chain").exists()


def test_names_that_are_taken_and_missing_rights_do_not_keep_anything(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for name in ("0/0/0", "1/0", "a/b/c"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("x")
    for name in ("a/b/c", "a/b", "a", "0"):
        (folder / name).chmod(0)
    folder.chmod(0o500)
    assert remove(folder) is None
    assert not folder.exists()


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(kept)
    (tmp_path / "alone").symlink_to(kept)
    assert remove(tmp_path / "folder") is None
    assert remove(tmp_path / "alone") is None
    assert remove(tmp_path / "missing") is None
    assert os.listdir(tmp_path) == ["kept"]
    assert (kept / "file").read_text() == "x"


def test_what_cannot_be_removed_is_returned_and_the_rest_goes(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    working = os.getcwd()
    try:
        os.chdir(folder)
        error = remove(Path("."))  # no system removes it by this name
    finally:
        os.chdir(working)
    assert error is not None
    assert not list(folder.iterdir())


async def test_the_loop_goes_on_while_a_folder_is_removed(tmp_path: Path) -> None:
    deep(tmp_path / "chain")
    turns, removing = 0, asyncio.create_task(remove_apart(tmp_path / "chain"))
    while not removing.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 2
    assert not (tmp_path / "chain").exists()


def test_leftovers_never_hinder_a_start(tmp_path: Path) -> None:
    deep(tmp_path / "commands")
    (tmp_path / "file").write_text("x")
    remove_leftovers(tmp_path)
    for thread in [one for one in threading.enumerate() if one.name == "removal"]:
        thread.join()
    assert os.listdir(tmp_path) == []
    remove_leftovers(tmp_path / "missing")
    (tmp_path / "file").write_text("x")
    remove_leftovers(tmp_path / "file")


def test_where_nothing_was_ever_left_nothing_is_said(tmp_path: Path) -> None:
    with capture_logs() as log:
        remove_leftovers(tmp_path / "commands")
    assert log == []
