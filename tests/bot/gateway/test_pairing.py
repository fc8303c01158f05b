"""Strangers' codes over HTTP: for owners alone, and not there for others."""

from pathlib import Path

import pytest

from bot.cli.terminal.client import Client, Rejected
from bot.inbound.pairing import digest
from tests.bot.gateway.house import TOKEN, House, house
from tests.bot.gateway.test_agent import error_of
from tests.bot.persistence.test_people import stranger
from tests.bot.store.opened import KEY


async def ask(at: House, sender: str, code: str) -> None:
    await at.service.parts.store.inbox.accept([stranger(sender, digest(code))])


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_a_token_there_is_nothing(tmp_path: Path, method: str) -> None:
    async with house(tmp_path) as at:
        response = await at.http.request(method, "/v1/pairing", json={})
        nothing = await at.http.request(method, "/v1/nothing", json={})
        assert response.status_code == 404
        assert error_of(response)["code"] == error_of(nothing)["code"]


async def test_the_token_lists_and_settles(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
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
