"""What the stand-ins of OpenAI's single endpoints have in common: they are served, refuse, fail and hang alike."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web


class Wrong(Exception):
    """The documentation does not allow the request; the text says why."""


class Endpoint:
    """A server on loopback.

    key: that requests must have. status: another one than 200 for all requests. hangs: no request is answered. refused:
    why requests were refused, of which a test that ends well finds none.
    """

    key: str
    # What answers, by path.
    routes: dict[str, Callable[[web.Request], Awaitable[web.Response]]]

    def __init__(self) -> None:
        self.status, self.hangs = 200, False
        self.refused: list[str] = []
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        for path, answer in self.routes.items():
            app.router.add_post(path, answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        await self._runner.cleanup()
        if kind is None:
            assert self.refused == []

    def check(self, request: web.Request, media: str) -> None:
        """Raise Wrong for a request without the key, or of another type."""
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            raise Wrong("no key in Authorization: Bearer")
        if request.content_type != media:
            raise Wrong(f"{request.path} takes {media}")

    async def answer(self, answer: web.Response) -> web.Response:
        """Return the answer, or what the server was told to do instead."""
        if self.hangs:
            await self._over.wait()
        if self.status != 200:
            return web.json_response({"error": {"message": "told to", "type": "server_error"}}, status=self.status)
        return answer

    def refuse(self, wrong: Wrong) -> web.Response:
        """Note and return what a request is refused with."""
        self.refused.append(str(wrong))
        status = 401 if "key" in str(wrong) else 400
        return web.json_response({"error": {"message": str(wrong), "type": "invalid_request_error"}}, status=status)
