"""No path leaves the workspace, whoever renames things in between; a write is whole or has not happened."""

import asyncio
import itertools
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agent.tools.workspace import MAX_FILE_BYTES, IsFolder, Workspace, WorkspaceError

SECRET = b"outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a file in a folder, and beside it a secret."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_bytes(SECRET)
    root = tmp_path / "workspace"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").write_bytes(b"inside")
    return root


def read(workspace: Workspace, path: str) -> bytes:
    with workspace.open(path) as file:
        return file.read()


@pytest.mark.parametrize("path", ["folder/file", "./folder//file", "folder/../folder/file", "missing/../folder/file"])
def test_reads_what_is_inside(root: Path, path: str) -> None:
    assert read(Workspace(root), path) == b"inside"


def test_absolute_paths_inside_are_accepted_by_each_name_of_the_root(root: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    workspace = Workspace(alias)
    assert read(workspace, f"{root}/folder/file") == b"inside"
    assert read(workspace, f"{alias}/folder/../folder/file") == b"inside"


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret/file",
        "folder/../../secret/file",
        "/etc/passwd",
        "/",
        "{root}/../secret/file",
        "{root}-x",
        "~/file",
    ],
)
async def test_paths_that_leave_are_refused_for_reading_and_writing(root: Path, path: str) -> None:
    workspace, path = Workspace(root), path.format(root=root)
    with pytest.raises(WorkspaceError, match="outside the workspace"):
        read(workspace, path)
    with pytest.raises(WorkspaceError, match="outside the workspace"):
        workspace.listing(path)
    with pytest.raises(WorkspaceError, match="outside the workspace"):
        await workspace.write(path, b"x", "overwrite")
    assert (root.parent / "secret" / "file").read_bytes() == SECRET


@pytest.mark.parametrize("path", ["a\x00b", "\ud800", "x" * 300])
def test_names_that_no_file_has_are_refused(root: Path, path: str) -> None:
    with pytest.raises(WorkspaceError):
        read(Workspace(root), path)


@pytest.mark.parametrize("target", ["../secret", "folder", "{root}/folder", "loop"])
async def test_a_link_is_not_followed_wherever_it_points(root: Path, target: str) -> None:
    (root / "loop").symlink_to(target.format(root=root))
    workspace = Workspace(root)
    for path in ("loop", "loop/file"):
        with pytest.raises(WorkspaceError, match="symbolic link"):
            read(workspace, path)
        with pytest.raises(WorkspaceError, match="symbolic link"):
            await workspace.write(path, b"x", "overwrite")
        with pytest.raises(WorkspaceError, match="symbolic link"):
            workspace.listing("loop")
        with pytest.raises(WorkspaceError, match="symbolic link"):
            workspace.folder("loop")
    assert (root.parent / "secret" / "file").read_bytes() == SECRET
    assert (root / "folder" / "file").read_bytes() == b"inside"


