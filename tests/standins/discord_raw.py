"""Raw calls at the Discord stand-in, and fixtures for them: a server with a clock moved by hand, an HTTP client."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.standins.discord_ledger import Json, Rule
from tests.standins.discord_server import DiscordServer


class Clock:
    """Both clocks of a server, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def discord(clock: Clock) -> AsyncIterator[DiscordServer]:
    """A server whose violations are the subject here and fail no test."""
    async with DiscordServer(clock=clock, wall=clock) as server:
        server.tolerate(*[rule for rule in Rule if rule != Rule.STAND_IN])
        yield server


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Any


@dataclass(frozen=True, slots=True)
class Raw:
    """Calls without a library."""

    http: aiohttp.ClientSession
    server: DiscordServer

    async def __call__(self, call: str, body: Any = None, *, token: str | None = "", **options: Any) -> Answer:
        method, path = call.split(" ")
        headers = {"User-Agent": "DiscordBot (https://example.org, 1.0)"}
        if token is not None:
            headers["Authorization"] = f"Bot {token or self.server.token}"
        headers |= options.pop("headers", {})
        given = {} if body is None else {"json": body}
        url = path if path.startswith("http") else self.server.base_url + path
        async with self.http.request(method, URL(url, encoded=True), headers=headers, **given, **options) as answer:
            raw = await answer.text()
            known = answer.content_type == "application/json"
            return Answer(answer.status, json.loads(raw) if known and raw else raw, answer.headers)

    async def send(self, channel: Json, content: str = "hello", **more: Any) -> Answer:
        return await self(f"POST /channels/{channel['id']}/messages", {"content": content, **more})


@pytest.fixture
async def raw(discord: DiscordServer) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession() as http:
        yield Raw(http, discord)


def broken_rules(server: DiscordServer) -> list[Rule]:
    return [violation.rule for violation in server.ledger.violations]
