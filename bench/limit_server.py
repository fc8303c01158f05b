"""The least that any server must do for a turn: what Hark is compared with.

`python -m bench.limit_server PORT URL KEY FILE` imports nothing of Hark and answers the same two requests. `POST
/v1/agent` keeps the message and gives its number; `GET /v1/agent/<number>` waits for the answer. Between them the SDK
posts one request to the model and the stream is read as bytes. Three commits are on the disk for each turn: the
message, the answer, and that all is done.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import uvicorn

_PREPARE = """
PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
CREATE TABLE IF NOT EXISTS line (id INTEGER PRIMARY KEY, turn INTEGER, text TEXT);
"""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


class Server:
    """An ASGI application. file: of the database."""

    def __init__(self, url: str, key: str, file: str) -> None:
        self._sdk = openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0)
        self._thread = ThreadPoolExecutor(1)
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._database.executescript(_PREPARE)
        self._turns: dict[str, asyncio.Task[None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"] == "/readyz":
            await _respond(send, 200, {})
        elif scope["method"] == "POST":
            number = str(len(self._turns) + 1)
            asked = json.loads(await _body(receive))["message"]
            await self._keep(number, asked)
            self._turns[number] = asyncio.create_task(self._answer(number, asked))
            await _respond(send, 202, {"run_id": number})
        else:
            await self._turns[scope["path"].rpartition("/")[2]]
            await _respond(send, 200, {"status": "ok"})

    async def _answer(self, number: str, asked: str) -> None:
        body = {"model": "model", "stream": True, "messages": [{"role": "user", "content": asked}]}
        response = await self._sdk.post(
            "/chat/completions",
            cast_to=httpx2.Response,
            content=json.dumps(body).encode(),
            stream=True,
            options={"headers": {"content-type": "application/json"}},
        )
        answer = b"".join([chunk async for chunk in response.aiter_bytes()])
        await response.aclose()
        await self._keep(number, answer.decode())
        await self._keep(number, "done")

    async def _keep(self, number: str, text: str) -> None:
        """Return once a line is on the disk."""
        await asyncio.get_running_loop().run_in_executor(
            self._thread, self._database.execute, "INSERT INTO line (turn, text) VALUES (?,?)", (number, text)
        )


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    return body


async def _respond(send: Send, status: int, content: object) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


if __name__ == "__main__":
    port, url, key, file = sys.argv[1:]
    uvicorn.run(
        Server(url, key, file), port=int(port), log_level="critical", http="h11", loop="asyncio", lifespan="off"
    )
