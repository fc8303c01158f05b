"""What is remembered about a message, as the model is shown it, in a service that runs."""

import asyncio
from functools import partial
from pathlib import Path

from agent.message import Mark, Provenance
from tests.service import Hark, running
from tests.standins.script import Call

PLUMBER = "- The plumber is called Okonkwo, his number ends in 4711.\n"
ASKED = "what was the name of the plumber?"


def write(hark: Hark, name: str, text: str, room: str = "") -> Path:
    """Write a file of a memory as a person does, beside the service."""
    path = hark.state.parent / "workspace" / room / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def recalled(hark: Hark, number: int = -1) -> list[str]:
    """The blocks in a request."""
    return [one.text for one in hark.model.requests[number].messages if one.mark is Mark.RECALLED]


async def test_it_rides_beside_the_newest_message_in_every_step_and_is_not_stored(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        write(hark, "memory/2026-07-01.md", "# Home\n\n" + PLUMBER)
        hark.model.add("hello")
        await hark.say("hi there")
        assert recalled(hark) == []
        hark.model.add(Call("glob", {"pattern": "*.txt"}))
        hark.model.add("Okonkwo")
        await hark.say(ASKED)
        before, first, second = hark.model.requests
        (block,) = recalled(hark, 1)
        assert "memory/2026-07-01.md:3 (0.50) Home: - The plumber is called Okonkwo" in block
        assert second.messages[-1] == first.messages[-1], "behind the results, so that all before it is in the cache"
        assert second.messages[: len(first.messages) - 1] == first.messages[:-1]
        assert first.messages[-1].mark is Mark.RECALLED
        assert ASKED in first.messages[-2].text
        assert first.messages[: len(before.messages)] == before.messages
        hark.model.add("bye")
        await hark.say("thanks and goodbye")
        third = hark.model.requests[3]
        assert recalled(hark) == []
        assert third.messages[: len(second.messages) - 1] == second.messages[:-1]
        assert not any("4711" in body for (body,) in hark.stored.entries("body"))


async def test_a_room_sees_its_own_memory_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        write(hark, "MEMORY.md", PLUMBER)
        write(hark, "MEMORY.md", "- The plumber of Bob is Miller.\n", "people/telegram-2")
        write(hark, "pending/2026-07-01.md", "- The plumber is a canary.\n", "people/telegram-2")
        write(hark, "memory/pending/a.md", "- The plumber is a canary.\n", "people/telegram-2")
        hark.model.add(
            Call("memory_search", {"query": "plumber"}), Call("memory_get", {"path": "pending/2026-07-01.md"})
        )
        hark.model.add("Miller")
        await hark.say(ASKED, "2")
        (block,) = recalled(hark)
        found, got = hark.model.requests[-1].messages[-2].tool_results
        for text in (block, found.text):
            assert "Miller" in text
            assert "Okonkwo" not in text
            assert "canary" not in text
        assert got.is_error
        assert "canary" not in got.text


async def test_off_and_beats_recall_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config={"memory": {"recall": "off"}}) as hark:
        write(hark, "memory/a.md", PLUMBER)
        hark.model.add("?")
        await hark.say(ASKED)
        assert recalled(hark) == []


async def test_what_is_recalled_bears_where_it_came_from(tmp_path: Path) -> None:
    page = Provenance("web", "evil.example")
    async with running(tmp_path) as hark:
        content = write(hark, "memory/a.md", PLUMBER).read_bytes()
        lineage = hark.service.parts.dispatcher.beats.rooms.lineage
        note = partial(lineage.rewritten, "memory/a.md", None, content, (page,), keeps=False, otherwise=())
        await asyncio.to_thread(note)
        hark.model.add(Call("memory_search", {"query": "plumber"}))
        hark.model.add("Okonkwo")
        await hark.say(ASKED)
        answer, last = hark.stored.entries("body", kind="assistant")
        (result,) = hark.stored.entries("body", kind="tool_result")
        assert all("evil.example" in body for (body,) in (answer, last, result))
