"""Who may call: with a token, without one, and over the Unix socket."""

from pathlib import Path

import httpx2
import pytest

from tests.bot.gateway.house import TOKEN, House, house
from tests.bot.gateway.test_agent import error_of

JSON = {"content-type": "application/json"}
BODY = b'{"message": "hi"}'


async def refused(at: House, path: str, **headers: str) -> httpx2.Response:
    """The answer to a GET that is refused; of one that is granted the body may have no end."""
    async with at.http.stream("GET", path, headers=headers) as response:
        assert response.is_error
        await response.aread()
        return response


async def status_of(at: House, headers: dict[str, str]) -> tuple[int, str]:
    """Status and error code of a POST with these headers (host and all)."""
    response = await at.http.post("/v1/agent", content=BODY, headers={**JSON, **headers})
    return response.status_code, error_of(response)["code"] if response.is_error else ""


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8420"},
        {"host": "127.0.0.1"},
        {"host": "localhost:1"},
        {"host": "LocalHost"},
        {"host": "[::1]:8420"},
        {"host": "[::1]"},
        {"host": "localhost:8420", "origin": "http://localhost:8420", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"content-type": "application/json; charset=utf-8"},
        {"content-type": "Application/JSON"},
    ],
)
async def test_without_a_token_programs_of_this_machine_get_in(tmp_path: Path, headers: dict[str, str]) -> None:
    async with house(tmp_path, reply="yes") as at:
        assert await status_of(at, headers) == (202, "")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "example.com"}, "foreign_host"),
        ({"host": "127.0.0.1.example.com"}, "foreign_host"),
        ({"host": "localhost.example.com:8420"}, "foreign_host"),
        ({"host": "localhost:port"}, "foreign_host"),
        ({"host": "localhost@example.com"}, "foreign_host"),
        ({"host": "192.168.0.7:8420"}, "foreign_host"),
        ({"host": ""}, "foreign_host"),
        ({"origin": "https://example.com"}, "foreign_origin"),
        ({"origin": "null"}, "foreign_origin"),
        ({"origin": ""}, "foreign_origin"),
        ({"host": "localhost:8420", "origin": "http://localhost:3000"}, "foreign_origin"),
        ({"host": "localhost:8420", "origin": "https://localhost:8420"}, "foreign_origin"),
        ({"host": "localhost:8420", "origin": "http://127.0.0.1:8420"}, "foreign_origin"),
        ({"sec-fetch-site": "cross-site"}, "foreign_origin"),
        ({"sec-fetch-site": "same-site"}, "foreign_origin"),
        ({"content-type": "text/plain"}, "not_json"),
        ({"content-type": "application/x-www-form-urlencoded"}, "not_json"),
        ({"content-type": "multipart/form-data; boundary=application/json"}, "not_json"),
        ({"content-type": ""}, "not_json"),
    ],
)
async def test_without_a_token_web_pages_stay_outside(headers: dict[str, str], code: str, at: House) -> None:
    assert await status_of(at, headers) == (403, code)
    assert at.stored.messages() == []


@pytest.mark.parametrize("path", ["/v1/agent/x", "/v1/events", "/v1/status", "/v1/chat/completions", "/v1/nothing"])
async def test_the_rules_hold_for_every_route(tmp_path: Path, path: str) -> None:
    async with house(tmp_path) as at:
        response = await refused(at, path, host="example.com")
        assert (response.status_code, error_of(response)["code"]) == (403, "foreign_host")
    async with house(tmp_path, token=TOKEN) as at:
        response = await refused(at, path, authorization="")
        assert (response.status_code, error_of(response)["code"]) == (401, "unauthorized")


async def test_a_body_in_pieces_must_be_declared_as_json_too(at: House) -> None:

    async def pieces():  # type: ignore[no-untyped-def]
        yield BODY

    response = await at.http.post("/v1/agent", content=pieces(), headers={"content-type": "text/plain"})
    assert (response.status_code, error_of(response)["code"]) == (403, "not_json")


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer wrong", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}2", f"Basic {TOKEN}", TOKEN]
)
async def test_a_wrong_token_is_refused(tmp_path: Path, sent: str) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        response = await at.http.post("/v1/agent", json={"message": "hi"}, headers={"authorization": sent})
        assert (response.status_code, error_of(response)["code"]) == (401, "unauthorized")
        assert response.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in response.text
        assert at.stored.messages() == []


async def test_with_the_token_everybody_gets_in(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, reply="yes") as at:
        assert await status_of(at, {"authorization": f"bearer {TOKEN}"}) == (202, "")
        elsewhere = {"host": "bot.example.com", "origin": "https://example.com", "content-type": "text/plain"}
        assert await status_of(at, elsewhere) == (202, "")


