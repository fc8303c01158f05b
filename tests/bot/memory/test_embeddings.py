"""Memories that are found by their meaning, through an endpoint like OpenAI's, which may be slow, odd or down."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.message import Mark, Provenance
from bot.memory import service
from tests.service import Hark, running
from tests.standins.embeddings_server import KEY, EmbeddingsServer
from tests.standins.script import Call

MODEL, OTHER = "text-embedding-3-small", "text-embedding-3-large"
NOTES = "- Automobile: red.\n- Physician: Okonkwo.\n- Wine: basement.\n"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with EmbeddingsServer() as made:
        yield made


def settings(server: EmbeddingsServer, model: str = MODEL) -> dict[str, Any]:
    return {"memory": {"embeddings": {"base_url": server.base_url, "model": model, "api_key": KEY}}}


async def ask(hark: Hark, text: str) -> str:
    """What is recalled about a message."""
    await hark.say(text, answers=["hm"])
    return "\n".join(recalled(hark))


async def filled(hark: Hark, server: EmbeddingsServer, text: str = "basement") -> None:
    """Wait until the pieces have vectors. The first search of a room begins with them."""
    await ask(hark, "nothing in particular")
    await hark.until(lambda: any(text in one for texts in server.asked for one in texts), "the texts of the pieces")
    await hark.until(lambda: stored(hark) >= 3, "the vectors")


def stored(hark: Hark) -> int:
    """How many vectors there are."""
    total = 0
    for path in hark.state.glob("memory-*.db"):
        with sqlite3.connect(path) as db:
            total += db.execute("SELECT count(*) FROM vector").fetchone()[0]
        db.close()
    return total


async def test_what_is_meant_is_found_without_its_words(tmp_path: Path, server: EmbeddingsServer) -> None:
    async with running(tmp_path, config=settings(server)) as hark:
        write(hark, "MEMORY.md", NOTES)
        await filled(hark, server)
        await hark.say("look it up", answers=[Call("memory_search", {"query": "cellar"}), "In the basement."])
        (result,) = [one for line in hark.model.requests[-1].messages for one in line.tool_results]
        assert result.text.splitlines()[0].startswith("MEMORY.md:3 (")
        assert "Okonkwo" in (await ask(hark, "doctor?"))
        sent = [text for texts in server.asked for text in texts]
        assert sum("basement" in text for text in sent) == 1, "a piece that has a vector is not sent again"
        assert set(server.models) == {MODEL}


async def test_both_rankings_count(tmp_path: Path, server: EmbeddingsServer) -> None:
    """What has a word of the question, too, comes before what is only nearer in its meaning."""
    async with running(tmp_path, config=settings(server)) as hark:
        write(hark, "MEMORY.md", f"- Automobile.\n- The car.\n{NOTES}")
        await filled(hark, server)
        lines = (await ask(hark, "car")).splitlines()
        assert ["MEMORY.md:2" in lines[2], "MEMORY.md:1" in lines[3]] == [True, True]


@pytest.mark.parametrize("fault", ["hangs", "status", "no json", "too few", "no direction"])
async def test_words_count_alone_while_it_does_not_answer(
    tmp_path: Path, server: EmbeddingsServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is not kept waiting again and again; what was written meanwhile gets its vectors afterwards."""
    monkeypatch.setattr(service, "QUESTION_SECONDS", 0.05)
    monkeypatch.setattr(service, "BATCH_SECONDS", 0.05)
    server.hangs, server.status = fault == "hangs", 503 if fault == "status" else 200
    vector = {"index": 0, "embedding": [0.0] * 64}
    server.body = {
        "no json": "<html>",
        "too few": json.dumps({"data": []}),
        "no direction": json.dumps({"data": [vector]}),
    }.get(fault)
    async with running(tmp_path, config=settings(server)) as hark:
        write(hark, "MEMORY.md", NOTES)
        assert "Okonkwo" in await ask(hark, "which physician?")
        await hark.until(lambda: server.asked, "a request")
        asked = len(server.asked)
        assert "Okonkwo" in await ask(hark, "which physician, again?")
        assert len(server.asked) == asked, "it is left alone for a while"
        server.hangs, server.status, server.body = False, 200, None
        hark.time.advance(61)
        monkeypatch.undo()
        await filled(hark, server)
        assert "Okonkwo" in await ask(hark, "doctor?")


