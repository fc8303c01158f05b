"""The scripted model server: a process of its own that answers both providers' streams in no time and notes moments.

Prints its port, serves until its standard input ends. The answers are those of the tests' stand-ins, made once per
length, so that the server costs little beside what is measured. Moments are of the machine's monotonic clock.
"""

import asyncio
import re
import sys
import time
from collections import defaultdict
from functools import lru_cache

from aiohttp import web

from tests.standins.anthropic_server import AnthropicWire
from tests.standins.model_server import Wire
from tests.standins.openai_server import OpenAIWire
from tests.standins.prompt_cache import CacheUse
from tests.standins.script import Call, Say

LAST_WORD = "over."
"""The end of every answer."""
TOOL = "with-tool"
"""A question with this word is answered by a call of the tool `read` first."""
_QUESTION = re.compile(rb"bench-(\d+)")


class Server:
    """Answers every question by its number; see `bench/model.py` for the other side."""

    def __init__(self) -> None:
        self._tokens = 20
        self._delay = 0.0
        self._seen: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
        self._open = 0
        self._most_open = 0

    def app(self) -> web.Application:
        """Its routes."""
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/messages", self._answer)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/settings", self._settings)
        app.router.add_post("/take", self._take)
        return app

    async def _settings(self, http: web.Request) -> web.Response:
        wanted = await http.json()
        self._tokens, self._delay = wanted["tokens"], wanted["delay"]
        return web.json_response({})

    async def _take(self, http: web.Request) -> web.Response:
        taken = {"seen": self._seen, "most_open": self._most_open}
        self._seen, self._most_open = defaultdict(list), 0
        return web.json_response(taken)

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        arrived = time.monotonic()
        self._open += 1
        self._most_open = max(self._most_open, self._open)
        number = int(_QUESTION.findall(body, max(0, body.rfind(b"bench-")))[-1])
        call = body.rfind(TOOL.encode()) > body.rfind(b"bench-") and number not in self._seen
        if self._delay:
            await asyncio.sleep(self._delay)
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(http)
        *before, last, end = _pieces(http.path.endswith("/messages"), self._tokens, call)
        for piece in before:
            await response.write(piece)
        said = time.monotonic()
        await response.write(last)
        await response.write(end)
        self._open -= 1
        self._seen[number].append((arrived, said, len(body)))
        await response.write_eof()
        return response


@lru_cache
def _pieces(anthropic: bool, tokens: int, call: bool) -> list[bytes]:
    """The writes of one answer: the beginning, then one per token, the end."""
    body = {"model": "model", "stream_options": {"include_usage": True, "include_obfuscation": False}}
    use = CacheUse(0, 0, 10)
    wire: Wire = AnthropicWire(body, use) if anthropic else OpenAIWire(body, use, None)
    part = Call("read", {"path": "USER.md"}, chunks=3) if call else Say(_text(tokens))
    opening = wire.start() + wire.open(part)
    return [opening, *(wire.delta(part, piece) for piece in part.pieces()), wire.close(part) + wire.finish(None)]


def _text(tokens: int) -> str:
    """An answer of so many words: sentences of ten, paragraphs of sixty."""
    words = []
    for number in range(1, tokens):
        ending = ".\n\n" if number % 60 == 0 else ". " if number % 10 == 0 else " "
        words.append(f"answer{ending}")
    return "".join(words) + LAST_WORD


async def _main() -> None:
    runner = web.AppRunner(Server().app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_main())
