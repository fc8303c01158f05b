"""What the stand-in of a collector refuses."""

import aiohttp
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.standins.otlp_collector import Collector

_PROTOBUF = {"Content-Type": "application/x-protobuf", "Api-Key": "k"}


def request(*, trace_id: bytes = b"t" * 16, end: int = 2) -> bytes:
    """A request with one span."""
    made = ExportTraceServiceRequest()
    span = made.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = trace_id, b"s" * 8, "chat"
    span.start_time_unix_nano, span.end_time_unix_nano = 1, end
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/v1/traces", _PROTOBUF, request(), 200),
        ("/v1/logs", _PROTOBUF, request(), 404),
        ("/v1/traces", {**_PROTOBUF, "Content-Type": "text/plain"}, request(), 415),
        ("/v1/traces", {"Content-Type": "application/x-protobuf"}, request(), 401),
        ("/v1/traces", _PROTOBUF, b"\xff\xff\xff", 400),
        ("/v1/traces", _PROTOBUF, request(trace_id=b"short"), 400),
        ("/v1/traces", _PROTOBUF, request(end=0), 400),
    ],
)
async def test_each_rule(path: str, headers: dict[str, str], body: bytes, status: int) -> None:
    async with Collector(headers={"Api-Key": "k"}) as collector, aiohttp.ClientSession() as http:
        async with http.post(collector.url + path, headers=headers, data=body) as answer:
            assert answer.status == status
        assert len(collector.spans) == (status == 200)