@pytest.mark.parametrize("change", ["model", "size"])
async def test_vectors_of_another_model_are_made_anew(tmp_path: Path, server: EmbeddingsServer, change: str) -> None:
    async with running(tmp_path, config=settings(server)) as hark:
        write(hark, "MEMORY.md", NOTES)
        await filled(hark, server)
    server.asked.clear()
    server.size = 32 if change == "size" else 64
    async with running(tmp_path, config=settings(server, OTHER if change == "model" else MODEL)) as hark:
        await filled(hark, server)
        assert "Okonkwo" in await ask(hark, "doctor?")
        assert stored(hark) == 3


# What is remembered about a message, as the model is shown it, in a service that runs.

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


async def test_it_rides_beside_the_newest_message_in_every_step_and_is_not_stored(hark: Hark) -> None:
    write(hark, "memory/2026-07-01.md", "# Home\n\n" + PLUMBER)
    await hark.say("hi there", answers=["hello"])
    assert recalled(hark) == []
    await hark.say(ASKED, answers=[Call("glob", {"pattern": "*.txt"}), "Okonkwo"])
    before, first, second = hark.model.requests
    (block,) = recalled(hark, 1)
    assert "memory/2026-07-01.md:3 (0.50) Home: - The plumber is called Okonkwo" in block
    assert second.messages[-1] == first.messages[-1], "behind the results, so that all before it is in the cache"
    assert second.messages[: len(first.messages) - 1] == first.messages[:-1]
    assert first.messages[-1].mark is Mark.RECALLED
    assert ASKED in first.messages[-2].text
    assert first.messages[: len(before.messages)] == before.messages
    await hark.say("thanks and goodbye", answers=["bye"])
    third = hark.model.requests[3]
    assert recalled(hark) == []
    assert third.messages[: len(second.messages) - 1] == second.messages[:-1]
    assert not any("4711" in body for (body,) in hark.stored.entries("body"))


async def test_a_room_sees_its_own_memory_alone(hark: Hark) -> None:
    write(hark, "MEMORY.md", PLUMBER)
    write(hark, "MEMORY.md", "- The plumber of Bob is Miller.\n", "people/telegram-2")
    write(hark, "pending/2026-07-01.md", "- The plumber is a canary.\n", "people/telegram-2")
    write(hark, "memory/pending/a.md", "- The plumber is a canary.\n", "people/telegram-2")
    hark.model.add(Call("memory_search", {"query": "plumber"}), Call("memory_get", {"path": "pending/2026-07-01.md"}))
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
        await hark.say(ASKED, answers=["?"])
        assert recalled(hark) == []


async def test_what_is_recalled_bears_where_it_came_from(tmp_path: Path) -> None:
    page = Provenance("web", "evil.example")
    async with running(tmp_path) as hark:
        content = write(hark, "memory/a.md", PLUMBER).read_bytes()
        lineage = hark.service.parts.dispatcher.beats.rooms.lineage
        note = partial(lineage.rewritten, "memory/a.md", None, content, (page,), keeps=False, otherwise=())
        await asyncio.to_thread(note)
        await hark.say(ASKED, answers=[Call("memory_search", {"query": "plumber"}), "Okonkwo"])
        answer, last = hark.stored.entries("body", kind="assistant")
        (result,) = hark.stored.entries("body", kind="tool_result")
        assert all("evil.example" in body for (body,) in (answer, last, result))
