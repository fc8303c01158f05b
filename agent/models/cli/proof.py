"""Looks at which tools a program offers to its model, by answering in place of the provider.

A program that does not list its tools is started once with the address of a server of this process as its provider.
What it sends there names every tool that its model may call. It gets an error for an answer, and nobody's words.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from agent.models.protocol import items, record, text

_MOST_BYTES = 8 * 1024 * 1024
_REFUSAL = json.dumps({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "this is a test of tools"}})
_HEAD = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(_REFUSAL)}"


async def offered(start: Callable[[str], Awaitable[None]]) -> frozenset[str] | None:
    """Return the names of the tools that a program offers; None when it asked nothing that can be read.

    start: runs the program to its end with the address of its provider.
    """
    seen: list[dict[str, Any]] = []
    async with _provider(seen) as address:
        await start(address)
    asked = [body for body in seen if "input" in body or "contents" in body]
    if not asked or len(asked) != len(seen):
        return None
    return frozenset(name for body in asked for tool in items(body.get("tools")) for name in _names(record(tool)))


def _names(tool: dict[str, Any]) -> list[str]:
    """Return the names in one entry of `tools`, a tool or, with Gemini, a list of them; its kind if it has no name."""
    if "functionDeclarations" in tool:
        return [text(record(one).get("name")) for one in items(tool["functionDeclarations"])]
    return [text(tool.get("name")) or text(tool.get("type")) or ", ".join(tool)]


@asynccontextmanager
async def _provider(seen: list[dict[str, Any]]) -> AsyncIterator[str]:
    """Serve on loopback; yields the address. seen: takes what is posted, empty for what is no JSON."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            if head.startswith("post"):
                seen.append(_parsed(await _body(reader, head)))
            writer.write(f"{_HEAD}\r\nconnection: close\r\n\r\n{_REFUSAL}".encode())
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            seen.append({})
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"


async def _body(reader: asyncio.StreamReader, head: str) -> bytes:
    """Read the body of a request. Raises ValueError for one that is too large."""
    fields = dict(line.split(":", 1) for line in head.split("\r\n") if ":" in line)
    if "chunked" not in fields.get("transfer-encoding", ""):
        size = int(fields.get("content-length", "0"))
        if size > _MOST_BYTES:
            raise ValueError("too large")
        return await reader.readexactly(size)
    found = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        found += (await reader.readexactly(size + 2))[:-2]
        if len(found) > _MOST_BYTES:
            raise ValueError("too large")
    return found


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        return record(json.loads(body))
    except (ValueError, RecursionError):
        return {}
