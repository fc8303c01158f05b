"""What follows the room of a session: prompt, long results, files that people send, files that are sent; and when who
is who changes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.message import Image, ToolResult
from agent.tools.files import MARK
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.people import Person
from channels.message import ChatKind, Origin, Place
from channels.outgoing import Action
from tests.bot.inbound.test_pairing import PAIRING, code_of
from tests.bot.runs.test_media import PNG, file
from tests.bot.runs.test_messaging import ActingChannel, calls
from tests.bot.store.opened import message, opened
from tests.scripted_model import ScriptedModel
from tests.service import Hark, Json, ScriptedTool, running
from tests.standins.script import Call
from tests.watch import lanes_idle

SECRETS = ("MEMORY.md", "USER.md", "TOOLS.md", "HEARTBEAT.md")
GUEST = "people/telegram-2"
WIDE: Json = {"tools": {"by_sender": {"telegram:*": {"profile": "full"}}}}


def furnish(home: Path) -> Path:
    """A workspace whose owner has written something into each of its files."""
    for name in ("AGENTS.md", "SOUL.md", "IDENTITY.md", *SECRETS):
        path = home / "workspace" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name} of the owner")
    return home / "workspace"


async def answered(hark: Hark, sender: str, text: str = "hello") -> str:
    """Let somebody write and be answered; returns the prompt of the last request."""
    sent = len(hark.channel.texts(sender))
    await hark.write(text, sender=sender, answers=[f"number {len(hark.model.requests)}"])
    await hark.until_texts(sent + 1, sender)
    await lanes_idle()
    return hark.model.requests[-1].system


def shown(prompt: str) -> list[str]:
    """The files of the owner that a prompt has."""
    return re.findall(r"^(\w+\.md) of the owner", prompt, re.MULTILINE)


SHARED = ["AGENTS.md", "SOUL.md", "IDENTITY.md"]
ALL = ["AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "MEMORY.md"]


async def test_a_code_makes_the_session_that_all_share_a_room(tmp_path: Path) -> None:
    """At once, for the owner as well; and a code that makes an owner does not."""
    furnish(tmp_path)
    async with running(tmp_path, config=PAIRING | {"sessions": {"dm_scope": "main"}}) as hark:
        assert shown(await answered(hark, "1")) == ALL
        code = await code_of(hark, "6")
        assert shown(await answered(hark, "1")) == ALL
        assert await hark.service.parts.pairing.settle(code, "owner")
        await hark.until_texts(3, "6")
        assert shown(await answered(hark, "6")) == ALL
        code = await code_of(hark, "7")
        assert await hark.service.parts.pairing.settle(code, "allowed")
        await hark.until_texts(3, "7")
        assert shown(hark.model.requests[-1].system) == SHARED
        for sender in ("7", "1", "6"):
            assert shown(await answered(hark, sender)) == SHARED
        for sender in ("1", "7"):
            note = {"path": "by.txt", "content": sender, "mode": "overwrite"}
            hark.model.add(Call("read", {"path": "USER.md"}), Call("write", note))
            await answered(hark, sender)
            results = [part for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, ToolResult)]
            assert "of the owner" not in results[0].text
            assert (tmp_path / "workspace" / "groups" / "main" / "by.txt").read_text() == sender
    async with running(tmp_path, config=PAIRING | {"sessions": {"dm_scope": "main"}}) as hark:
        assert shown(await answered(hark, "1")) == SHARED, "after a restart"
    config = {"sessions": {"dm_scope": "main"}, "channels": {"telegram": {"dm": {"policy": "allowlist"}}}}
    async with running(tmp_path, config=config) as hark:
        assert shown(await answered(hark, "1")) == ALL, "those whom a code let in are not let in any more"


async def test_the_room_changes_with_who_is_an_owner(tmp_path: Path) -> None:
    furnish(tmp_path)
    for owners, expected in ((["telegram:1"], SHARED), (["telegram:2"], ALL), (["telegram:1"], SHARED)):
        async with running(tmp_path, config={"owners": owners}) as hark:
            assert shown(await answered(hark, "2")) == expected
    async with running(tmp_path) as hark:
        assert shown(await answered(hark, "2")) == SHARED
        hark.service.parts.people.let_in(Person("telegram", "bot", "2", "owner"))
        assert shown(await answered(hark, "2")) == ALL, "with the next turn"


async def test_the_prompt_stays_while_the_room_does(tmp_path: Path) -> None:
    workspace = furnish(tmp_path)
    async with running(tmp_path) as hark:
        first = await answered(hark, "2")
        (workspace / GUEST / "MEMORY.md").write_text("likes tea")
        assert await answered(hark, "2") == first, "promise 7"
        await hark.write("/new", sender="2")
        await hark.until_texts(3, "2")
        later = await answered(hark, "2")
        assert '<file name="MEMORY.md">\nlikes tea\n</file>' in later
        assert later.index("IDENTITY.md of the owner") < later.index("likes tea")
        assert "likes tea" not in await answered(hark, "3")
        assert "likes tea" not in await answered(hark, "1")


async def long(label: str) -> str:
    return f"result of {label}\n" * 4000


async def test_long_results_are_kept_in_the_room(tmp_path: Path) -> None:
    workspace = furnish(tmp_path)
    async with running(tmp_path, config=WIDE, tools=lambda watch: [ScriptedTool("long", long, watch)]) as hark:
        for sender, folder in (("1", workspace), ("2", workspace / GUEST), ("3", workspace / "people" / "telegram-3")):
            hark.model.add(Call("long", {"label": sender}))
            await answered(hark, sender)
            (part,) = hark.model.requests[-1].messages[-1].parts
            assert isinstance(part, ToolResult)
            named = re.search(r"tool-results/\S+\.txt", part.text)
            assert named
            assert (folder / named[0]).read_text() == await long(sender)
            hark.model.add(Call("read", {"path": named[0], "limit": 1}))
            await answered(hark, sender)
            (part,) = hark.model.requests[-1].messages[-1].parts
            assert isinstance(part, ToolResult)
            assert part.text.startswith(f"result of {sender}\n")
        kept = [path.relative_to(workspace).parts[:2] for path in workspace.rglob("tool-results/*.txt")]
        assert len(kept) == 3


async def test_output_of_commands_is_kept_in_the_room(tmp_path: Path) -> None:
    workspace = furnish(tmp_path)
    group: Json = {"groups": {"policy": "open", "require_mention": False}}
    config: Json = {"channels": {"telegram": group}, "tools": {"exec": {"allowlist": ["seq *"]}}}
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
    async with running(tmp_path, config=config) as hark:
        hark.model.add(Call("exec", {"command": "seq 20000"}))
        hark.model.add("done")
        await hark.write("count", origin=Origin(place=place, sender="1", message_id="1"), event_key="m:-5:1")
        assert await hark.until_texts(1, "-5") == ["done"]
        (kept,) = workspace.rglob("tool-results/*.txt")
        assert kept.parent.parent == workspace / "groups" / "telegram--5"
        assert kept.read_text().splitlines()[-1] == "20000"


async def test_files_that_people_send_are_kept_and_shown_in_the_room(tmp_path: Path) -> None:
    workspace = furnish(tmp_path)
    async with running(tmp_path) as hark:
        hark.channel.files = {"photo": PNG}
        for sender, folder in (("1", workspace), ("2", workspace / GUEST)):
            await hark.write("look", sender=sender, attachments=(file("photo", "image"),))
            await hark.until_texts(1, sender)
            await lanes_idle()
            (saved,) = (folder / "media").glob("*/*")
            assert saved.read_bytes() == PNG
            images = [part for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, Image)]
            assert len(images) == 1
        saved.rename(workspace / saved.name)
        await answered(hark, "2")
        assert "is gone]" in hark.model.requests[-1].messages[1].text, "it is looked for in the room alone"


@pytest.mark.parametrize("sender", ["1", "2"])
async def test_files_that_are_sent_are_those_of_the_room(tmp_path: Path, sender: str) -> None:
    workspace = furnish(tmp_path)
    own = workspace if sender == "1" else workspace / GUEST
    async with running(tmp_path) as hark:
        await answered(hark, sender)
        (own / "mine.txt").write_text("mine")
        (workspace / "theirs.txt").write_text("the owner's")
        hark.model.add("Here.\nMEDIA: mine.txt\nMEDIA: theirs.txt\nMEDIA: ../../theirs.txt")
        await hark.write("send them", sender=sender)
        await hark.until(lambda: any("outside the workspace" in text for text in hark.channel.texts(sender)))
        await hark.delivered()
        sent = [one.file.path for one in hark.channel.sent if one.action is Action.FILE and one.file]
        expected = [own / "mine.txt", workspace / "theirs.txt"] if sender == "1" else [own / "mine.txt"]
        assert sent == list(map(str, expected))


async def test_the_tool_sends_files_of_the_room(tmp_path: Path) -> None:
    workspace = furnish(tmp_path)
    async with running(tmp_path, made=ActingChannel) as hark:
        await answered(hark, "2")
        (workspace / GUEST / "mine.txt").write_text("mine")
        (workspace / "theirs.txt").write_text("the owner's")
        told = await calls(
            hark, *({"action": "upload", "path": f"{name}.txt"} for name in ("mine", "theirs")), sender="2"
        )
        assert [failed for _, failed in told] == [False, True]
        sent = [one.file.path for one in hark.channel.sent if one.action is Action.FILE and one.file]
        assert sent == [str(workspace / GUEST / "mine.txt")]


async def test_a_guest_has_no_checklist_and_what_their_beat_remembers_is_marked_in_their_room(tmp_path: Path) -> None:
    workspace = furnish(tmp_path)
    async with running(tmp_path, config={"heartbeat": {"every": "30m", "light_context": False}}) as hark:
        await answered(hark, "1")
        await answered(hark, "2")
        beats = hark.service.parts.dispatcher.beats
        for sender, expected in (("1", True), ("2", False)):
            beat = await beats.look("now", f"agent:main:telegram:direct:{sender}")
            assert ("HEARTBEAT.md of the owner" in beat.prompt) is expected
        assert beat.skip is not None
        assert "HEARTBEAT.md is not read there" in beat.skip.words
        hark.model.add(Call("write", {"path": "MEMORY.md", "content": "seen\n", "mode": "overwrite"}))
        await answered_beat(hark)
        assert (workspace / GUEST / "MEMORY.md").read_text() == f"seen {MARK}\n"
        assert "HEARTBEAT.md of the owner" not in str(hark.model.requests[-1].messages)
        assert shown(hark.model.requests[-1].system) == SHARED
        assert (workspace / "MEMORY.md").read_text() == "MEMORY.md of the owner"


async def answered_beat(hark: Hark) -> None:
    """An event has the guest's session beat."""
    hark.model.add("I have seen it.")
    await hark.service.parts.dispatcher.beats.wake("it is over", "agent:main:telegram:direct:2", now=True)
    await hark.until_texts(2, "2")


