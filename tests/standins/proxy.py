"""A TCP proxy that breaks HTTP/1.1 connections at a chosen byte, so that faults happen on the wire.

`async with FaultProxy(server.port) as proxy:` forwards `proxy.port`. A rule waits for the n-th request that
contains some bytes; on leaving the block every rule must have fired. What comes from the server after
a request is taken for its answer, so that clients must not pipeline.
"""

import asyncio
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

CHUNK = 65_536


@dataclass(slots=True, eq=False)
class WireRule:
    """One fault on a part, "request" or "answer". `reached` is set when it happens.

    `cut` is the number of bytes after which both connections end.
    """

    part: str
    match: bytes
    nth: int
    cut: int
    seen: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)


class _Cut(Exception):
    """Both connections end here."""


class FaultProxy:
    """See the module. `requests` holds the first line of each request."""

    def __init__(self, upstream_port: int, upstream_host: str = "127.0.0.1") -> None:
        self.port = 0
        self.requests: list[bytes] = []
        self._upstream = (upstream_host, upstream_port)
        self._rules: list[WireRule] = []
        self.connections = 0
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._link, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for link in self._links:
            link.close()
        await asyncio.gather(*(link.over.wait() for link in self._links))
        await self._server.wait_closed()
        if error is None:
            self.assert_fired()

    def cut_request(self, match: bytes = b"", *, after: int = 0, nth: int = 1) -> WireRule:
        """Forward only `after` bytes of the request: 0 means that the server hears nothing of it."""
        return self._add(WireRule("request", match, nth, cut=after))

    def cut_answer(self, match: bytes = b"", *, after: int = 0, nth: int = 1) -> WireRule:
        """Forward only `after` bytes of the answer: with 0 the server acts and the client hears nothing."""
        return self._add(WireRule("answer", match, nth, cut=after))

    def assert_fired(self) -> None:
        missing = [rule for rule in self._rules if not rule.reached.is_set()]
        assert not missing, f"faults that did not happen: {missing}; requests: {self.requests[-15:]}"

    def _add(self, rule: WireRule) -> WireRule:
        self._rules.append(rule)
        return rule

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client connection and its upstream connection, until either ends."""
        self.connections += 1
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.close()
            return
        link = _Link(self, reader, writer, up_reader, up_writer)
        self._links.add(link)
        await link.run()
        self._links.discard(link)

    def take(self, request: bytes) -> list[WireRule]:
        """Count a request and return the rules that it is the n-th match of."""
        self.requests.append(request.split(b"\r\n", 1)[0])
        due = []
        for rule in self._rules:
            if rule.match in request:
                rule.seen += 1
                if rule.seen == rule.nth:
                    due.append(rule)
        return due


@dataclass(slots=True, eq=False)
class _Link:
    proxy: FaultProxy
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    up_reader: asyncio.StreamReader
    up_writer: asyncio.StreamWriter
    due: list[WireRule] = field(default_factory=list)
    answered: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Forward both ways until one of them ends."""
        pumps = [asyncio.create_task(self.requests()), asyncio.create_task(self.answers())]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self.close()
        self.over.set()

    def close(self) -> None:
        self.writer.close()
        self.up_writer.close()

    async def requests(self) -> None:
        """Forward whole requests, one after the other."""
        try:
            while True:
                request = await _read_request(self.reader)
                self.due, self.answered = self.proxy.take(request), 0
                await self._pass("request", request, 0, self.up_writer)
        except (asyncio.IncompleteReadError, ConnectionError, _Cut):
            return

    async def answers(self) -> None:
        """Forward bytes as they come; they belong to the last request."""
        try:
            while data := await self.up_reader.read(CHUNK):
                before, self.answered = self.answered, self.answered + len(data)
                await self._pass("answer", data, before, self.writer)
        except (ConnectionError, _Cut):
            return

    async def _pass(self, part: str, data: bytes, before: int, writer: asyncio.StreamWriter) -> None:
        """Apply the due rules to bytes that follow `before` bytes of the same part, then forward them."""
        for rule in self.due:
            if rule.part == part and before + len(data) > rule.cut:
                writer.write(data[: max(rule.cut - before, 0)])
                await writer.drain()
                rule.reached.set()
                raise _Cut
        writer.write(data)
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    """One HTTP/1.1 request with its body, by Content-Length."""
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    assert b"\r\ntransfer-encoding:" not in lower
    _, found, rest = lower.partition(b"\r\ncontent-length:")
    return head + (await reader.readexactly(int(rest.split(b"\r\n", 1)[0])) if found else b"")
