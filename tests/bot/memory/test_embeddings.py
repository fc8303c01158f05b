"""Memories that are found by their meaning, through an endpoint like OpenAI's, which may be slow, odd or down."""

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.memory import service
from tests.bot.memory.test_recall import recalled, write
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
    hark.model.add("hm")
    await hark.say(text)
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
        hark.model.add(Call("memory_search", {"query": "cellar"}))
        hark.model.add("In the basement.")
        await hark.say("look it up")
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
