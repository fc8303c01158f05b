"""The heartbeat over HTTP: for owners alone."""

from pathlib import Path

import pytest

from tests.bot.gateway.house import TOKEN, House, house
from tests.bot.gateway.test_agent import error_of

SESSION = "agent:main:http:direct:garden"
PATHS = [("GET", ""), ("POST", "/run"), ("POST", "/wake")]


def checklist(at: House) -> None:
    """Something to look at."""
    (at.folder / "workspace" / "HEARTBEAT.md").write_text("- look whether the tomatoes are dry\n")


async def owner_writes(at: House) -> None:
    """So that there is a session to beat in: that of the terminal."""
    async with at.unix() as client:
        body = {"message": "hi", "session": "agent:main:console:direct:local"}
        run_id = (await client.post("/v1/agent", json=body)).json()["run_id"]
        (await at.model.called()).answer("hello")
        await client.get(f"/v1/agent/{run_id}?wait")


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_without_a_token_it_is_shut(tmp_path: Path, method: str, path: str) -> None:
    async with house(tmp_path) as at:
        response = await at.http.request(method, f"/v1/heartbeat{path}", json={"text": "x", "dry": True})
        assert (response.status_code, error_of(response)["code"]) == (403, "owners_only")
        assert at.stored.messages() == []


async def test_how_it_stands(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        found = (await at.http.get("/v1/heartbeat")).json()
        expected = {
            "on": True,
            "every": 1800,
            "session": "",
            "spent": 0,
            "budget": 300_000,
            "unit": "tokens",
            "beats": [],
        }
        assert {key: found[key] for key in expected} == expected
        assert found["skip"].startswith("No owner has written")


async def test_a_beat_dry_and_then_really(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        await owner_writes(at)
        checklist(at)
        dry = (await at.http.post("/v1/heartbeat/run", json={"dry": True})).json()
        assert (dry["begun"], dry["reason"], dry["words"]) == (False, "", "")
        assert at.stored.firings() == []
        really = (await at.http.post("/v1/heartbeat/run")).json()
        assert really == dry | {"begun": True, "prompt": dry["prompt"].partition("\n")[2]}
        call = await at.model.called()
        assert call.request.messages[-1].text.partition("\n")[2] == really["prompt"]
        again = (await at.http.post("/v1/heartbeat/run", json={})).json()
        assert (again["begun"], again["reason"]) == (False, "busy")
        call.answer("The tomatoes are dry.")


async def test_an_event_is_told_to_the_next_turn_once(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        body = {"text": " the backup has failed\n", "session": "garden"}
        response = await at.http.post("/v1/heartbeat/wake", json=body)
        assert (response.status_code, response.json()) == (202, {"session": SESSION})
        for told in (True, False):
            run_id = await at.submit("anything new?", session="garden")
            call = await at.model.called()
            assert ("the backup has failed" in call.request.messages[-1].text) == told
            call.answer("I see.")
            await at.show(run_id, wait="")


async def test_an_event_may_be_looked_at_at_once(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        await owner_writes(at)
        told = (await at.http.post("/v1/heartbeat/wake", json={"text": "the backup has failed", "now": True})).json()
        assert told == {"session": "agent:main:console:direct:local"}
        call = await at.model.called()
        assert "the backup has failed" in call.request.messages[-1].text
        assert "heartbeat" in call.request.messages[-1].text
        call.answer("The backup has failed.")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/run", {"dry": "yes"}, 422),
        ("/run", {"wet": True}, 422),
        ("/wake", {}, 422),
        ("/wake", {"text": " \n"}, 422),
        ("/wake", {"text": "x" * 8001}, 422),
        ("/wake", {"text": "x", "session": "agent:x"}, 422),
        ("/wake", {"text": "x"}, 409),
    ],
)
async def test_bad_input_keeps_nothing(tmp_path: Path, path: str, body: dict[str, object], status: int) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        response = await at.http.post(f"/v1/heartbeat{path}", json=body)
        assert response.status_code == status
        assert error_of(response)["message"]
        assert at.stored.messages() == []
        assert at.stored.firings() == []
