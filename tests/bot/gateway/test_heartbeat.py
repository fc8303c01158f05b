"""The heartbeat over HTTP: for owners alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.cli.terminal.client import Client, Rejected
from bot.inbound.pairing import digest
from tests.bot.cli.test_commands import NO_OLLAMA, hark
from tests.bot.gateway.house import TOKEN, House, house
from tests.bot.gateway.test_agent import error_of
from tests.bot.persistence.test_people import stranger
from tests.bot.store.opened import KEY, opened

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


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[House]:
    """A service that programs may ask with a token."""
    async with house(tmp_path, token=TOKEN) as made:
        yield made


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_without_a_token_it_is_shut(method: str, path: str, tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        response = await at.http.request(method, f"/v1/heartbeat{path}", json={"text": "x", "dry": True})
        assert (response.status_code, error_of(response)["code"]) == (403, "owners_only")
        assert at.stored.messages() == []


async def test_how_it_stands(at: House) -> None:
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


async def test_a_beat_dry_and_then_really(at: House) -> None:
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


async def test_an_event_is_told_to_the_next_turn_once(at: House) -> None:
    body = {"text": " the backup has failed\n", "session": "garden"}
    response = await at.http.post("/v1/heartbeat/wake", json=body)
    assert (response.status_code, response.json()) == (202, {"session": SESSION})
    for told in (True, False):
        run_id = await at.submit("anything new?", session="garden")
        call = await at.model.called()
        assert ("the backup has failed" in call.request.messages[-1].text) == told
        call.answer("I see.")
        await at.show(run_id, wait="")


async def test_an_event_may_be_looked_at_at_once(at: House) -> None:
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
async def test_bad_input_keeps_nothing(path: str, body: dict[str, object], status: int, at: House) -> None:
    response = await at.http.post(f"/v1/heartbeat{path}", json=body)
    assert response.status_code == status
    assert error_of(response)["message"]
    assert at.stored.messages() == []
    assert at.stored.firings() == []


# Freezing by owners over HTTP and on the command line, with a service that runs and without one.


@pytest.mark.parametrize("path", ["freeze", "thaw"])
async def test_freezes_are_shut_without_a_token(path: str, tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        response = await at.http.post(f"/v1/{path}", json={})
        assert (response.status_code, error_of(response)["code"]) == (403, "owners_only")
        assert at.stored.everything()["freeze"] == []


async def test_a_run_waits_until_it_is_thawed(at: House) -> None:
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


# Strangers' codes over HTTP: for owners alone, and not there for others.


async def ask(at: House, sender: str, code: str) -> None:
    await at.service.parts.store.inbox.accept([stranger(sender, digest(code))])


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_a_token_there_is_nothing(method: str, tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        response = await at.http.request(method, "/v1/pairing", json={})
        nothing = await at.http.request(method, "/v1/nothing", json={})
        assert response.status_code == 404
        assert error_of(response)["code"] == error_of(nothing)["code"]


async def test_the_token_lists_and_settles(at: House) -> None:
    await ask(at, "6", "ABCDEFGH")
    (one,) = (await at.http.get("/v1/pairing")).json()
    assert (one["channel"], one["sender"], one["name"]) == ("telegram", "6", "name 6")
    assert "ABCD" not in str(one)
    for body, status in (
        ({"code": "ABCDEFGJ", "standing": "allowed"}, 404),
        ({"code": "ABCDEFGH", "standing": "pending"}, 422),
        ({"code": "ABCDEFGH"}, 422),
        ({"code": "ABCDEFGH", "standing": "allowed"}, 200),
        ({"code": "ABCDEFGH", "standing": "owner"}, 409),
    ):
        assert (await at.http.post("/v1/pairing", json=body)).status_code == status
    assert at.stored.sessions("session_key") == [(KEY,)]


async def test_the_socket_lists_and_settles_as_the_client_reads_it(tmp_path: Path) -> None:
    async with house(tmp_path, reply="yes") as at:
        await ask(at, "6", "ABCDEFGH")
        client = Client(at.socket)
        assert [one.sender for one in await client.pairing()] == ["6"]
        assert (await client.pair(" abcdefgh", "owner")).standing == "owner"
        with pytest.raises(Rejected, match="used before"):
            await client.pair("ABCDEFGH", "owner")
        with pytest.raises(Rejected, match="no such code"):
            await client.pair("ZZZZZZZZ", "owner")
        await client.aclose()
        await at.model.called()
        assert at.service.parts.people.owners == [("telegram", "6")]


async def test_people_are_for_owners_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        for method in ("GET", "POST"):
            assert (await at.http.request(method, "/v1/people", json={})).status_code == 404
    async with house(tmp_path, token=TOKEN) as at:
        body = {"who": "telegram:6", "order": "block"}
        assert (await at.http.post("/v1/people", json=body)).json() == {"text": "telegram 6: is shut out now."}
        (one,) = (await at.http.get("/v1/people")).json()
        assert (one["sender"], one["standing"], one["by"]) == ("6", "blocked", "http:owner")
        for changed, status in (({"order": "revoke"}, 200), ({"order": "revoke"}, 409), ({"order": "promote"}, 422)):
            assert (await at.http.post("/v1/people", json=body | changed)).status_code == status
