"""What guests may fill of the disk: their workspaces are bounded, and nothing of theirs takes the last of it."""

import asyncio
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from agent.tools.workspace import Workspace, WorkspaceError
from bot.cli import doctor
from bot.runs import guest_disk
from bot.runs.guest_disk import GuestDisk, RoomGuard, over_limit
from channels.message import Attachment
from channels.outgoing import Delivery, SendResult, Sent
from tests.service import Hark, running, settings
from tests.watch import lanes_idle

LIMIT: dict[str, Any] = {"guests": {"disk": 500_000}}
ROOM = "people/telegram-7"


def file(ref: str) -> Attachment:
    return Attachment(kind="file", ref=ref, name=ref)


def media(home: Path, room: str = ROOM) -> list[str]:
    """The names of the files that people sent, as they called them."""
    return sorted(path.name.split("-", 2)[2] for path in (home / "workspace" / room / "media").glob("*/*"))


async def send(hark: Hark, *names: str, sender: str = "7", size: int = 150_000) -> str:
    """Send files in one message, and return what the model was shown of them."""
    hark.channel.files |= {name: b"\xff" * size for name in names}
    requests = len(hark.model.requests)
    await hark.write(f"here are {names}", sender=sender, attachments=tuple(map(file, names)))
    await hark.until(lambda: len(hark.model.requests) > requests)
    await lanes_idle()
    await hark.delivered()
    return hark.model.requests[requests].messages[-1].text


async def test_the_oldest_files_go_and_guest_and_owner_are_told_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=LIMIT) as hark:
        await hark.say("an owner who can be told")
        for number, name in enumerate(("a.bin", "b.bin", "c.bin", "d.bin", "e.bin", "f.bin")):
            await send(hark, name)
            for path in (tmp_path / "workspace" / ROOM / "media").glob(f"*/*-{name}"):
                os.utime(path, (number, number))
        assert media(tmp_path) == ["d.bin", "e.bin", "f.bin"]
        told = "The files here took more than 0 MB, so I deleted the oldest you sent."
        assert hark.channel.texts("7").count(told) == 1
        notices = [text for text in hark.channel.texts("1") if ROOM in text]
        assert notices == [
            f"I deleted the oldest files sent to {ROOM}: it took more than 0 MB. Set guests.disk to allow more."
        ]


async def test_what_a_running_turn_names_stays_and_what_does_not_fit_is_noted(tmp_path: Path) -> None:
    async with running(tmp_path, config=LIMIT) as hark:
        await send(hark, "old.bin")
        shown = await send(hark, "a.bin", "b.bin", "c.bin", "d.bin")
        assert media(tmp_path) == ["a.bin", "b.bin", "c.bin"]
        assert '"d.bin": file; not loaded: this workspace is full: its files may take 0 MB' in shown


async def test_files_of_owners_are_not_bounded(tmp_path: Path) -> None:
    async with running(tmp_path, config=LIMIT) as hark:
        await send(hark, "a.bin", "b.bin", "c.bin", "d.bin", "e.bin", sender="1")
        assert len(media(tmp_path, "")) == 5


async def test_a_file_that_waits_to_be_delivered_is_named(tmp_path: Path) -> None:
    async with running(tmp_path, config=LIMIT) as hark:
        asked, go = asyncio.Event(), asyncio.Event()

        async def held(delivery: Delivery) -> SendResult:
            asked.set()
            await go.wait()
            return Sent("99")

        await send(hark, "a.bin", size=500)
        (saved,) = (tmp_path / "workspace" / ROOM / "media").glob("*/*")
        below = saved.relative_to(tmp_path / "workspace" / ROOM)
        hark.channel.on_send = held
        hark.model.default = lambda _: f"MEDIA: {below}"
        await hark.write("send it back", sender="7")
        await asked.wait()
        disk = hark.service.parts.lanes.runner._specs.rooms.disk
        assert disk is not None
        named = await disk.named()
        go.set()
        assert f"{ROOM}/{below}" in named


