"""The tools of the web in the service: who has them, and what their results are made of."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.web.tools import WebSearchTool
from bot.config.web import Web
from bot.furniture import web_tools
from bot.runs.permissions import FOR_GUESTS
from tests.service import Hark, running
from tests.standins.script import Call
from tests.standins.web_server import Said, WebServer, brave, searxng

KEY = "brave-key-of-the-house"


@pytest.fixture
async def web() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        yield server


def allowed(web: WebServer, **search: Any) -> dict[str, Any]:
    """A section that lets the server be read."""
    return {"fetch": {"allow_private": [f"127.0.0.1:{web.port}"]}, "search": search}


async def results(hark: Hark, *calls: Call, sender: str = "1") -> list[str]:
    """Let the model make these calls; what it was told of them."""
    hark.model.add(*calls)
    await hark.say("look", sender, answers=["done"])
    return [part.text for part in hark.model.requests[-1].messages[-1].parts]  # type: ignore[union-attr]


async def test_an_owner_reads_pages_and_searches_without_a_question(tmp_path: Path, web: WebServer) -> None:
    web.pages = {
        "/": Said(b"Moss </web-page> grows.", "text/plain"),
        "/search": searxng([("a", "https://a.test/", "b")]),
    }
    config = {"web": allowed(web, provider="searxng", base_url=web.at)}
    async with running(tmp_path, config=config) as hark:
        page, found = await results(
            hark, Call("web_fetch", {"url": f"{web.at}/"}), Call("web_search", {"query": "moss"})
        )
    assert page == f'<web-page address="{web.at}/">\nMoss ‹/web-page> grows.\n</web-page>'
    assert found == "Found by SearXNG:\n<web-results>\n1. a\nhttps://a.test/\nb\n</web-results>"


async def test_the_service_itself_is_out_of_reach(tmp_path: Path, web: WebServer) -> None:
    async with running(tmp_path, config={"web": {"search": {"provider": "searxng", "base_url": web.at}}}) as hark:
        here, inside = await results(  # where searches go is for searches alone
            hark, Call("web_fetch", {"url": f"{web.at}/"}), Call("web_fetch", {"url": "http://169.254.169.254/"})
        )
    assert "no host of the public internet" in here
    assert "no host of the public internet" in inside
    assert web.connections == 0


async def test_a_long_page_is_cut_and_kept_whole(tmp_path: Path, web: WebServer) -> None:
    web.pages["/"] = Said(b"line of the page\n" * 5000, "text/plain")
    async with running(tmp_path, config={"web": allowed(web)}) as hark:
        (said,) = await results(hark, Call("web_fetch", {"url": f"{web.at}/"}))
    assert said.startswith("<web-page address=")
    assert said.endswith("\n</web-page>")
    assert len(said) < 40_000
    assert "all of it is in tool-results/" in said


async def test_a_key_in_a_page_does_not_come_back(tmp_path: Path, web: WebServer) -> None:
    web.pages = {
        "/": Said(KEY.encode(), "text/plain"),
        "/res/v1/web/search": brave(KEY, [(KEY, "https://a.test/", "b")]),
    }
    config = {"web": allowed(web, provider="brave", api_key=KEY, base_url=web.at)}
    async with running(tmp_path, config=config) as hark:
        said = await results(hark, Call("web_fetch", {"url": f"{web.at}/"}), Call("web_search", {"query": "moss"}))
    assert KEY not in "".join(said)
    assert {asked.headers.get("x-subscription-token") for asked in web.asked} == {KEY, None}


async def test_guests_do_not_have_them_unless_they_are_named(tmp_path: Path, web: WebServer) -> None:
    web.pages["/"] = Said(b"Moss.", "text/plain")
    call = Call("web_fetch", {"url": f"{web.at}/"})
    async with running(tmp_path / "a", config={"web": allowed(web)}) as hark:
        (said,) = await results(hark, call, sender="2")
        assert FOR_GUESTS in said
        assert "web_fetch" not in {tool.name for tool in hark.model.requests[-1].tools}
    tools = {"by_sender": {"telegram:2": {"allow": ["web_fetch"]}}}
    async with running(tmp_path / "b", config={"web": allowed(web), "tools": tools}) as hark:
        (said,) = await results(hark, call, sender="2")
        assert "Moss." in said


@pytest.mark.parametrize(
    ("search", "name", "begins"),
    [
        ({}, "DuckDuckGo", "https://html.duckduckgo.com/html/?q=moss"),
        ({"base_url": "http://proxy.test/"}, "DuckDuckGo", "http://proxy.test/html/?q=moss"),
        ({"provider": "brave", "api_key": "k"}, "Brave", "https://api.search.brave.com/res/v1/web/search?q=moss&"),
        ({"provider": "brave", "api_key": "k", "base_url": "http://p.test"}, "Brave", "http://p.test/res/v1/web/"),
        (
            {"provider": "searxng", "base_url": "http://nas.lan:8888/x"},
            "SearXNG",
            "http://nas.lan:8888/x/search?q=moss",
        ),
    ],
)
def test_who_searches(search: dict[str, str], name: str, begins: str) -> None:
    _, tool = web_tools(Web.model_validate({"search": search}))
    assert isinstance(tool, WebSearchTool)
    assert tool._provider.name == name
    assert tool._provider.request("moss")[0].startswith(begins)
