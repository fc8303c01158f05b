"""What the gateway does with too many connections, streams and waits; `tests/wire/test_bounds.py` has the rules."""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from bot.gateway.listener import tell_failures
from channels.connections import Limits, usual_limits
from tests.bot.cli.running import READY
from tests.bot.gateway.house import House, house
from tests.forked import hark
from tests.watch import PATIENCE, Watch

ROOT = Path(__file__).parents[3]
POST = b"POST /v1/agent HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture
def limits() -> Iterator[Limits]:
    """Those of a process that may have few descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield usual_limits()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_few_descriptors_are_few_connections(limits: Limits) -> None:
    assert limits.connections == 256 // 8
    assert limits.of_peer > limits.lasting >= limits.lasting_of_peer >= 12, "a dozen of terminals"


async def health(house: House) -> int:
    return (await house.http.get("/healthz", headers={"connection": "close"})).status_code


class Caller:
    """A client of its own connection, and what it has received."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watch: Watch) -> None:
        self.received = b""
        self.ended = False
        self.close = writer.close
        self._reader, self._watch = reader, watch
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with suppress(ConnectionError):
            while chunk := await self._reader.read(65536):
                self.received += chunk
                self._watch.changed()
        self.ended = True
        self._watch.changed()

    def check_refused(self) -> None:
        """Assert that the connection ended with the answer that there are too many."""
        head, _, body = self.received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429 ")
        assert b"connection: close" in head.lower()
        assert json.loads(body)["error"]["code"] == "too_many"


@pytest.mark.parametrize("path", ["/v1/events", "/v1/agent/{run}?wait=3600"])
async def test_answers_that_last_are_bounded_and_give_their_places_back(
    tmp_path: Path, limits: Limits, path: str
) -> None:
    """A request takes its place after a read of the store, in any order: only a refusal proves that all are taken."""
    async with house(tmp_path) as home, AsyncExitStack() as open_ones:
        run = await home.submit("hello")
        call = await home.model.called()
        asked = f"GET {path.format(run=run)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        watch = Watch()

        async def ask() -> Caller:
            reader, writer = await asyncio.open_connection("127.0.0.1", home.gateway.port)
            open_ones.callback(writer.close)
            writer.write(asked)
            return Caller(reader, writer, watch)

        crowd = [await ask() for _ in range(limits.lasting_of_peer + 8)]
        await watch.until(lambda: sum(one.ended for one in crowd) >= 8, "refusals")
        for one in crowd:
            if one.ended:
                one.check_refused()
        for _ in range(60):
            one = await ask()
            await watch.until(lambda one=one: one.ended, "a refusal")  # type: ignore[misc]
            one.check_refused()
        assert await health(home) == 200
        holding = [one for one in crowd if not one.ended]
        assert len(holding) == limits.lasting_of_peer

        holding.pop().close()
        async with asyncio.timeout(PATIENCE):
            while len(home.service.parts.bus._subscriptions) != len(holding):
                assert await health(home) == 200
        pair = [await ask() for _ in range(2)]
        await watch.until(lambda: any(one.ended for one in pair), "the refusal of one")
        call.answer("Done.")
        (kept,) = (one for one in pair if not one.ended)
        await watch.until(lambda: b"Done." in kept.received, "an answer")
        assert kept.received.startswith(b"HTTP/1.1 200 "), "one that ended made room"
        await watch.until(lambda: all(b"Done." in one.received for one in holding), "the answers of all others")


async def test_health_is_answered_when_every_place_is_taken(tmp_path: Path, limits: Limits) -> None:
    """By messages that a slow disk holds up, and half of a request in each of the spare places."""
    body = b'{"message": "hello"}'
    whole = POST % (b"application/json", len(body)) + body
    async with house(tmp_path, reply="Yes.") as home, AsyncExitStack() as open_ones:

        async def ask(sent: bytes) -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection("127.0.0.1", home.gateway.port)
            open_ones.callback(writer.close)
            writer.write(sent)
            return reader

        home.disk.turns.clear()
        accepted = []
        for _ in range(limits.of_peer):
            accepted.append(await ask(whole))
            assert await health(home) == 200
        for _ in range(limits.spares * 3):
            await ask(whole[:30])
        assert await health(home) == 200
        other = await home.http.post("/v1/agent", json={"message": "and me"})
        assert (other.status_code, other.json()["error"]["code"]) == (503, "busy")
        home.disk.turns.set()
        async with asyncio.timeout(PATIENCE):
            for reader in accepted:
                assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 202 ")


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
    limited = ["/bin/sh", "-c", 'ulimit -n 128 && exec "$@"', "sh", sys.executable, "-m", "bot", "run"]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(limited, cwd=tmp_path, env=environ, **pipes) as service, ExitStack() as open_ones:
        try:
            log = list(takewhile(lambda line: READY not in line, service.stderr))
            for _ in range(160):
                half = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
                half.sendall(POST[:30])
            found = hark(tmp_path, "status", environ=environ)
            assert found.code == 0, found.out + found.error
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as asking:
                asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert asking.recv(15) == b"HTTP/1.1 200 OK"
        finally:
            service.terminate()
            log += service.stderr
    assert "Traceback" not in "".join(log)
