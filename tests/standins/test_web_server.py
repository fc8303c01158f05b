"""The stand-in of the web refuses what a server on the web would."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.standins.web_server import Said, WebServer, brave, moved, searxng


@pytest.fixture
async def web() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        server.pages = {
            "/": Said(b"hello"),
            "/away": moved("http://else.test/"),
            "/res/v1/web/search": brave("key", [("a", "https://a.test/", "about a")]),
            "/search": searxng([("a", "https://a.test/", "about a")]),
            "/closed/search": searxng([], json_allowed=False),
        }
        yield server


async def raw(web: WebServer, head: str) -> tuple[int, bytes]:
    """Send these lines; returns status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
    body = await reader.readexactly(length)
    writer.close()
    return int(lines[0].split()[1]), body


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET / HTTP/1.1\nHost: a", 200),
        ("GET /none HTTP/1.1\nHost: a", 404),
        ("GET /away HTTP/1.1\nHost: a", 302),
        ("GET / HTTP/1.0\nHost: a", 400),
        ("GET / HTTP/1.1", 400),
        ("GET / HTTP/1.1\nHost: a\nHost: b", 400),
        ("POST / HTTP/1.1\nHost: a", 405),
        ("GET /res/v1/web/search?q=x HTTP/1.1\nHost: a\nX-Subscription-Token: key", 200),
        ("GET /res/v1/web/search?q=x HTTP/1.1\nHost: a\nX-Subscription-Token: other", 422),
        ("GET /res/v1/web/search?q=x HTTP/1.1\nHost: a", 422),
        ("GET /res/v1/web/search?q= HTTP/1.1\nHost: a\nX-Subscription-Token: key", 422),
        ("GET /res/v1/web/search?q=x&count=21 HTTP/1.1\nHost: a\nX-Subscription-Token: key", 422),
        (f"GET /res/v1/web/search?q={'w+' * 51} HTTP/1.1\nHost: a\nX-Subscription-Token: key", 422),
        (f"GET /res/v1/web/search?q={'w' * 401} HTTP/1.1\nHost: a\nX-Subscription-Token: key", 422),
        ("GET /search?q=x&format=json HTTP/1.1\nHost: a", 200),
        ("GET /search?format=json HTTP/1.1\nHost: a", 400),
        ("GET /search?q=x&format=yaml HTTP/1.1\nHost: a", 403),
        ("GET /closed/search?q=x&format=json HTTP/1.1\nHost: a", 403),
    ],
)
async def test_what_it_answers(web: WebServer, head: str, status: int) -> None:
    assert (await raw(web, head))[0] == status


async def test_searches_answer_in_the_form_of_their_vendors(web: WebServer) -> None:
    _, body = await raw(web, "GET /res/v1/web/search?q=x HTTP/1.1\nHost: a\nX-Subscription-Token: key")
    assert json.loads(body)["web"]["results"][0]["description"] == "about a"
    _, body = await raw(web, "GET /search?q=x&format=json HTTP/1.1\nHost: a")
    assert json.loads(body)["results"][0]["content"] == "about a"