async def test_health_is_open(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        for path in ("/healthz", "/readyz"):
            headers = {"authorization": "", "host": "bot.example.com"}
            assert (await at.http.get(path, headers=headers)).status_code == 200


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_the_unix_socket_lets_its_owner_in(tmp_path: Path, token: str | None) -> None:
    async with house(tmp_path, token=token, reply="yes") as at, at.unix() as unix:
        assert at.socket.stat().st_mode & 0o777 == 0o600
        assert at.socket.parent.stat().st_mode & 0o777 == 0o700
        headers = {"origin": "https://example.com", "content-type": "text/plain"}
        response = await unix.post("/v1/agent", content=BODY, headers=headers)
        assert response.status_code == 202


TELEGRAM = "agent:main:telegram:direct:42"


@pytest.mark.parametrize("session", ["agent:main:main", TELEGRAM, "agent:main:console:direct:local"])
async def test_without_a_token_there_are_only_sessions_of_ones_own(tmp_path: Path, session: str) -> None:
    async with house(tmp_path) as at, at.unix() as owner:
        for response in (
            await at.http.post("/v1/agent", json={"message": "hi", "session": session}),
            await refused(at, f"/v1/events?session={session}"),
            await at.http.get("/v1/status"),
        ):
            assert (response.status_code, error_of(response)["code"]) == (403, "owners_only")
            assert "gateway.token" in error_of(response)["hint"]
        assert at.stored.messages() == []
        run = (await owner.post("/v1/agent", json={"message": "mine", "session": session})).json()["run_id"]
        await at.model.called()
        for missing in (
            await at.http.get(f"/v1/agent/{run}"),
            await at.http.get(f"/v1/agent/{run}?wait=5"),
            await at.http.delete(f"/v1/agent/{run}"),
            await at.http.post(f"/v1/agent/{run}/steer", json={"message": "do this instead"}),
            await refused(at, f"/v1/events?run={run}"),
        ):
            assert (missing.status_code, error_of(missing)["code"]) == (404, "no_such_run")
        assert (await owner.get(f"/v1/agent/{run}")).json()["status"] == "running"
        assert len(at.stored.messages()) == 1


async def test_without_a_token_nothing_is_heard_of_other_sessions(tmp_path: Path) -> None:
    async with house(tmp_path, reply="yes") as at, at.unix() as owner, at.events() as everything:
        await everything.next()
        await owner.post("/v1/agent", json={"message": "mine", "session": TELEGRAM})
        async with at.events(f"?session={TELEGRAM}&last_event_id=x", client=owner) as stream:
            await stream.until("agent_end")
        run = await at.submit("hello")
        live = await everything.until("agent_end")
        async with at.events("?last_event_id=x") as replay:
            stored = await replay.until("agent_end")
        assert {sent.data["run"]["run_id"] for sent in (*live, *stored)} == {run}


async def test_with_the_token_a_caller_is_an_owner(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, reply="yes") as at:
        run = await at.submit("hello", session=TELEGRAM)
        assert (await at.show(run, wait="20"))["session"] == TELEGRAM
        assert (await at.http.get("/v1/status")).status_code == 200
        status = await at.submit("/status")
        assert "**Runs**" in (await at.show(status, wait="20"))["text"]


async def test_without_a_token_the_service_is_nobodys_business(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.unix() as owner:
        text = (await at.show(await at.submit("/status"), wait="20"))["text"]
        assert "**Model**" in text
        assert "**Runs**" not in text
        run = (await owner.post("/v1/agent", json={"message": "/status"})).json()["run_id"]
        assert "**Runs**" in (await at.show(run, wait="20"))["text"]


@pytest.mark.parametrize("restart", [False, True])
async def test_commands_of_this_machine_are_not_for_those_without_a_token(tmp_path: Path, restart: bool) -> None:
    """Who has sent a message stands with it: also when it is answered by a service that has a token by then."""
    tools = {"exec": {"security": "full"}}
    async with house(tmp_path, reply=None if restart else "yes", tools=tools) as at, at.unix() as owner:
        await at.submit("a person", session="a")
        await owner.post("/v1/agent", json={"message": "an owner", "session": "b"})
        calls = [await at.model.called() for _ in range(2)]
    if restart:
        async with house(tmp_path, reply="yes", tools=tools, token=TOKEN) as at:
            calls = [await at.model.called() for _ in range(2)]
    offered = {
        call.request.messages[0].text.split()[-1]: [tool.name for tool in call.request.tools]
        for call in calls
        if ("exec" in call.request.system) == (call.request.messages[0].text.endswith("owner"))
    }
    assert {who: "exec" in names for who, names in offered.items()} == {"person": False, "owner": True}
