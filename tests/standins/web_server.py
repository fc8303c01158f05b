"""A web server on loopback that answers as it is told, in any bytes, and the interfaces of three searches.

It is strict about what every client owes: HTTP/1.1, GET and exactly one Host (RFC 9112, 3.2), else 400. The searches
follow the vendors' pages: Brave's "Web Search API" (key in X-Subscription-Token, 1 to 400 characters and 50 words,
at most 20 results), SearXNG's "Search API" (403 for a format that settings.yml does not name).
"""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request: its path, its query, and its headers in small letters."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Said:
    """An answer. raw: sent instead of everything else. hangs: it is never ended."""

    body: bytes = b""
    media: str = "text/html"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hangs: bool = False

    def sent(self) -> bytes:
        """The bytes of the answer."""
        if self.raw is not None:
            return self.raw
        length = {} if self.hangs else {"Content-Length": str(len(self.body))}
        kind = {"Content-Type": self.media} if self.media else {}
        lines = [f"{name}: {value}" for name, value in {**kind, **length, **self.headers}.items()]
        return "\r\n".join((f"HTTP/1.1 {self.status} -", *lines, "", "")).encode("latin-1") + self.body


Answering = Callable[[Asked], Said]


def moved(to: str, status: int = 302) -> Said:
    """A redirect."""
    return Said(status=status, headers={"Location": to})


class WebServer:
    """See the module. pages: what is at each path. asked: all requests. connections: how many there were."""

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.pages: dict[str, Said | Answering] = {}
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0
        # Of each connection over TLS, the name that was asked for.
        self.names: list[str | None] = []
        self._host, self._tls, self._open = host, tls, set[asyncio.Task[None]]()
        if tls is not None:
            tls.sni_callback = lambda connection, name, context: self.names.append(name)

    @property
    def at(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._open, return_exceptions=True)

    def cut(self) -> None:
        """End all connections once what is on its way has been sent."""
        for task in self._open:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            lines = [line.partition(":") for line in head[1:] if line]
            hosts = [value for name, _, value in lines if name.lower() == "host"]
            method, _, rest = head[0].partition(" ")
            target, _, version = rest.partition(" ")
            if version != "HTTP/1.1" or len(hosts) != 1:
                writer.write(Said(b"bad request", "text/plain", 400).sent())
            elif method != "GET":
                writer.write(Said(b"GET alone", "text/plain", 405, {"Allow": "GET"}).sent())
            else:
                parts = urlsplit(target)
                query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
                asked = Asked(parts.path, query, {name.lower(): value.strip() for name, _, value in lines})
                self.asked.append(asked)
                page = self.pages.get(parts.path, Said(b"nothing here", "text/plain", 404))
                said = page if isinstance(page, Said) else page(asked)
                writer.write(said.sent())
                if said.hangs:
                    await writer.drain()
                    await _for_ever()
            await writer.drain()


_for_ever: Callable[[], Awaitable[bool]] = lambda: asyncio.Event().wait()  # noqa: E731


def _json(said: object, status: int = 200) -> Said:
    return Said(json.dumps(said).encode(), "application/json", status)


Results = list[tuple[str, str, str]]


def brave(key: str, results: Results) -> Answering:
    """Brave's search at /res/v1/web/search, with the results it has: title, address, description."""

    def error(status: int, code: str) -> Said:
        return _json({"type": "ErrorResponse", "error": {"status": status, "code": code, "detail": code}}, status)

    def answer(asked: Asked) -> Said:
        if asked.headers.get("x-subscription-token") != key:
            return error(422, "SUBSCRIPTION_TOKEN_INVALID")
        query, count = asked.query.get("q", ""), asked.query.get("count", "20")
        if not 0 < len(query) <= 400 or len(query.split()) > 50 or not (count.isdigit() and 1 <= int(count) <= 20):
            return error(422, "VALIDATION")
        found = [{"title": one[0], "url": one[1], "description": one[2]} for one in results[: int(count)]]
        said: dict[str, object] = {"type": "search", "query": {"original": query}}
        return _json({**said, "web": {"type": "search", "results": found}} if found else said)

    return answer


def searxng(results: Results, *, json_allowed: bool = True, silent: list[list[str]] | None = None) -> Answering:
    """SearXNG's search at /search. silent: engines that did not answer, each with why."""

    def answer(asked: Asked) -> Said:
        if not asked.query.get("q"):
            return Said(b"no query", "text/html", 400)
        if asked.query.get("format", "html") not in ("html", *(["json"] if json_allowed else [])):
            return Said(b"<h1>403 Forbidden</h1>", "text/html", 403)
        if asked.query.get("format") != "json":
            return Said(b"<html>results for browsers</html>")
        found = [{"title": one[0], "url": one[1], "content": one[2], "engine": "x"} for one in results]
        return _json({"query": asked.query["q"], "results": found, "unresponsive_engines": silent or []})

    return answer
