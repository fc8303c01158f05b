"""What guests may fill of the disk: their workspaces are bounded, and nothing of theirs takes the last of it."""

import asyncio
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.removal import remove
from agent.sandbox.proof import choose
from agent.tools.exec import ExecParameters
from agent.tools.workspace import Workspace, WorkspaceError
from bot.cli import doctor
from bot.runs import guest_disk
from bot.runs.guest_disk import GuestDisk, over_limit
from bot.runs.rooms import of_one_person
from channels.message import Attachment
from channels.outgoing import Delivery, SendResult, Sent
from tests.agent.tools.calls import Notes
from tests.agent.tools.commands import commands
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
            f"I'm deleting the oldest files sent to {ROOM}, because they take more than 0 MB."
            " Set guests.disk to allow more."
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
    """A guest's workspaces with a bound, and which of their files something names."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str] = ("people/g",)) -> None:
        self.home, self.names = home, names
        self.kept: Collection[str] = ()
        self.walks = 0
        self.told: list[str] = []
        self.restart()
        real = guest_disk.size_of

        def counted(folder: Path) -> int:
            self.walks += 1
            return real(folder)

        monkeypatch.setattr(guest_disk, "size_of", counted)

    def restart(self) -> None:
        """Begin anew, as after a crash."""
        together = dict.fromkeys(self.names, self.names)
        self.disk = GuestDisk(root=self.home, limit=100_000, named=self.named, tell=self.tell, together=together)
        self.workspace = self.at(self.names[0])

    def at(self, name: str) -> Workspace:
        """One of the workspaces."""
        (self.home / name).mkdir(parents=True, exist_ok=True)
        workspace = Workspace(self.home, tuple(name.split("/")))
        workspace.guard = self.disk.guard(name)
        return workspace

    def media(self) -> list[str]:
        """The files that were sent to the first of them."""
        return sorted(path.name for path in (self.workspace.root / "media").glob("*/*"))

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
    assert left == [guest_disk.NOTE, "a", "c", "new"]
    assert filled.told == ["people/g"]


class Died(BaseException):
    """The process has died."""


async def test_who_dies_while_files_are_deleted_has_told_of_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = Filled(tmp_path, monkeypatch)
    for name in ("a", "b", "c"):
        await filled.workspace.write(f"media/s/{name}", b"x" * 25_000, "create")

    def dies(*_: Any, **__: Any) -> None:
        assert filled.told == ["people/g"]
        assert filled.disk.has_dropped("people/g")
        raise Died

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", dies)
    with pytest.raises(Died):
        await filled.workspace.write("new", b"x" * 50_000, "create")
    assert filled.media() == ["a", "b", "c"]
    monkeypatch.setattr(os, "unlink", unlink)
    filled.restart()
    await filled.workspace.write("new", b"x" * 50_000, "create")
    assert filled.media() == ["c"]


@pytest.mark.parametrize(("size", "left"), [(40_000, 56_000), (95_000, 10_000), (102_000, 10_000), (130_000, None)])
def test_a_command_may_write_what_is_left(
    size: int, left: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_disk, "_TIDYING", 10_000)
    guard = Filled(tmp_path, monkeypatch).disk.guard("people/g")
    guard.check(0)
    (tmp_path / "people/g/made").write_bytes(b"x" * size)  # by a command
    if left is None:
        with pytest.raises(WorkspaceError, match="an owner has to delete"):
            guard.left()
    else:
        assert abs(guard.left() - left) < 4096


@pytest.mark.skipif(choose("auto").sandbox is None, reason="no sandbox on this machine")
async def test_a_command_of_a_guest_is_held_to_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = Filled(tmp_path, monkeypatch)
    tool = commands(filled.workspace.root, sandbox="auto", in_sandbox="allow").exec
    tool._workspace.guard = filled.disk.guard("people/g")
    for name, size in (("small", 90_000_000), ("large", 110_000_000)):  # files with nothing in them
        await tool.run(ExecParameters(command=f"truncate -s {size} {name}"), Notes().context())
    assert (filled.workspace.root / "small").stat().st_size == 90_000_000
    assert (filled.workspace.root / "large").stat().st_size < 100_000_000


async def test_all_workspaces_of_a_person_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = of_one_person({"Ann": ["telegram:7", "discord:8"]})["people/discord-8"]
    assert names == ("people/person-%41nn", "people/telegram-7", "people/discord-8")
    filled = Filled(tmp_path, monkeypatch, names=names)
    for number, name in enumerate(names):
        await filled.at(name).write("media/s/sent", b"x" * 25_000, "create")
        os.utime(tmp_path / name / "media/s/sent", (number, number))
    await filled.at(names[0]).write("new", b"x" * 40_000, "create")
    assert filled.told == [names[0]]
    assert [(tmp_path / name / "media/s/sent").exists() for name in names] == [False, True, True]
    filled.restart()
    with pytest.raises(WorkspaceError, match="full"):
        await filled.at(names[1]).write("more", b"x" * 90_000, "create")
    assert over_limit(tmp_path, 9_999, dict.fromkeys(names, names)).keys() == {names[0]}


async def test_what_lies_too_deep_to_be_counted_counts_as_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = Filled(tmp_path, monkeypatch)
    folder = os.open(filled.workspace.root, os.O_RDONLY)
    for _ in range(22):  # a path of more than 4,096 characters
        os.mkdir("x" * 200, dir_fd=folder)
        above, folder = folder, os.open("x" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(above)
    os.close(folder)
    (filled.workspace.root / "media").mkdir()
    (filled.workspace.root / "media/sent").touch()
    with pytest.raises(WorkspaceError, match="full"):
        await filled.workspace.write("new", b"x", "create")
    assert (filled.workspace.root / "media/sent").exists()  # since that would not help
    remove(tmp_path / "people")


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
    assert over_limit(config.workspace, 4_000_000, {}) == {}
