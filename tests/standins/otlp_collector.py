"""A collector of OpenTelemetry's spans over HTTP, strict: what the specification of OTLP/HTTP says is refused.

https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_PROTOBUF = "application/x-protobuf"


@dataclass
class Collector:
    """Takes spans. headers: those that each request must have. status: of its answers."""

    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    # All spans, in the order in which they came.
    spans: list[Span] = field(default_factory=list)
    resources: list[Mapping[str, str]] = field(default_factory=list)
    requests: int = 0
    url: str = ""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> "Collector":
        app = web.Application()
        app.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.requests += 1
        self.arrived.set()
        if request.content_type != _PROTOBUF:
            return web.Response(status=415, text=f"not {_PROTOBUF}")
        if any(request.headers.get(name) != value for name, value in self.headers.items()):
            return web.Response(status=401, text="a header is missing")
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        try:
            found = ExportTraceServiceRequest.FromString(body)
        except DecodeError:
            return web.Response(status=400, text="no ExportTraceServiceRequest")
        if self.status != 200:
            return web.Response(status=self.status)
        for one in found.resource_spans:
            self.resources.append({each.key: each.value.string_value for each in one.resource.attributes})
            for scope in one.scope_spans:
                if any(len(span.trace_id) != 16 or len(span.span_id) != 8 or not span.name for span in scope.spans):
                    return web.Response(status=400, text="a span without ids or a name")
                if any(span.end_time_unix_nano < span.start_time_unix_nano for span in scope.spans):
                    return web.Response(status=400, text="a span ends before it begins")
                self.spans += scope.spans
        return web.Response(body=ExportTraceServiceResponse().SerializeToString(), content_type=_PROTOBUF)


def attributes(span: Span) -> dict[str, Any]:
    """The attributes of a span, as plain values."""
    found: dict[str, Any] = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return found