def test_pipes_and_devices_are_refused_without_waiting_for_them(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(WorkspaceError, match="not a regular file"):
        read(Workspace(root), "pipe")
    with pytest.raises(WorkspaceError, match="not a regular file"):
        Workspace(root).write_now("pipe", b"x", "overwrite")
    with pytest.raises(WorkspaceError, match="not a regular file"):
        read(Workspace(Path("/dev")), "null")


def test_errors_name_no_path_of_the_host(root: Path) -> None:
    workspace = Workspace(root)
    for path in ("missing", "folder/file/below", "missing/file", "pipe/x"):
        with pytest.raises(WorkspaceError) as caught:
            read(workspace, path)
        assert str(root) not in str(caught.value)
        assert path.split("/")[0] in str(caught.value)


def test_too_large_files_are_refused(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(WorkspaceError, match="at most"):
        read(Workspace(root), "large")
    with (root / "full").open("wb") as file:
        file.truncate(MAX_FILE_BYTES)
    with pytest.raises(WorkspaceError, match="are allowed"):
        Workspace(root).write_now("full", b"x", "append")
    assert (root / "full").stat().st_size == MAX_FILE_BYTES


def test_a_folder_is_told_as_such_and_listed(root: Path) -> None:
    workspace = Workspace(root)
    (root / "link").symlink_to("folder")
    (root / os.fsdecode(b"bad\xff\n")).touch()
    for path in (".", "folder", ""):
        with pytest.raises(IsFolder):
            read(workspace, path)
    assert workspace.listing(".") == [
        "bad�� (0 bytes)",
        "folder/",
        "link (symbolic link, not followed)",
    ]
    assert workspace.listing("folder") == ["file (6 bytes)"]
    with pytest.raises(WorkspaceError, match="not a folder"):
        workspace.listing("folder/file")


async def test_write_makes_folders_and_files_for_the_owner_only(root: Path) -> None:
    written = await Workspace(root).write("new/deep/file", b"words", "create")
    assert (written.path, written.created, written.size) == ("new/deep/file", True, 5)
    assert stat.S_IMODE((root / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "new/deep/file").stat().st_mode) == 0o600
    assert os.listdir(root / "new/deep") == ["file"]


async def test_write_modes(root: Path) -> None:
    workspace = Workspace(root)
    (root / "folder" / "file").chmod(0o640)
    with pytest.raises(WorkspaceError, match="exists already"):
        await workspace.write("folder/file", b"x", "create")
    assert (await workspace.write("folder/file", b" more", "append")).size == 11
    assert read(workspace, "folder/file") == b"inside more"
    assert not (await workspace.write("folder/file", b"new", "overwrite")).created
    assert read(workspace, "folder/file") == b"new"
    assert stat.S_IMODE((root / "folder/file").stat().st_mode) == 0o640
    for path in ("folder", ".", "folder/"):
        with pytest.raises(IsFolder):
            await workspace.write(path, b"x", "overwrite")


async def test_what_a_crash_left_behind_is_swept_up_by_the_next_write(root: Path) -> None:
    (root / ".hark-write.tmp").write_bytes(b"half")
    await Workspace(root).write("file", b"whole", "create")
    assert sorted(os.listdir(root)) == ["file", "folder"]


async def test_simultaneous_appends_all_arrive(root: Path) -> None:
    workspace = Workspace(root)
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(workspace.write("log", b"%d\n" % number, "append"))
    assert sorted(int(line) for line in read(workspace, "log").split()) == list(range(20))


async def test_once_cancelled_a_write_does_not_happen_any_more(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, go_on, left = threading.Event(), threading.Event(), threading.Event()
    fsync, unlink = os.fsync, os.unlink

    def slow_disk(fd: int) -> None:
        reached.set()
        assert go_on.wait(10)
        fsync(fd)

    def told(path: str, *, dir_fd: int | None = None) -> None:
        unlink(path, dir_fd=dir_fd)
        left.set()

    monkeypatch.setattr(os, "fsync", slow_disk)
    monkeypatch.setattr(os, "unlink", told)
    task = asyncio.create_task(Workspace(root).write("folder/file", b"changed", "overwrite"))
    await asyncio.to_thread(reached.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (root / "folder/file").read_bytes() == b"inside"
    go_on.set()
    assert await asyncio.to_thread(left.wait, 10)
    assert (root / "folder/file").read_bytes() == b"inside"
    assert os.listdir(root / "folder") == ["file"]


@contextmanager
def swapping(folder: Path, aside: Path, outside: Path) -> Iterator[threading.Event]:
    """While the block runs, `folder` is by turns the folder itself, nothing, and a link to `outside`."""
    stop, swapped = threading.Event(), threading.Event()

    def swap() -> None:
        turns = itertools.count()
        while not stop.is_set():
            os.rename(folder, aside)
            with suppress(FileExistsError):  # a write has just made the folder anew
                os.symlink(outside, folder)
                swapped.set()
                os.unlink(folder)
            while aside.exists():
                try:
                    os.rename(aside, folder)
                except OSError:
                    os.rename(folder, f"{aside}-{next(turns)}")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield swapped
    finally:
        stop.set()
        thread.join()


def test_nothing_outside_is_read_or_written_while_a_folder_turns_into_a_link(root: Path, tmp_path: Path) -> None:
    workspace, outside = Workspace(root), tmp_path / "secret"
    good = refused = 0
    with swapping(root / "folder", root / "aside", outside) as swapped:
        assert swapped.wait(10)
        for number in range(1500):
            try:
                assert read(workspace, "folder/file") in (b"inside", b"mine")
                good += 1
            except WorkspaceError:
                refused += 1
            with suppress(WorkspaceError):
                assert workspace.listing("folder")[:1] != [f"file ({len(SECRET)} bytes)"]
            if number % 10 == 0:
                with suppress(WorkspaceError):
                    workspace.write_now("folder/file", b"mine", "overwrite")
    assert min(good, refused) > 0, "the swap never met a read: the test showed nothing"
    assert sorted(os.listdir(outside)) == ["file"]
    assert (outside / "file").read_bytes() == SECRET


def test_a_file_that_turns_into_a_link_is_replaced_not_followed(root: Path, tmp_path: Path) -> None:
    workspace, outside = Workspace(root), tmp_path / "secret" / "file"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                os.symlink(outside, root / "folder" / "link")
                os.replace(root / "folder" / "link", root / "folder" / "file")
            (root / "folder" / "plain").write_bytes(b"inside")
            os.replace(root / "folder" / "plain", root / "folder" / "file")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(600):
            with suppress(WorkspaceError):
                assert SECRET not in read(workspace, "folder/file")
            if number % 5 == 0:
                with suppress(WorkspaceError):
                    workspace.write_now("folder/file", b"mine", "overwrite" if number % 2 else "append")
    finally:
        stop.set()
        thread.join()
    assert outside.read_bytes() == SECRET