async def test_no_file_of_a_guest_takes_the_last_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as hark:
        monkeypatch.setattr(guest_disk, "free_and_size", lambda _: (10**9 + 100_000, 10**12))
        shown = await send(hark, "small.bin", "large.bin", size=60_000)
        assert '"small.bin": file, 60,000 bytes, saved as' in shown
        shown = await send(hark, "huge.bin")
        assert f'"huge.bin": file; not loaded: {guest_disk.NEARLY_FULL}' in shown
        assert '"huge.bin": file, 150,000 bytes, saved as' in await send(hark, "huge.bin", sender="1")
        monkeypatch.setattr(guest_disk, "free_and_size", lambda _: (5_000_000, 99_000_000))  # 5 % is less than 1 GB
        assert '"little.bin": file, 40,000 bytes' in await send(hark, "little.bin", size=40_000)


class Filled:
    """A workspace of a guest with a bound, and which of its files something names."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, limit: int = 100_000) -> None:
        self.kept: Collection[str] = ()
        self.walks = 0
        self.told: list[str] = []
        (home / "people" / "g").mkdir(parents=True)
        self.workspace = Workspace(home, ("people", "g"))
        disk = GuestDisk(root=home, limit=limit, named=self.named, tell=self.tell)
        self.workspace.guard = RoomGuard(disk, self.workspace, "people/g")
        real = guest_disk.size_of

        def counted(folder: Path) -> int:
            self.walks += 1
            return real(folder)

        monkeypatch.setattr(guest_disk, "size_of", counted)

    async def named(self) -> Collection[str]:
        return self.kept

    async def tell(self, room: str) -> None:
        self.told.append(room)


async def test_a_workspace_is_walked_through_once_for_many_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = Filled(tmp_path, monkeypatch)
    for number in range(20):
        await filled.workspace.write(f"notes/{number}.txt", b"x" * 1000, "create")
    assert filled.walks == 1
    for number in range(20, 400):
        try:
            await filled.workspace.write(f"notes/{number}.txt", b"x" * 5000, "create")
        except WorkspaceError:
            break
    assert number < 40
    for _ in range(20):
        with pytest.raises(WorkspaceError, match="this workspace is full"):
            await filled.workspace.write("more.txt", b"x" * 5000, "overwrite")
    assert filled.walks <= 2


async def test_results_of_tools_and_growing_files_count_and_shrinking_ones_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = Filled(tmp_path, monkeypatch)
    await filled.workspace.write("a.txt", b"x" * 60_000, "create")
    with pytest.raises(WorkspaceError, match="full"):
        filled.workspace.extend("tool-results/1.txt", b"y" * 60_000)
    with pytest.raises(WorkspaceError, match="full"):
        await filled.workspace.write("a.txt", b"", "change", lambda old, _: (old or b"") * 2)
    assert (await filled.workspace.write("a.txt", b"", "change", lambda old, _: (old or b"")[:9])).size == 9


async def test_what_something_names_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = Filled(tmp_path, monkeypatch)
    for number, name in enumerate(("a", "b", "c")):
        await filled.workspace.write(f"media/s/{name}", b"x" * 25_000, "create")
        os.utime(filled.workspace.root / "media/s" / name, (number, number))
    filled.kept = {"people/g/media/s/a"}
    await filled.workspace.write("new", b"x" * 25_000, "create")
    left = sorted(path.name for path in filled.workspace.root.rglob("*") if path.is_file())
    assert left == ["a", "c", "new"]
    assert filled.told == ["people/g"]


async def test_doctor_lists_who_is_over_it_and_nothing_is_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, LIMIT)
    full = config.workspace / ROOM / "media" / "s"
    full.mkdir(parents=True)
    (full / "old.bin").write_bytes(b"x" * 3_000_000)
    await doctor.examine(False, config)
    assert (
        f"{ROOM} holds 3 MB, 0 MB are allowed: its oldest media go when a file is stored there"
        in capsys.readouterr().out
    )
    assert (full / "old.bin").exists()
    assert over_limit(config.workspace, 4_000_000) == {}
