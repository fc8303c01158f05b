"""Server-sent events on the wire: frames, and an answer that streams them until one side has enough.

The format is the HTML standard's (section "Server-sent events").
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.types import Receive, Scope, Send

HELLO = b": hark\n\n"
PING = b": ping\n\n"
_POSITION = re.compile(r"[0-9]{1,18}")
PING_SECONDS = 15.0
"""A comment at least so often, so that either side notices when the other is gone."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def frame(event: str, data: str, position: int | None = None) -> bytes:
    """One event. data: JSON on one line. position: of a kept event."""
    line = f"id: {position}\n" if position is not None else ""
    return f"{line}event: {event}\ndata: {data}\n\n".encode()


def read_position(sent: str) -> int:
    """The position that a client sends back; 0, before all events, when it is none."""
    return int(sent) if _POSITION.fullmatch(sent) else 0


class EventStreamResponse:
    """Streams chunks of frames; ends when they do, or when the client goes away.

    The answer begins with the first chunk: a client that sees its headers misses nothing from then on.
    """

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send(send))
            watching = group.create_task(_until_gone(receive))
            await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
            sending.cancel()
            watching.cancel()

    async def _send(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            begun = False
            async for chunk in chunks:
                if not begun:
                    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                    begun = True
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
