"""`hark balance`, with a service that runs and without one, and what `/readyz` says of the book."""

import asyncio
import json
from pathlib import Path

from tests.bot.cli.test_commands import NO_OLLAMA, hark
from tests.bot.gateway.house import House
from tests.bot.store.opened import accept_and_claim, opened
from tests.stored import Stored


async def test_the_service_that_runs_is_asked_and_is_not_ready_until_it_is_accepted(tmp_path: Path, at: House) -> None:
    for number in (1, 2, 3):
        assert (await at.http.post("/v1/agent", json={"message": "/help"})).status_code == 202, number
    book = at.service.parts.book
    async with asyncio.timeout(30):
        while (await book.balance()).accounts[0].answered < 3:
            await at.service.parts.store.try_write()
    assert (await at.http.get("/readyz")).status_code == 200
    shown = await hark(tmp_path, "balance")
    assert (shown.code, shown.out) == (0, "http: 3 accepted: 3 answered, 0 told why not, 0 pending\n")

    at.stored.spoil("DELETE FROM inbox WHERE seq=2")
    found = await hark(tmp_path, "balance", "--json")
    lost = {"account": "http", "message": "2", "why": "its row is missing"}
    (account,) = json.loads(found.out)["accounts"]
    assert found.code == 1
    assert account == {
        "account": "http",
        "accepted": 3,
        "answered": 2,
        "told": 0,
        "pending": 0,
        "unexplained": [lost],
    }
    ready = await at.http.get("/readyz")
    assert (ready.status_code, ready.json()["channels"]["balance"]["state"]) == (503, "down")
    assert "2 (its row is missing)" in ready.json()["channels"]["balance"]["detail"]
    assert await book.line() == "3 accepted: 2 answered, 0 told why not, 0 pending, 1 not explained (`hark balance`)"

    wrong = await hark(tmp_path, "balance", "accept", "1")
    assert (wrong.code, wrong.out) == (1, "")
    assert "The book has no unexplained message '1'" in wrong.error
    assert (await hark(tmp_path, "balance", "accept", "2")).code == 0
    assert (await at.http.get("/readyz")).status_code == 200
    assert at.stored.everything()["written_off"][0][:5] == ("2", "http", "its row is missing", 1, "console:owner")
    shown = await hark(tmp_path, "balance")
    assert (shown.code, shown.out) == (0, "http: 3 accepted: 2 answered, 1 told why not, 0 pending\n")
    assert (await at.http.get("/v1/balance")).status_code == 404, "it is for owners"


async def test_without_a_service_the_store_is_asked(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA)
    async with opened(tmp_path / "state") as store:
        await accept_and_claim(store)
    shown = await hark(tmp_path, "balance", "--since", "24h")
    assert (shown.code, shown.out) == (0, "telegram:bot: 1 accepted: 0 answered, 0 told why not, 1 pending\n")
    Stored(tmp_path / "state").spoil("DELETE FROM turn")
    shown = await hark(tmp_path, "balance")
    assert (shown.code, shown.out.splitlines()[1]) == (1, "  1: its turn is missing")
    assert (await hark(tmp_path, "balance", "--since", "yesterday")).code == 2
    assert (await hark(tmp_path, "balance", "accept", "1")).code == 0
    assert (await hark(tmp_path, "balance")).code == 0
