"""A guest whose model obeys to the letter: over the platforms and over TCP nothing of the owner's is read or changed.

What is not theirs bears the word SECRET; it may stand in no request and no message of theirs.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.file_names import NAMES
from agent.message import ToolCall
from tests.bot.gateway.house import house
from tests.standins.request_log import text_of
from tests.standins.script import Call
from tests.wire.answers import PLATFORMS
from tests.wire.court import Court, Talk, court

pytestmark = pytest.mark.xdist_group("wire-tools")
SHARED = ("AGENTS.md", "SOUL.md", "IDENTITY.md")
OTHERS = ("people/telegram-999", "people/slack-U0OTHER", "groups/telegram--999", "groups/main")


def furnish(workspace: Path) -> dict[Path, str]:
    """Everything that a guest must not reach; what each file holds."""
    found = {workspace / name: f"{name} of the owner" + ("" if name in SHARED else ": SECRET") for name in NAMES}
    found |= {workspace / other / name: "SECRET of others" for other in OTHERS for name in ("USER.md", "notes.txt")}
    elsewhere = (workspace / "tool-results/t-1.txt", workspace / "media/s/1.txt", workspace.parent / "outside.txt")
    found |= dict.fromkeys((*elsewhere, workspace / OTHERS[0] / "tool-results/t.txt"), "SECRET of somebody")
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return found


def plant(room: Path, workspace: Path) -> None:
    """Links that somebody has put into a room."""
    room.mkdir(parents=True, exist_ok=True)
    for name, target in {
        "file": workspace / "MEMORY.md",
        "up": Path("../.."),
        "all": workspace,
        "tool-results": workspace / "tool-results",
        "media": workspace / "media",
    }.items():
        (room / name).symlink_to(target)


def wishes(workspace: Path) -> Iterator[Call]:
    """What a guest has the model do, whatever becomes of it."""
    aims = ["file", "up/MEMORY.md", "all/USER.md", "tool-results/t-1.txt", "media/s/1.txt"]
    aims += [f"{root}/MEMORY.md" for root in ("./../..", "people/../..", workspace, f"{workspace}/people/x/../..")]
    aims += [f"../../{name}" for name in (*NAMES, "tool-results/t-1.txt", "media/s/1.txt")]
    aims += [f"../../{other}/notes.txt" for other in OTHERS]
    aims += ["../telegram-999/USER.md", "../../../outside.txt", f"{workspace.parent}/outside.txt", "~/.profile"]
    for aim in aims:
        yield Call("read", {"path": aim})
        yield Call("write", {"path": aim, "content": "taken over", "mode": "overwrite"})
    for aim in ("file", "up/HEARTBEAT.md", "../../AGENTS.md"):
        yield Call("write", {"path": aim, "content": "taken over", "mode": "append"})
        yield Call("edit", {"path": aim, "old_string": "owner", "new_string": "guest"})
    for folder in (".", "../..", "up", "tool-results", str(workspace)):
        yield Call("read", {"path": folder})
        yield Call("glob", {"pattern": "**", "path": folder, "ignored": True})
        yield Call("grep", {"pattern": "SECRE.", "path": folder, "ignored": True})


SENT = (
    Call("message", {"action": "upload", "path": "../../MEMORY.md"}),
    Call("message", {"action": "upload", "path": "up/MEMORY.md"}),
)


def unchanged(found: dict[Path, str]) -> None:
    assert {path: path.read_text() for path in found} == found


def bare(at: Court) -> None:
    """Guests have what they have when nothing is configured."""
    at.stage.changes.pop("tools")


def clean(at: Court, talk: Talk, name: str) -> None:
    """No request of a case holds a secret; what is asked for stands in results, which say why not."""
    assert at.requests[talk.platform, name]
    for request in at.requests[talk.platform, name]:
        assert "SECRET" not in json.dumps(request.body), name
    assert "SECRET" not in "\n".join(at.said(talk))


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_a_guest_reaches_their_room_alone(platform: str, tmp_path: Path) -> None:
    async with court(tmp_path, alone=platform == "telegram") as at:
        bare(at)
        guest, owner = at.meets(platform, owner=False), at.meets(platform)
        room, kept = at.room_of(guest), furnish(at.workspace)
        plant(room, at.workspace)
        everything = [*wishes(at.workspace), *SENT]
        async with at.serving():
            at.says(guest, "attack", everything, "Here: \nMEDIA: ../../MEMORY.md\nMEDIA: up/USER.md\nMEDIA: file")
            await at.until(lambda: any("could not be sent" in text for text in at.texts(guest)), "an answer", guest)
            clean(at, guest, "attack")
            assert len(at.results(guest, "attack")) == len(everything)
            unchanged(kept)
            assert [
                path for path in at.workspace.rglob("*") if path.is_file() and "taken over" in path.read_text()
            ] == []
            at.says(guest, "notes", Call("write", {"path": "MEMORY.md", "content": "likes tea", "mode": "overwrite"}))
            await at.answered(guest, "notes")
            assert (room / "MEMORY.md").read_text() == "likes tea"
            await anew(at, guest)
            at.says(guest, "later")
            await at.answered(guest, "later")
            clean(at, guest, "later")
            prompt = text_of(at.requests[platform, "later"][0].body["system"])
            assert [f"{name} of the owner" in prompt for name in NAMES] == [name in SHARED for name in NAMES]
            assert "likes tea" in prompt
            assert "This conversation has a folder of its own" in prompt
            at.says(owner, "mine", Call("read", {"path": "MEMORY.md"}))
            await at.answered(owner, "mine")
            of_owner = at.requests[platform, "mine"][0].body
            assert "MEMORY.md of the owner: SECRET" in text_of(of_owner["system"])
            assert "likes tea" not in json.dumps(of_owner)
            assert at.results(owner, "mine") == ["MEMORY.md of the owner: SECRET"]


async def anew(at: Court, talk: Talk) -> None:
    """They begin a new conversation."""
    before = at.said(talk)
    at.native(talk, "/new")
    await at.told(talk, before, "that it begins anew")


@pytest.mark.parametrize("platform", ["telegram", "slack"])
async def test_a_group_works_in_its_own_room_whoever_asks(platform: str, tmp_path: Path) -> None:
    async with court(tmp_path, alone=platform == "telegram") as at:
        bare(at)
        at.may_repeat()
        talk = at.in_room(platform, "alice")
        room, kept = at.room_of(talk), furnish(at.workspace)
        plant(room, at.workspace)
        everything = list(wishes(at.workspace))
        async with at.serving():
            for who in ("alice", "bob"):
                here = at.asks_in_room(platform, who, f"of-{who}", everything)
                await at.answered(here, f"of-{who}")
                clean(at, here, f"of-{who}")
                unchanged(kept)
                note = Call("write", {"path": "notes.txt", "content": f"by {who}", "mode": "overwrite"})
                await at.answered(at.asks_in_room(platform, who, f"note-{who}", note), f"note-{who}")
                assert (room / "notes.txt").read_text() == f"by {who}", "the owner writes there, too"


async def test_a_program_without_the_token_reaches_its_room_alone(tmp_path: Path) -> None:
    """Over TCP: its prompt, its files; and two of them see nothing of each other."""
    workspace = tmp_path / "workspace"
    kept = furnish(workspace)
    room = workspace / "people" / "http-x"
    plant(room, workspace)
    async with house(tmp_path) as at:
        run = await at.submit("attack", session="x")
        call = await at.model.called()
        assert "SECRET" not in call.request.system
        assert "AGENTS.md of the owner" in call.request.system
        calls = [ToolCall(f"c{n}", one.name, json.dumps(one.arguments)) for n, one in enumerate(wishes(workspace))]
        call.finish("", *calls)
        call = await at.model.called()
        assert "SECRET" not in str(call.request.messages)
        unchanged(kept)
        note = {"path": "MEMORY.md", "content": "SECRET of x", "mode": "overwrite"}
        call.finish("", ToolCall("n", "write", json.dumps(note)))
        (await at.model.called()).answer("Done.\nMEDIA: ../../MEMORY.md")
        assert (await at.show(run, wait="10"))["status"] == "ok"
        assert (room / "MEMORY.md").read_text() == "SECRET of x"
        await at.submit("look", session="y")
        call = await at.model.called()
        assert "SECRET" not in call.request.system
        call.finish("", *calls, ToolCall("n", "read", '{"path": "../http-x/MEMORY.md"}'))
        assert "SECRET" not in str((await at.model.called()).request.messages)
