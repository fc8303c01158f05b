"""Server-sent events on the wire: frames, and an answer that streams them until one side has enough.

The format is the HTML standard's (section "Server-sent events").
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.responses import StreamingResponse
from starlette.types import Send

HELLO = b": hark\n\n"
PING = b": ping\n\n"
_POSITION = re.compile(r"[0-9]{1,18}")
PING_SECONDS = 15.0
"""A comment at least so often, so that either side notices when the other is gone."""
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def frame(event: str, data: str, position: int | None = None) -> bytes:
    """One event. data: JSON on one line. position: of a kept event."""
    line = f"id: {position}\n" if position is not None else ""
    return f"{line}event: {event}\ndata: {data}\n\n".encode()


def read_position(sent: str) -> int:
    """The position that a client sends back; 0, before all events, when it is none."""
    return int(sent) if _POSITION.fullmatch(sent) else 0


class EventStreamResponse(StreamingResponse):
    """Streams chunks of frames; ends when they do, or when the client goes away.

    The answer begins with the first chunk: a client that sees its headers misses nothing from then on.
    """

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(chunks, headers=_HEADERS)
        self._chunks = chunks

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            self.body_iterator = _behind(await anext(chunks), chunks)
            await super().stream_response(send)


async def _behind(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in chunks:
        yield chunk
