"""The tool memory_write, what waits for a person, and what is taken back."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.message import Mark, ToolResult
from bot.memory.filing import entry_of
from channels.message import ChatKind, InboundKind, Origin, Place
from tests.bot.background.test_schedule import command
from tests.bot.runs.test_origins import OPEN, asked, put
from tests.service import Hark, running
from tests.standins.script import Call

DAY = 24 * 3600.0
REMEMBER = Call("memory_write", {"text": "Ann's birthday is on 3 May."})


def files(hark: Hark, room: str = "") -> str:
    """All that stands in the memory files of a room."""
    folder = hark.service.parts.workspace / room / "memory"
    return "".join(path.read_text() for path in sorted(folder.glob("*.md")))


def told(hark: Hark) -> str:
    """The results that the newest request ends with."""
    lines = [one for one in hark.model.requests[-1].messages if one.mark is not Mark.RECALLED]
    parts = lines[-1].parts
    return "\n".join(part.text for part in parts if isinstance(part, ToolResult))


async def remember(hark: Hark, *before: Call, sender: str = "1", text: str = "") -> str:
    """Let the model remember something after other calls; returns what it is told."""
    for call in (*before, Call("memory_write", {"text": text}) if text else REMEMBER):
        hark.model.add(call)
    await hark.say("remember that", sender, answers=["Done."])
    return told(hark)


async def pressed(hark: Hark, label: str, chat: str = "1", which: int = -1) -> None:
    """Press a button of one of the newest messages that have it."""
    shown = [one for one in hark.channel.sent if one.place.chat == chat and label in [b.label for b in one.buttons]]
    sends = next(button.sends for button in shown[which].buttons if button.label == label)
    message = hark.message(sends, chat)
    number = str(hark.channel.sent.index(shown[which]) + 1)
    await hark.accept(replace(message, kind=InboundKind.BUTTON, reply_to=number))
    await hark.until(lambda: not hark.stored.unfinished(), "the end of the press")
    await hark.delivered()


async def test_an_owner_remembers_and_takes_back(hark: Hark) -> None:
    assert "Remembered in memory/2026-" in await remember(hark)
    assert "Ann's birthday is on 3 May.\n" in files(hark)
    shown = await command(hark, "/memory")
    assert "1: `" in shown
    assert "Ann's birthday" in shown
    assert "a direct conversation" in shown
    assert "1 memory is gone" in await command(hark, "/memory drop 1")
    assert files(hark) == ""
    assert "Ann's" not in await command(hark, "/memory")


async def test_what_is_written_beside_untrusted_text_waits_until_it_is_kept(hark: Hark) -> None:
    put(hark)
    said = await remember(hark, Call("read", {"path": "letter.txt"}))
    assert "Kept aside, because of: the file “letter.txt”" in said
    assert files(hark) == ""
    assert not asked(hark)
    sent = len(hark.channel.sent)
    await hark.write("/memory")
    await hark.until(lambda: len(hark.channel.sent) == sent + 2)
    assert "Ann's birthday" in hark.channel.sent[-1].body
    assert "the file “letter.txt”" in hark.channel.sent[-1].body
    assert [button.label for button in hark.channel.sent[-1].buttons] == ["Keep", "Drop"]
    await pressed(hark, "Keep")
    assert files(hark).count("Ann's birthday") == 1
    await hark.delivered()
    assert "was decided before" in await command(hark, "/memory keep 1")
    assert files(hark).count("Ann's birthday") == 1


async def test_a_kept_memory_bears_its_sources_when_it_is_read_again(hark: Hark) -> None:
    put(hark)
    await remember(hark, Call("read", {"path": "letter.txt"}))
    await command(hark, "/memory keep 1")
    await command(hark, "/new")
    (path,) = (hark.service.parts.workspace / "memory").glob("*.md")
    hark.model.add(Call("read", {"path": f"memory/{path.name}"}))
    hark.model.add(Call("schedule", {"every": "2h", "prompt": "look"}))
    await hark.say("go on")
    (shown,) = asked(hark)
    assert "because of: the file “letter.txt" in shown


async def test_a_file_of_memories_bears_no_more_what_was_taken_back(hark: Hark) -> None:
    put(hark)
    await remember(hark, Call("read", {"path": "letter.txt"}), text="from the letter")
    await command(hark, "/memory keep 1")
    await command(hark, "/new")
    await remember(hark, text="my own")
    assert "1 memory is gone" in await command(hark, "/memory drop letter.txt")
    assert "my own" in files(hark)
    assert "from the letter" not in files(hark)
    await command(hark, "/new")
    (path,) = (hark.service.parts.workspace / "memory").glob("*.md")
    hark.model.add(Call("read", {"path": f"memory/{path.name}"}))
    hark.model.add(Call("schedule", {"every": "2h", "prompt": "look"}))
    hark.model.add("Done.")
    await hark.say("go on")
    assert not asked(hark)


async def test_everything_of_one_source_is_taken_back(hark: Hark) -> None:
    put(hark)
    await remember(hark, text="mine")
    await remember(hark, Call("read", {"path": "letter.txt"}), text="one")
    await remember(hark, text="two")
    await command(hark, "/memory keep 2")
    assert "2 memories are gone" in await command(hark, "/memory drop LETTER.txt")
    assert "one" not in files(hark)
    assert "mine" in files(hark)
    assert [one.entry[-5:] for one in await hark.service.parts.store.memories.of_room("")] == ["mine\n"]


GROUP = Place(channel="telegram", account="bot", chat="-7", kind=ChatKind.GROUP)


async def in_group(hark: Hark, text: str, sender: str = "6") -> None:
    message = hark.message(text, sender)
    origin = Origin(place=GROUP, sender=sender, message_id=message.origin.message_id)
    await hark.accept(replace(message, origin=origin, event_key=f"m:-7:{origin.message_id}"))
    await hark.until(lambda: not hark.stored.unfinished(), "the end in the group")
    await hark.delivered()


async def test_what_a_group_remembers_waits_for_an_owner(tmp_path: Path) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        hark.model.add(REMEMBER)
        hark.model.add("Done.")
        await in_group(hark, "remember that")
        assert "Kept aside" in told(hark)
        assert files(hark, "groups/telegram--7") == ""
        await in_group(hark, "/memory", "1")
        assert "Ann's birthday" not in "".join(hark.channel.texts("-7")), "what waits is shown nowhere but directly"
        await command(hark, "/memory")
        await hark.delivered()
        assert any("the group -7 on Telegram" in body for body in hark.channel.texts())
        guest = await command(hark, "/memory", "6")
        assert guest == "I keep nothing in memory here yet."
        assert "Say which" in await command(hark, "/memory keep 1", "6")
        await command(hark, "/memory keep 1")
        assert "Ann's birthday" in files(hark, "groups/telegram--7")


async def test_people_keep_what_is_theirs_and_owners_are_not_shown_it(hark: Hark) -> None:
    room = "people/telegram-2"
    await remember(hark, sender="2", text="I like tea")
    assert "I like tea" in files(hark, room)
    (hark.service.parts.workspace / room / "letter.txt").write_text("words")
    await remember(hark, Call("read", {"path": "letter.txt"}), sender="2", text="I like milk")
    assert "milk" not in files(hark, room)
    assert "tea" not in await command(hark, "/memory")
    assert "Say which" in await command(hark, "/memory keep 2")
    await command(hark, "/memory keep 2", "2")
    assert "milk" in files(hark, room)
    assert "milk" in await command(hark, "/memory", "2")


async def test_a_digest_comes_once_a_day_while_something_waits(hark: Hark) -> None:
    hark.time.advance(3 * DAY)
    put(hark)
    await remember(hark, Call("read", {"path": "letter.txt"}), text="first")
    await remember(hark, text="second")
    before = len(hark.channel.texts())
    await tick(hark, DAY / 2)
    assert len(hark.channel.texts()) == before
    await passed(hark, DAY / 2, lambda: len(hark.channel.texts()) >= before + 3)
    head, first, second = hark.channel.texts()[before:]
    assert "2 memories wait" in head
    assert "first" in first
    assert "second" in second
    await pressed(hark, "Keep", which=-2)
    await pressed(hark, "Drop")
    assert "first" in files(hark)
    assert "second" not in files(hark)
    before = len(hark.channel.texts())
    await tick(hark, 2 * DAY)
    assert hark.channel.texts()[before:] == [], "nothing waits any more"


async def test_people_get_a_digest_of_their_own(tmp_path: Path) -> None:
    async with running(tmp_path, config={"memory": {"digest_every": "1h"}}) as hark:
        room = hark.service.parts.workspace / "people/telegram-2"
        await remember(hark, sender="2", text="tea")
        (room / "letter.txt").write_text("words")
        await remember(hark, Call("read", {"path": "letter.txt"}), sender="2", text="milk")
        before = len(hark.channel.texts("2"))
        await passed(hark, 3700, lambda: len(hark.channel.texts("2")) >= before + 2)
        assert "1 memory waits" in hark.channel.texts("2")[before]
        assert "milk" in hark.channel.texts("2")[before + 1]
        assert hark.channel.texts("1") == []


async def test_what_was_made_from_somebody_goes_with_them(tmp_path: Path) -> None:
    """Their room, what waits in a group and what stands there; what others said stays."""
    async with running(tmp_path, config=OPEN) as hark:
        for who, text in (("6", "of six"), ("7", "of seven"), ("6", "waits of six"), ("7", "waits of seven")):
            hark.model.add(Call("memory_write", {"text": text}))
            hark.model.add("Done.")
            await in_group(hark, f"remember {who}", who)
            await in_group(hark, "/new", "1")
        for number in (1, 2):
            await command(hark, f"/memory keep {number}")
        await remember(hark, sender="6", text="in their room")
        assert "of six" in files(hark, "groups/telegram--7")
        await hark.service.parts.forget.forget_person("telegram:6")
        left = await hark.service.parts.store.memories.of_room(None)
        assert [one.entry.split(" ", 2)[2] for one in left] == ["of seven\n", "waits of seven\n"]
        assert hark.stored.memories(room="people/telegram-6") == []
        assert files(hark, "groups/telegram--7").count("of s") == 1
        assert "of seven" in files(hark, "groups/telegram--7")


async def tick(hark: Hark, seconds: float) -> None:
    """Let time pass, and the digests be made that are due."""
    hark.time.advance(seconds)
    looks = len(hark.time.asked)
    await hark.until(lambda: len(hark.time.asked) > looks, "a look")
    for _ in range(5):
        await hark.service.parts.store.reads.last_event()
    await hark.delivered()


async def passed(hark: Hark, seconds: float, came: Callable[[], bool]) -> None:
    """Let time pass until something has come of it."""
    hark.time.advance(seconds)

    def later() -> bool:
        if not hark.stored.open_deliveries():  # none gets old while it is on its way
            hark.time.advance(61)  # each time: a look that began before may be under way still
        return came()

    await hark.until(later, "what is due")


async def test_a_beat_only_proposes(tmp_path: Path) -> None:
    async with running(tmp_path, config={"heartbeat": {"every": "30m"}}) as hark:
        put(hark, "HEARTBEAT.md", "- look at the letter")
        await hark.say("hello", answers=["hello"])
        await hark.until(lambda: hark.stored.jobs("job_id"), "the job of the heartbeat")
        hark.model.add(REMEMBER)
        hark.model.add("HEARTBEAT_OK")
        hark.time.advance(1800)
        await hark.service.parts.dispatcher.tick()
        await hark.until(lambda: all(became or not turn for turn, became in hark.stored.firings("turn_id", "outcome")))
        assert "Kept aside" in told(hark)
        assert files(hark) == ""
        await command(hark, "/memory keep 1")
        assert "birthday is on 3 May. <!-- background -->\n" in files(hark)


@pytest.mark.parametrize("state", ["keeping", "taking"])
async def test_a_start_brings_files_up_to_date_that_a_crash_left_behind(tmp_path: Path, state: str) -> None:
    async with running(tmp_path) as hark:
        await remember(hark)
        text = files(hark)
        await hark.service.parts.store.writer.write(_set, state)
    async with running(tmp_path) as hark:
        await hark.until(lambda: hark.stored.memories() in ([("kept",)], []), "the file")
        assert files(hark) == (text if state == "keeping" else "")


async def test_a_file_that_cannot_be_written_is_written_later(hark: Hark) -> None:
    folder = hark.service.parts.workspace / "memory"
    folder.rmdir() if folder.exists() else None
    folder.write_text("in the way")
    assert "as soon as that can be written" in await remember(hark)
    folder.unlink()
    await passed(hark, 0, lambda: hark.stored.memories() == [("kept",)])
    assert files(hark).count("Ann's birthday") == 1


def _set(db: Any, state: str) -> None:
    db.execute("UPDATE memory SET state=?", (state,))


def test_an_entry_is_one_item_of_a_list_whatever_is_in_it() -> None:
    assert entry_of("a\n\n  # b\r\n", "12:00", by_itself=False) == "- 12:00 a\n    # b\n"
