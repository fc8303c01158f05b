"""Clients that say nothing, half of it, or too much: both listeners drop them in time, and they are in nobody's way."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import TypeVar

import pytest
from aiohttp import web
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.gateway.listener import Listener as Gateway
from channels.connections import Limits, peer_of
from channels.listener import Listener as Webhook
from channels.settings import Listen
from tests.watch import PATIENCE

HEAD = b"POST /hook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
LONG = HEAD.replace(b" 5\r", b" 1000000\r")
LARGE = 8 * 1024 * 1024
T = TypeVar("T")
Street = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Host:
    """Answers with the body that came: `heldN` when the test releases it, `large` with very much."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.held = asyncio.Semaphore(0)

    async def answer(self, body: bytes) -> bytes:
        if body == b"large":
            return bytes(LARGE)
        if body[:4] == b"held":
            self.held.release()
            await self.released.wait()
        return body

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(await self.answer(await Request(scope, receive).body()))(scope, receive, send)

    async def hook(self, request: web.Request) -> web.Response:
        return web.Response(body=await self.answer(await request.read()))


async def spare(scope: Scope, receive: Receive, send: Send) -> None:
    """What the gateway answers where no place is left."""
    await Response(b'{"error": {"code": "busy", "message": "", "hint": ""}}', 503)(scope, receive, send)


@asynccontextmanager
async def gateway(host: Host, limits: Limits) -> AsyncIterator[int]:
    listener = Gateway(host.asgi, spare, limits)
    port = await listener.start_tcp("127.0.0.1", 0)
    yield port
    await listener.close()


@asynccontextmanager
async def webhook(host: Host, limits: Limits) -> AsyncIterator[int]:
    listener = Webhook(Listen(host="127.0.0.1", port=0, path="/hook"), host.hook, limits)
    await listener.start()
    yield listener.port
    await listener.close()


class House:
    """A listener, and whoever calls."""

    def __init__(self, serve: Callable[[Host, Limits], object]) -> None:
        self.host = Host()
        self.port = 0
        self._serve = serve
        self._open: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def with_limits(self, limits: Limits) -> AsyncIterator["House"]:
        async with self._serve(self.host, limits) as self.port:  # type: ignore[attr-defined]
            try:
                yield self
            finally:
                self.host.released.set()
                for writer in self._open:
                    writer.close()

    async def call(self, sent: bytes = b"", address: str = "127.0.0.1") -> Street:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        self._open.append(writer)
        writer.write(sent)
        return reader, writer

    async def hold(self, count: int, address: str = "127.0.0.1") -> list[Street]:
        """Calls that are being answered."""
        streets = [await self.call(HEAD + b"held1", address) for _ in range(count)]
        async with asyncio.timeout(PATIENCE):
            for _ in streets:
                await self.host.held.acquire()
        return streets


@pytest.fixture(params=[gateway, webhook])
def house(request: pytest.FixtureRequest) -> House:
    return House(request.param)


async def within(waiting: Awaitable[T]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await waiting


async def said(reader: asyncio.StreamReader) -> bytes:
    """Everything up to the end of the connection."""
    try:
        return await within(reader.read())
    except ConnectionError:
        return b""


async def answered(street: Street, body: bytes = b"hello") -> None:
    """Assert that the next thing to come is this answer."""
    found = await within(street[0].readuntil(body))
    assert found.startswith(b"HTTP/1.1 200 OK"), found


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"", 0),
        (HEAD[:30], 0),
        (HEAD + b"ab", 0),
        (HEAD + b"abcde" + HEAD[:30], 1),
        (HEAD + b"abcde" + HEAD + b"ab", 1),
        (HEAD + b"abcde", 1),
    ],
    ids=["nothing", "half a head", "half a body", "a second head", "a second body", "nothing more"],
)
async def test_what_does_not_come_in_time_ends_its_connection(house: House, sent: bytes, answers: int) -> None:
    async with house.with_limits(Limits(8, head=0.05, body=0.05, idle=0.05)):
        reader, _ = await house.call(sent)
        assert (await said(reader)).count(b"HTTP/1.1 200") == answers


@pytest.mark.parametrize("begun", [b"", LONG], ids=["a head", "a body"])
async def test_a_trickle_does_not_put_off_the_end(house: House, begun: bytes) -> None:
    async with house.with_limits(Limits(8, head=0.05, body=0.05)):
        reader, writer = await house.call(begun)
        ended = asyncio.create_task(said(reader))
        while not ended.done():
            writer.write(b"a")
            await asyncio.sleep(0)
        assert await ended == b""


async def test_an_answer_may_take_longer_than_all_deadlines(house: House) -> None:
    async with house.with_limits(Limits(8, head=0.05, body=0.05, idle=0.05, taking=0.05)):
        (street,) = await house.hold(1)
        reader, _ = await house.call(HEAD[:30])
        assert await said(reader) == b"", "the deadline was reached"
        house.host.released.set()
        await answered(street, b"held1")


async def test_an_answer_that_nobody_takes_ends(house: House) -> None:
    async with house.with_limits(Limits(8, head=0.2, taking=0.05)):
        street = await house.call(HEAD + b"large")
        await within(street[0].readuntil(b"\r\n\r\n"))
        street[1].transport.pause_reading()  # type: ignore[attr-defined]
        reader, _ = await house.call(HEAD[:30])
        assert await said(reader) == b"", "the deadline was reached"
        street[1].transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await said(street[0])) < LARGE


