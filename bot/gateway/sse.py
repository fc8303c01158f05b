"""Server-sent events on the wire: frames, and an answer that streams them until one side has enough.

The format is the HTML standard's (section "Server-sent events").
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator

from starlette.responses import Response, StreamingResponse

HELLO = b": hark\n\n"
PING = b": ping\n\n"
_POSITION = re.compile(r"[0-9]{1,18}")
# A comment at least so often, so that either side notices when the other is gone.
PING_SECONDS = 15.0
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def frame(event: str, data: str, position: int | None = None) -> bytes:
    """One event. data: JSON on one line. position: of a kept event."""
    line = f"id: {position}\n" if position is not None else ""
    return f"{line}event: {event}\ndata: {data}\n\n".encode()


def read_position(sent: str) -> int:
    """The position that a client sends back; 0, before all events, when it is none."""
    return int(sent) if _POSITION.fullmatch(sent) else 0


async def stream_response(chunks: AsyncGenerator[bytes, None]) -> Response:
    """Streams chunks of frames; ends when they do, or when the client goes away.

    It begins with the first chunk: a client that sees the headers misses nothing from then on.
    """
    first = await anext(chunks)

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for chunk in chunks:
            yield chunk

    return StreamingResponse(body(), headers=_HEADERS, media_type="text/event-stream")
