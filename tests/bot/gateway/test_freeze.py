"""Freezing by owners over HTTP and on the command line, with a service that runs and without one."""

from pathlib import Path

import pytest

from tests.bot.cli.test_commands import NO_OLLAMA, hark
from tests.bot.gateway.house import TOKEN, house
from tests.bot.gateway.test_agent import error_of
from tests.bot.store.opened import opened


@pytest.mark.parametrize("path", ["freeze", "thaw"])
async def test_without_a_token_it_is_shut(tmp_path: Path, path: str) -> None:
    async with house(tmp_path) as at:
        response = await at.http.post(f"/v1/{path}", json={})
        assert (response.status_code, error_of(response)["code"]) == (403, "owners_only")
        assert at.stored.everything()["freeze"] == []


async def test_a_run_waits_until_it_is_thawed(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        (frozen,) = (await at.http.post("/v1/freeze")).json()
        assert (frozen["what"], frozen["who"], frozen["place"]) == ("all", "http:owner", "http")
        assert [one["what"] for one in (await at.http.post("/v1/freeze", json={"what": "beats"})).json()] == [
            "all",
            "beats",
        ]
        assert (await at.http.post("/v1/freeze", json={"what": "everything"})).status_code == 422
        run_id = await at.submit("hello")
        assert (await at.show(run_id))["status"] == "queued"
        assert (await at.http.get("/v1/status")).json()["frozen"].startswith("everything since")
        thawed = (await at.http.post("/v1/thaw")).json()
        assert ([one["what"] for one in thawed["freezes"]], thawed["messages"]) == (["all", "beats"], 1)
        (await at.model.called()).answer("hi")
        assert (await at.show(run_id, wait=""))["text"] == "hi"
        assert (await at.http.get("/v1/status")).json()["frozen"] == ""


async def test_the_command_line_asks_the_service_that_runs(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        done = await hark(tmp_path, "freeze", "tools")
        assert (done.code, done.out.startswith("Tools are frozen")) == (0, True)
        assert [row[0] for row in at.stored.everything()["freeze"]] == ["tools"]
        assert "frozen      tools since" in (await hark(tmp_path, "status")).out
        assert (await hark(tmp_path, "thaw")).out == "Thawed: tools. Nothing waited.\n"
        assert (await hark(tmp_path, "freeze", "everything")).code == 2


async def test_without_a_service_it_holds_for_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA)
    assert (await hark(tmp_path, "freeze")).code == 0
    async with opened(tmp_path / "state") as store:
        assert [(one.what, one.who) for one in await store.freezes.all()] == [("all", "console:owner")]
    assert (await hark(tmp_path, "thaw")).out == "Thawed: everything. Nothing waited.\n"
    assert (await hark(tmp_path, "thaw")).out == "Nothing was frozen.\n"
