"""Connections that say nothing, or only half: closed in time, bounded in number, and in nobody's way."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.gateway.listener import Listener, tell_failures

ROOT = Path(__file__).parents[3]
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
PATIENCE = 10


class Held:
    """An application that answers with the body; a request for /held waits for the test."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.held = asyncio.Event()
        self.app = Starlette(routes=[Route("/{path:path}", self.answer, methods=["GET", "POST"])])

    async def answer(self, request: Request) -> Response:
        if request.url.path == "/held":
            self.held.set()
            await self.released.wait()
        return Response(await request.body() or b"nothing")


@asynccontextmanager
async def listening(held: Held, seconds: float) -> AsyncIterator[int]:
    listener = Listener(held.app, seconds)
    port = await listener.start_tcp("127.0.0.1", 0)
    try:
        yield port
    finally:
        held.released.set()
        await listener.close()


async def said(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the end of the connection."""
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HEAD[:30],
        HEAD + b"ab",
        HEAD + b"abcde" + HEAD[:30],
        HEAD + b"abcde" + HEAD + b"ab",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEAD + b"ab",
    ],
    ids=["nothing", "half a head", "half a body", "a second head", "a second body", "a body behind a GET"],
)
async def test_a_request_that_does_not_come_in_time_ends_its_connection(sent: bytes) -> None:
    async with listening(Held(), 0.05) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        answers = await said(reader)
        writer.close()
    assert answers.count(b"HTTP/1.1 200") == (sent.count(b"HTTP/1.1") > 1)


async def test_an_answer_may_take_longer_than_a_request(tmp_path: Path) -> None:
    held = Held()
    async with listening(held, 0.05) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n")
        half, other = await asyncio.open_connection("127.0.0.1", port)
        other.write(HEAD[:30])
        assert await said(half) == b"", "the limit was reached"
        held.released.set()
        async with asyncio.timeout(PATIENCE):
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        for stream in (writer, other):
            stream.close()


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_descriptors")
async def test_the_idle_one_makes_room_and_one_that_is_served_does_not() -> None:
    held, most = Held(), 256 // 8
    async with listening(held, 600) as port:
        served, asking = await asyncio.open_connection("127.0.0.1", port)
        asking.write(b"GET /held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await held.held.wait()
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(most)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"hello")
        async with asyncio.timeout(PATIENCE):
            assert b"200 OK" in await reader.readuntil(b"hello")
        gone = [number for number, (each, _) in enumerate(idle) if each.at_eof()]
        assert gone == [0, 1], "for each that is too many the oldest idle one"
        held.released.set()
        assert (await said(served)).endswith(b"nothing")
        for _, stream in (*idle, (None, asking), (None, writer)):
            stream.close()


async def test_failed_accepts_are_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    loop = asyncio.get_running_loop()
    tell_failures(loop)
    try:
        for _ in range(100):
            error = OSError(24, "Too many open files")
            loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
        loop.call_exception_handler({"message": "something else"})
    finally:
        loop.set_exception_handler(None)
    told = "".join(capfd.readouterr())
    assert told.count("connections cannot be accepted") == 1
    assert "Traceback" not in told


def test_half_open_connections_do_not_keep_the_owner_out(tmp_path: Path) -> None:
    """160 of them, at a service that may have 128 descriptors."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "config.yaml").write_text(f"agent: {{model: offline}}\ngateway: {{port: {port}}}\n")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    hark = [sys.executable, "-m", "bot"]
    limited = ["/bin/sh", "-c", 'ulimit -n 128 && exec "$@"', "sh", *hark, "run"]
    log = tmp_path / "log"
    with (
        log.open("wb") as written,
        subprocess.Popen(limited, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, stderr=written) as service,
        ExitStack() as open_ones,
    ):
        try:
            status = lambda: subprocess.run(  # noqa: E731
                [*hark, "status"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
            )
            while (found := status()).returncode:
                assert service.poll() is None, log.read_text()
            for _ in range(160):
                half = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
                half.sendall(HEAD[:30])
            found = status()
            assert found.returncode == 0, found.stdout + found.stderr
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as asking:
                asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert asking.recv(15) == b"HTTP/1.1 200 OK"
        finally:
            service.terminate()
            service.wait(60)
    assert "Traceback" not in log.read_text()