async def test_a_link_in_the_place_of_rooms_leads_nobody_elsewhere(tmp_path: Path) -> None:
    workspace, elsewhere = furnish(tmp_path), tmp_path / "elsewhere"
    (elsewhere / "telegram-2").mkdir(parents=True)
    (elsewhere / "telegram-2" / "MEMORY.md").write_text("a secret")
    (workspace / "people").symlink_to(elsewhere)
    async with running(tmp_path) as hark:
        await hark.write("hello", sender="2")
        await hark.until_texts(1, "2")
        assert hark.model.requests == []
        assert [path.name for path in elsewhere.rglob("*")] == ["telegram-2", "MEMORY.md"]
        (workspace / "people").unlink()
        assert shown(await answered(hark, "2")) == SHARED, "it is made as soon as it can be"
        (workspace / "people").rename(workspace / "away")
        (workspace / "people").symlink_to(elsewhere)
        hark.model.add(Call("read", {"path": "MEMORY.md"}), Call("write", {"path": "x", "content": "x"}))
        await answered(hark, "2")
        told = [part.text for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, ToolResult)]
        assert all("the folder of this conversation" in text for text in told), told
        assert not (elsewhere / "telegram-2" / "x").exists()


@pytest.mark.parametrize(("senders", "refused"), [("11", False), ("12", True), ("21", True), ("112", True)])
async def test_a_turn_of_an_owner_and_a_guest_is_the_guests(tmp_path: Path, senders: str, refused: bool) -> None:
    workspace = furnish(tmp_path)
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
    wrote = [replace(message(), origin=Origin(place=place, sender=by, message_id=by)) for by in senders]
    async with opened(tmp_path / "state") as store:
        key = "agent:main:telegram:group:-5"
        await store.inbox.accept([AcceptedMessage(message=wrote[0], session_key=key, turn_id="t1")])
        assert all([await store.inbox.steer("t1", one) for one in wrote[1:]])
    model = ScriptedModel()
    model.add(
        Call("later"),
        Call("read", {"path": "../../MEMORY.md"}),
        Call("message", {"action": "send", "to": "9", "text": "to somebody else"}),
        Call("write", {"path": "x", "content": "x"}),
    )
    model.add("done")
    config: Json = {"channels": {"telegram": {"groups": {"policy": "open"}}}}
    tools = [ScriptedTool("later", long, model.watch)]
    async with running(tmp_path, config=config, model=model, tools=lambda watch: tools) as hark:
        assert await hark.until_texts(1, "-5") == ["done"]
        told = [part.text for part in model.requests[-1].messages[-1].parts if isinstance(part, ToolResult)]
        assert ("the profile guest" in told[0]) is refused
        assert (tools[0].begun == []) is refused
        assert "outside the workspace" in told[1]
        assert ("Only this conversation" in told[2]) is refused
        assert (workspace / "groups" / "telegram--5" / "x").read_text() == "x"
