"""No statement of the store walks through a table that grows with every turn, so a turn never costs more with age."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.store import database
from tests.scripted_model import Call
from tests.service import running, session_of

GROWING = ("inbox", "turn", "entry", "tool_call", "delivery", "event", "transcript")
WHOLE = ("SELECT count(*) FROM delivery WHERE state='failed'",)
"""Statements that may: a count for /status, which a person asks for."""


def _listening(statements: set[str]) -> Callable[..., sqlite3.Connection]:
    connect = sqlite3.connect

    def connecting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(statements.add)
        return connection

    return connecting


async def test_statements_use_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: set[str] = set()
    with monkeypatch.context() as patch:
        patch.setattr(database.sqlite3, "connect", _listening(statements))
        async with running(tmp_path) as hark:
            hark.model.add(Call("read", {"path": "AGENTS.md"}))
            hark.model.add("done")
            await hark.say("look")
            await hark.write("/status", "/stop")
            await hark.until_texts(3)
            await hark.service.parts.store.prune()
            await hark.service.parts.store.inbox.count_waiting(session_of("1"))
        async with running(tmp_path):
            pass
    assert any("UPDATE turn" in statement for statement in statements)
    assert not _walks(tmp_path / "state" / "hark.db", statements)


def _walks(file: Path, statements: set[str]) -> list[str]:
    """Statements whose plan has a walk through a growing table that no index shortens."""
    found = []
    reader = sqlite3.connect(file)
    for statement in sorted(statements):
        if statement in WHOLE or not statement.startswith(("SELECT", "UPDATE", "DELETE", "INSERT")):
            continue
        for *_, step in reader.execute(f"EXPLAIN QUERY PLAN {statement}"):
            if any(step == f"SCAN {table}" for table in GROWING):
                found.append(f"{step}: {statement}")
    reader.close()
    return found
