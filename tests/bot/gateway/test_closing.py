"""How the gateway comes up and goes down: ports, the socket in the state directory, open connections."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from bot.background.control import Control
from bot.config.model import Gateway as Address
from bot.gateway.app import build
from bot.gateway.send_routes import SendRoutes
from bot.gateway.server import Gateway, GatewayError
from bot.gateway.unix_socket import address
from bot.gateway.usage import UsageReport
from bot.gateway.views import ChannelView, ReadinessView, StatusView
from tests.bot.gateway.house import TOKEN, House, house
from tests.bot.gateway.test_agent import error_of
from tests.watch import PATIENCE


def another(at: House, folder: Path, port: int | None = 0, health: ReadinessView | None = None) -> Gateway:
    """A second gateway of a service, in a folder of its own."""

    async def status() -> StatusView:
        raise RuntimeError("the secret is 12345")

    parts, tcp = at.service.parts, None if port is None else Address(port=port, token=SecretStr(TOKEN))
    served = build(
        health=lambda: health or at.service.parts.health.view(),
        status=status,
        api=parts.api,
        reads=parts.store.reads,
        bus=parts.bus,
        pairing=parts.pairing,
        control=Control(parts.dispatcher),
        requests=parts.requests,
        usage=UsageReport(parts.store, parts.clock),
        sessions=parts.sessions,
        forget=parts.forget,
        sending=SendRoutes(parts.store, parts.outbox, parts.dispatcher.conversations),
        freezer=parts.freezer,
        book=parts.book,
        restart=parts.restart,
        skills=parts.skills,
        mcp=parts.mcp,
    )
    return Gateway(served, folder / "hark.sock", tcp)


@asynccontextmanager
async def served(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    """A started gateway and a client of it."""
    await gateway.start()
    gateway.open()
    try:
        base, headers = f"http://127.0.0.1:{gateway.port}", {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=PATIENCE) as client:
            yield client
    finally:
        await gateway.close()


async def test_streams_and_waits_end_with_the_bus(at: House) -> None:
    run = await at.submit("hello")
    await at.model.called()
    async with (
        at.unix() as unix,
        at.events() as everything,
        at.events(f"?run={run}") as one,
        at.events("/v1/console", client=unix) as console,
    ):
        for stream in (everything, one):
            await stream.until("message_start")
        waiting = asyncio.create_task(at.http.get(f"/v1/agent/{run}?wait=600"))
        await at.http.get("/healthz")  # sent after the wait, on another connection
        async with asyncio.timeout(PATIENCE):
            at.service.parts.bus.close()
            await at.gateway.close()
        assert [await stream.rest() for stream in (everything, one, console)] == [[], [], []]
    response = await waiting
    assert (response.status_code, response.json()["status"]) == (202, "running")
    with pytest.raises(httpx2.TransportError):
        await at.http.get("/healthz")
    assert not at.socket.exists()


async def test_the_service_closes_while_clients_hold_connections(at: House) -> None:
    run = await at.submit("hello")
    await at.model.called()
    idle_reader, idle = await asyncio.open_connection("127.0.0.1", at.gateway.port)
    half_reader, half = await asyncio.open_connection("127.0.0.1", at.gateway.port)
    half.write(b"GET /healthz HT")
    await half.drain()
    waiting = asyncio.create_task(at.http.get(f"/v1/agent/{run}?wait=600"))
    async with at.events() as stream:
        async with asyncio.timeout(PATIENCE):
            await at.service.close()
        await stream.rest()
    assert (await waiting).json()["status"] in ("running", "queued")
    for reader, writer in ((idle_reader, idle), (half_reader, half)):
        assert await reader.read() == b""
        writer.close()
    at.service.close = _nothing  # type: ignore[method-assign]


async def _nothing() -> None:
    """The service is closed already."""


async def test_a_client_that_leaves_in_the_middle_of_its_request(caplog: pytest.LogCaptureFixture, at: House) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", at.gateway.port)
    head = b"POST /v1/agent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
    writer.write(head + b"Expect: 100-continue\r\n\r\n")
    assert b"100" in await reader.readuntil(b"\r\n\r\n")  # the handler waits for the body
    writer.write(b'{"message"')
    writer.close()
    await at.gateway.close()
    assert at.stored.messages() == []
    assert not caplog.records


async def test_a_client_that_does_not_read_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bot.gateway.listener.GRACE", 0.05)
    async with house(tmp_path) as at:
        await at.submit("hello")
        call = await at.model.called()
        _, writer = await asyncio.open_unix_connection(str(at.socket), limit=1024)
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: hark\r\n\r\n")
        async with at.events() as watch:
            for n in range(200):
                call.think(f"{n} " * 4000)
                await watch.until("message_update")
        async with asyncio.timeout(PATIENCE):
            at.service.parts.bus.close()
            await at.gateway.close()
        writer.close()
        assert not caplog.records


async def test_a_port_in_use_is_one_clear_sentence(tmp_path: Path, at: House) -> None:
    gateway = another(at, tmp_path, at.gateway.port)
    with pytest.raises(GatewayError) as caught:
        await gateway.start()
    assert str(caught.value) == (
        f"Port {at.gateway.port} of 127.0.0.1 is in use by another program. "
        "Stop that one, or choose another `gateway.port`."
    )
    assert not (tmp_path / "hark.sock").exists()


async def test_without_a_port_the_socket_alone_is_served(tmp_path: Path, at: House) -> None:
    gateway = another(at, tmp_path, None)
    await gateway.start()
    assert gateway.port is None
    transport = httpx2.AsyncHTTPTransport(uds=str(tmp_path / "hark.sock"))
    async with httpx2.AsyncClient(base_url="http://hark", transport=transport) as client:
        assert (await client.get("/healthz")).status_code == 200
    await gateway.close()


async def test_a_socket_that_was_left_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    (tmp_path / "state").mkdir()
    left.bind(str(tmp_path / "state" / "hark.sock"))
    left.close()
    async with house(tmp_path) as at, at.unix() as unix:
        assert (await unix.get("/healthz")).status_code == 200


async def test_a_deep_state_directory_has_its_socket_too(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a rather long name of a folder"] * 5)
    deep.mkdir(parents=True)
    async with house(deep) as at:
        assert len(str(at.socket)) > 107
        assert at.socket.stat().st_mode & 0o777 == 0o600
        with address(at.socket) as where:
            transport = httpx2.AsyncHTTPTransport(uds=where)
            async with httpx2.AsyncClient(base_url="http://hark", transport=transport) as client:
                assert (await client.get("/healthz")).status_code == 200
    assert not at.socket.exists()


async def test_a_socket_that_cannot_be_made_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "hark.sock").mkdir()
    async with house(tmp_path) as at:
        with pytest.raises(GatewayError, match=r"The socket .*hark\.sock cannot be made: .*\."):
            await another(at, tmp_path).start()


async def test_the_state_of_the_channels(tmp_path: Path) -> None:
    red = ReadinessView(
        ready=False,
        channels={
            "telegram": ChannelView(state="down", since="2026-01-01T00:00:00.250Z", detail="another poller is running"),
            "console": ChannelView(state="ready", since="2026-01-01T00:00:00.000Z", detail=""),
        },
    )
    async with house(tmp_path) as at, served(another(at, tmp_path, health=red)) as client:
        ready = await client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json() == {
            "ready": False,
            "channels": {
                "telegram": {
                    "state": "down",
                    "since": "2026-01-01T00:00:00.250Z",
                    "detail": "another poller is running",
                },
                "console": {"state": "ready", "since": "2026-01-01T00:00:00.000Z", "detail": ""},
            },
        }
        alive = await client.get("/healthz")
        assert (alive.status_code, alive.json()) == (200, ready.json())
        assert (await at.http.get("/readyz")).json()["ready"] is True


async def test_what_nobody_expected_is_a_plain_500(tmp_path: Path) -> None:
    async with house(tmp_path) as at, served(another(at, tmp_path)) as client:
        response = await client.get("/v1/status")
        assert (response.status_code, error_of(response)["code"]) == (500, "internal")
        assert "12345" not in response.text
        assert (await client.get("/healthz")).status_code == 200
