"""The guards of conftest hold: they are what keeps the other tests honest."""

import asyncio
import os
import socket

import pytest


def test_environment_is_clean() -> None:
    foreign = ("ANTHROPIC_", "OPENAI_", "HARK_")
    assert [name for name in os.environ if name.startswith(foreign)] == []


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com", "::ffff:192.0.2.1"])
def test_nothing_past_loopback_is_reached(host: str, past_loopback: list[str]) -> None:
    with pytest.raises(OSError, match="only loopback"):
        socket.create_connection((host, 80))
    assert past_loopback == [host]
    past_loopback.clear()


async def test_the_event_loop_is_guarded_too(past_loopback: list[str]) -> None:
    with pytest.raises(OSError, match="only loopback"):
        await asyncio.open_connection("192.0.2.1", 80)
    assert past_loopback
    past_loopback.clear()


async def test_loopback_is_open() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