@pytest.mark.parametrize("sent", [b"", HEAD[:30], HEAD + b"ab", LONG + bytes(1000)])
async def test_hundreds_that_keep_it_waiting_keep_nobody_out(house: House, sent: bytes) -> None:
    async with house.with_limits(Limits(64)):
        flood = [await house.call(sent) for _ in range(300)]
        await answered(await house.call(HEAD + b"hello"))
        assert sum(reader.at_eof() for reader, _ in flood) >= 300 - 64


async def test_whoever_waits_for_longest_makes_room_and_who_is_served_does_not(house: House) -> None:
    limits = Limits(8)
    async with house.with_limits(limits):
        served = await house.hold(2)
        idle = [await house.call(HEAD + b"hello") for _ in range(limits.of_peer - 2)]
        for street in idle:
            await answered(street)
        for _ in range(2):
            await answered(await house.call(HEAD + b"hello"))
        assert [reader.at_eof() for reader, _ in idle] == [True, True, False, False]
        house.host.released.set()
        for street in served:
            await answered(street, b"held1")


async def test_one_address_does_not_take_the_places_of_others(house: House) -> None:
    limits = Limits(16)
    async with house.with_limits(limits):
        other = await house.call(HEAD[:30], "127.0.0.2")
        flood = [await house.call(HEAD[:30]) for _ in range(40)]
        await answered(await house.call(HEAD + b"hello"))
        assert sum(not reader.at_eof() for reader, _ in flood) < limits.of_peer
        other[1].write(HEAD[30:] + b"hello")
        await answered(other)


async def test_where_all_are_being_answered_the_next_is_refused_in_words(house: House) -> None:
    limits = Limits(8)
    async with house.with_limits(limits):
        served = await house.hold(limits.of_peer)
        reader, _ = await house.call(HEAD + b"hello")
        head, _, body = (await said(reader)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"connection: close" in head.lower()
        error = json.loads(body)["error"]
        assert (error["code"], sorted(error)) == ("busy", ["code", "hint", "message"])
        await answered(await house.call(HEAD + b"hello", "127.0.0.2"))
        house.host.released.set()
        for street in served:
            await answered(street, b"held1")


async def test_spare_places_cannot_be_held(house: House) -> None:
    limits = Limits(8, spare=0.05)
    async with house.with_limits(limits):
        await house.hold(limits.of_peer)
        half = [await house.call(HEAD[:30]) for _ in range(60)]
        reader, _ = await house.call(HEAD + b"hello")
        assert (await said(reader)).startswith(b"HTTP/1.1 503 ")
        assert b"".join([await said(reader) for reader, _ in half]) == b"", "their deadline is short"


async def test_one_that_comes_in_the_middle_of_a_flood_is_read(house: House) -> None:
    """All of them wait to be accepted, and hardly a place is free."""
    limits = Limits(64)
    async with house.with_limits(limits):
        await house.hold(limits.of_peer - 1)
        with ExitStack() as open_ones:
            crowd = [
                open_ones.enter_context(socket.create_connection(("127.0.0.1", house.port), PATIENCE))
                for _ in range(300)
            ]
            for one in crowd:
                one.sendall(HEAD + b"hello" if one is crowd[150] else HEAD[:30])
            crowd[150].setblocking(False)
            found = await within(asyncio.get_running_loop().sock_recv(crowd[150], 15))
            assert found[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 503")


async def test_of_too_many_bytes_that_wait_the_largest_request_goes(house: House) -> None:
    async with house.with_limits(Limits(8, pending=300_000)):
        small = await house.call(LONG + bytes(20_000))
        largest = await house.call(LONG)
        large = [await house.call(LONG + bytes(50_000)) for _ in range(3)]
        try:
            largest[1].write(bytes(900_000))
            assert await said(largest[0]) == b""
        except ConnectionError:
            pass
        await answered(await house.call(HEAD + b"hello"))
        assert not any(reader.at_eof() for reader, _ in (small, *large))


async def test_bytes_count_until_a_request_is_whole(house: House) -> None:
    """By many requests on one connection, each in two pieces."""
    async with house.with_limits(Limits(8, pending=1_000)):
        street = await house.call()
        for _ in range(20):
            street[1].write(HEAD + b"a")
            reader, _ = await house.call(HEAD + b"hello")
            await answered((reader, street[1]))
            street[1].write(b"bcde")
            await answered(street, b"abcde")


async def test_a_burst_of_deliveries_is_taken(house: House) -> None:
    """Behind a proxy all of them come from one address."""
    async with house.with_limits(Limits()):
        streets = await asyncio.gather(*(house.call(HEAD + b"hello") for _ in range(90)))
        for street in streets:
            await answered(street)


def test_a_network_of_addresses_is_one_peer() -> None:
    assert peer_of(("192.0.2.7", 1)) == "192.0.2.7"
    assert peer_of(("2001:db8::1", 1, 0, 0)) == peer_of(("2001:db8:0:0:9::2", 1, 0, 0))
    assert peer_of(("2001:db8::1", 1, 0, 0)) != peer_of(("2001:db8:0:1::1", 1, 0, 0))
    assert peer_of(("fe80::1%eth0", 1, 0, 2)) == peer_of(("fe80::2", 1, 0, 2))
    assert peer_of("") == peer_of(None) == ""
