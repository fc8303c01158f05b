"""What the stand-ins of all model providers share: a real HTTP server on loopback that plays a script.

It records every request as it came, answers from the script of the test, and checks unasked that no request
was malformed and that none came before a `retry-after` had passed. The providers' rules and wire formats are
in `anthropic_server.py` and `openai_server.py`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Protocol, Self

from aiohttp import web

from tests.standins.request_log import Request, prefix_differences
from tests.standins.script import (
    Answer,
    Break,
    Call,
    Fail,
    Hang,
    Ping,
    Say,
    Script,
    Stop,
    Think,
)
from tests.watch import PATIENCE

TIMER_GRAIN = 0.005
"""Seconds an event loop's timer may fire early; a retry within them is in time."""


class Refused(Exception):
    """A request that the documented API does not accept."""

    def __init__(self, status: int, kind: str | None, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param


class Wire(Protocol):
    """One answer in a provider's format: events of a stream, or the whole message at once."""

    def start(self) -> bytes: ...
    def open(self, part: Say | Think | Call) -> bytes: ...
    def delta(self, part: Say | Think | Call, piece: str) -> bytes: ...
    def close(self, part: Say | Think | Call) -> bytes: ...
    def ping(self) -> bytes: ...
    def fail(self, part: Fail) -> bytes: ...
    def finish(self, reason: str | None) -> bytes: ...
    def message(self, parts: Sequence[Say | Think | Call], reason: str | None) -> dict[str, object]: ...


class _Cut(Exception):
    """The script breaks the connection here."""

    def __init__(self, how: str) -> None:
        self.how = how


class ModelServer(Script):
    """A model provider on an ephemeral loopback port: `async with AnthropicServer() as server:`.

    `add`, `on` and `default` write its script. `keys` and `models` are those it accepts (models None: any).
    `strict=False` drops every check but key and pause (for benchmarks); `record=False` keeps no requests.
    `clock` is the server's clock in seconds; share it with a client whose time is injected. A server that is
    stopped and started again listens on the same port and keeps script and record.
    """

    path: ClassVar[str]
    default_kinds: ClassVar[Mapping[int, str]]

    def __init__(
        self,
        *,
        keys: Sequence[str] = ("test-key",),
        models: Sequence[str] | None = None,
        strict: bool = True,
        record: bool = True,
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
        max_body: int = 32 * 1024 * 1024,
    ) -> None:
        super().__init__()
        self.keys = set(keys)
        self.models = None if models is None else list(models)
        self.strict = strict
        self.port = port
        self.requests: list[Request] = []
        self.count = 0
        self._record = record
        self._clock = clock
        self._max_body = max_body
        self._not_before: dict[str, float] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._runner: web.AppRunner | None = None

    # Life

    @property
    def url(self) -> str:
        """Where the server listens, without a path."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        app = web.Application(client_max_size=self._max_body)
        app.router.add_post(self.path, self.serve)
        self.add_routes(app)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=1024).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # Watch

    async def wait_for(self, count: int, timeout: float = PATIENCE) -> Request:
        """Return the request with this number (from 1) once it has come."""
        await self.until(lambda: self.count >= count, f"request {count}", timeout)
        return self.requests[count - 1]

    async def until(self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE) -> None:
        """Return when the condition holds; looked at whenever a request comes, is answered or is left."""
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiters.append(waiter)
                    await waiter
        except TimeoutError:
            seen = f"{self.count} requests came; violations: {self.violations}"
            raise TimeoutError(f"{type(self).__name__}: no {what} within {timeout} s; {seen}") from None

    def complaints(self) -> list[str]:
        """Also where a conversation, known by its first user text, does not begin as it did before."""
        return super().complaints() + [f"prefix changed: {one}" for one in self.prefix_violations()]

    def prefix_violations(self, key: Callable[[Request], Hashable | None] | None = None) -> list[str]:
        """Where a request of a conversation does not begin with the one before it.

        System and tools must be equal byte for byte, the messages a prefix; cache marks are left out. `key`
        names the conversation of a request (None: leave it out); by default it is the first user text.
        """
        return prefix_differences(self.requests, key or (lambda request: request.first_user_text))

    def _changed(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # The provider's part

    def add_routes(self, app: web.Application) -> None:
        """Add further endpoints."""

    def key_of(self, request: web.BaseRequest) -> str:
        """The API key of a request, checked. Raises Refused."""
        raise NotImplementedError

    def examine(self, request: web.BaseRequest, body: dict[str, object]) -> None:
        """Check a request against the documentation. Raises Refused."""
        raise NotImplementedError

    def wire(self, request: Request) -> Wire:
        raise NotImplementedError

    def error_body(self, status: int, kind: str | None, message: str, param: str | None) -> dict[str, object]:
        raise NotImplementedError

    def error_headers(self, fail: Fail) -> dict[str, str]:
        if fail.retry_after is None:
            return {}
        return {"retry-after": f"{fail.retry_after:g}"}

    # Serving

    async def serve(self, http: web.Request) -> web.StreamResponse:
        """Answer a request."""
        at = self._clock()
        try:
            raw = await http.read()
        except web.HTTPRequestEntityTooLarge:
            self.violations.append("a request was larger than the API takes")
            return self._error(413, None, "Request exceeds the maximum size")
        self.count += 1
        request = Request(self.count, at, http.path, http.headers, raw)
        if self._record:
            self.requests.append(request)
        try:
            response = await self._respond(http, request)
            if response.prepared or not request.cut:
                request.status = response.status
            request.finished = not request.cut
            return response
        except asyncio.CancelledError:
            request.disconnected = self._runner is not None
            raise
        except ConnectionError:
            request.disconnected = True
            raise
        finally:
            self._changed()

    async def _respond(self, http: web.Request, request: Request) -> web.StreamResponse:
        try:
            key = self.key_of(http)
            request.body = self._parsed(http, request.raw)
            self._watch_pause(request, key)
            if self.strict:
                self.examine(http, request.body)
        except Refused as refused:
            request.refusal = refused.message
            if refused.status in (400, 413):
                self.violations.append(f"request {request.number} is malformed: {refused.message}")
            return self._error(refused.status, refused.kind, refused.message, refused.param)
        self._changed()
        try:
            answer = self.answer(request)
            while answer and isinstance(answer[0], Hang):
                await answer[0].wait()
                answer = answer[1:]
            if answer and isinstance(answer[0], Break) and answer[0].after_chunks is None:
                raise _Cut(answer[0].how)
            if answer and isinstance(answer[0], Fail):
                return self._scripted_error(answer[0], key)
            if request.body.get("stream"):
                return await self._stream(http, request, answer)
            return await self._whole(request, answer)
        except _Cut as cut:
            request.cut = True
            _break_connection(http, cut.how)
            return web.Response(status=500)
        except ValueError as error:
            self.violations.append(f"the script for request {request.number} is wrong: {error}")
            return self._error(500, None, str(error))

    def _parsed(self, http: web.Request, raw: bytes) -> dict[str, object]:
        if self.strict and http.content_type != "application/json":
            raise Refused(400, self.default_kinds[400], "content-type must be application/json")
        try:
            body = json.loads(raw)
        except ValueError:
            raise Refused(400, self.default_kinds[400], "The request body is not valid JSON.") from None
        if not isinstance(body, dict):
            raise Refused(400, self.default_kinds[400], "The request body is not a JSON object.")
        return body

    def _watch_pause(self, request: Request, key: str) -> None:
        early = self._not_before.get(key, request.at) - request.at
        if early > TIMER_GRAIN:
            self.violations.append(f"request {request.number} came {early:.3f} s before retry-after ended")

    def _scripted_error(self, fail: Fail, key: str) -> web.Response:
        if fail.retry_after is not None:
            self._not_before[key] = self._clock() + fail.retry_after
        headers = {**self.error_headers(fail), **fail.headers}
        if fail.body is not None:
            headers.setdefault("content-type", "text/html")
            return web.Response(status=fail.status, body=fail.body, headers=headers)
        return self._error(fail.status, fail.kind, fail.message or "A scripted failure.", headers=headers)

    def _error(
        self,
        status: int,
        kind: str | None,
        message: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> web.Response:
        body = self.error_body(status, kind, message, param)
        return web.json_response(body, status=status, headers=headers)

    async def _whole(self, request: Request, answer: Answer) -> web.Response:
        reason: str | None = None
        said: list[Say | Think | Call] = []
        for part in answer:
            match part:
                case Say() | Think() | Call():
                    said.append(part)
                case Stop():
                    reason = part.reason
                case Hang():
                    await part.wait()
                case Break():
                    raise _Cut(part.how)
                case Fail():
                    raise ValueError("Fail after content needs a stream")
        return web.json_response(self.wire(request).message(said, reason))

    async def _stream(self, http: web.Request, request: Request, answer: Answer) -> web.StreamResponse:
        wire = self.wire(request)
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        )
        await response.prepare(http)
        try:
            await response.write(wire.start())
            await self._play(response, request, wire, answer)
        except _Cut as cut:
            request.cut = True
            if cut.how != "end":
                _break_connection(http, cut.how)
                return response
        await response.write_eof()
        return response

    async def _play(self, response: web.StreamResponse, request: Request, wire: Wire, answer: Answer) -> None:
        cut = next((p for p in answer if isinstance(p, Break) and p.after_chunks is not None), None)
        reason: str | None = None
        for part in answer:
            match part:
                case Say() | Think() | Call():
                    await response.write(wire.open(part))
                    for piece in part.pieces():
                        if cut and request.chunks == cut.after_chunks:
                            raise _Cut(cut.how)
                        if part.gate:
                            await part.gate.wait()
                        request.chunks += 1
                        await response.write(wire.delta(part, piece))
                        await asyncio.sleep(0)
                    if cut and request.chunks == cut.after_chunks:
                        raise _Cut(cut.how)
                    await response.write(wire.close(part))
                case Ping():
                    await response.write(wire.ping())
                case Stop():
                    reason = part.reason
                case Hang():
                    await part.wait()
                case Fail():
                    await response.write(wire.fail(part))
                    return
                case Break() if part is not cut:
                    raise _Cut(part.how)
        if cut:
            self.violations.append(
                f"request {request.number}: Break after {cut.after_chunks} chunks never happened,"
                f" the answer has {request.chunks}"
            )
        await response.write(wire.finish(reason))


def _break_connection(http: web.BaseRequest, how: str) -> None:
    """Close the connection after what has been written, or reset it."""
    transport = http.transport
    if transport is None:
        return
    if how == "reset":
        raw: socket.socket | None = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()
