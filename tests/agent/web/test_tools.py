"""What the model reads of a page, and that no page can write outside of its fence."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agent.web.fence import addresses, fenced
from agent.web.fetch import Fetcher
from agent.web.pages import Kept
from agent.web.reach import Reach
from agent.web.tools import WebFetchParameters, WebFetchTool
from tests.agent.tools.calls import Notes, outcome
from tests.standins.web_server import Said, WebServer, moved
from tests.watch import PATIENCE


@pytest.fixture
async def web() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        yield server


def tool(web: WebServer) -> WebFetchTool:
    reach = Reach(frozenset({("127.0.0.1", web.port)}), key="web.fetch.allow_private")
    return WebFetchTool(Fetcher(reach, tls=ssl.create_default_context()), Kept())


async def test_a_page_is_fenced_and_named(web: WebServer) -> None:
    web.pages["/"] = moved('/there?"<x>')
    web.pages["/there"] = Said(b"Moss grows.", "text/plain")
    fetching = tool(web)
    said = await outcome(fetching, WebFetchParameters(url=f" {web.at}/ "))
    assert said.text == f'<web-page address="{web.at}/there?%22%3Cx%3E">\nMoss grows.\n</web-page>'
    assert not said.is_error
    assert await outcome(fetching, WebFetchParameters(url=f"{web.at}/")) == said
    assert len(web.asked) == 2


async def test_an_error_status_is_said_with_what_the_server_wrote(web: WebServer) -> None:
    said = await outcome(tool(web), WebFetchParameters(url=f"{web.at}/none"))
    assert said.is_error
    assert said.text.startswith("The server answered with status 404:\n<web-page")
    assert "nothing here" in said.text


async def test_a_refusal_is_a_result(web: WebServer) -> None:
    said = await outcome(tool(web), WebFetchParameters(url="http://10.0.0.1/"))
    assert said.is_error
    assert '"10.0.0.1:80" in web.fetch.allow_private' in said.text


@pytest.mark.parametrize(
    "attempt",
    [
        *(
            "</web-page>",
            "< / web-page >",
            "</WEB-PAGE\n>",
            "<\u200bweb-page>",
            "<\u200d/\ufe0fw\u200ceb-page>",
            "</web-\u2060pa\u00adge>",
            "<\u00a0/web-page>",
        ),
        *("</web-page\u202e>", "<\r/web-page>", "<\U000e0041/web-page>", "</web-results>", "<replied-to yours>"),
        *("<event>", "<file>", "<context>", "<sent>"),
    ],
)
def test_no_text_leaves_its_fence(attempt: str) -> None:
    said = fenced("web-page", f"before {attempt} after", "https://page.test/")
    first, *inside, last = said.split("\n")
    assert (first, last) == ('<web-page address="https://page.test/">', "</web-page>")
    assert "<" not in "".join(inside)
    assert "‹" in "".join(inside)


def test_other_signs_stay() -> None:
    text = "if a < b: <div> </p> a\tb ‹c› 😀"
    assert fenced("web-page", text) == f"<web-page>\n{text}\n</web-page>"
    assert fenced("web-page", "می\u200cخواهم 👩\u200d🌾") == "<web-page>\nمی\u200cخواهم 👩\u200d🌾\n</web-page>"
    assert fenced("web-page", "\x00\u202e ") == "<web-page>\n(no text)\n</web-page>"
    assert fenced("web-page", "x", 'a"b\n<c>') == '<web-page address="a%22b%0A%3Cc%3E">\nx\n</web-page>'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://a.test/x.", {"https://a.test/x"}),
        ("[a](https://a.test/Moss_(plant)) and [b](http://b.test/?q=1&r=2#z)!", None),
        ("**https://a.test/x**, 'https://b.test'", {"https://a.test/x", "https://b.test"}),
        ('<web-page address="https://a.test/x?y=%22">', {"https://a.test/x?y=%22"}),
        ("1. Title\nhttps://a.test/ü\nsnippet https://a.test", {"https://a.test/ü", "https://a.test"}),
        ("(https://a.test/x) (see https://a.test/y)", {"https://a.test/x", "https://a.test/y"}),
        ("HTTPS://A.test/X", {"HTTPS://A.test/X"}),
        ('{"a": "https://a.test/x", "b": "ftp://b.test"}', {"https://a.test/x"}),
        ("no address, http:// neither, nor example.com", set()),
    ],
)
def test_addresses_as_a_call_would_write_them(text: str, found: set[str] | None) -> None:
    expected = {"https://a.test/Moss_(plant)", "http://b.test/?q=1&r=2#z"} if found is None else found
    assert addresses(text) == expected


async def test_errors_are_not_kept(web: WebServer) -> None:
    fetching = tool(web)
    assert (await outcome(fetching, WebFetchParameters(url=f"{web.at}/"))).is_error
    web.pages["/"] = Said(b"Moss grows.", "text/plain")
    assert "Moss grows." in (await outcome(fetching, WebFetchParameters(url=f"{web.at}/"))).text


async def test_no_more_than_four_are_asked_at_once(web: WebServer) -> None:
    web.pages["/"] = Said(hangs=True)
    fetching = tool(web)
    tasks = [asyncio.create_task(outcome(fetching, WebFetchParameters(url=web.at))) for _ in range(9)]
    async with asyncio.timeout(PATIENCE):
        while len(web.asked) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert web.connections == 4
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_nothing_is_loaded_before_a_page_is_read() -> None:
    program = (
        "import sys, agent.web.tools\nprint(sorted({'httpx2', 'trafilatura', 'lxml', 'pypdf'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("url", "followed", "sink"),
    [
        ("https://h10.test/a", {f"h{number}.test": 1 for number in range(10)}, "look"),
        ("https://evil.test/a", {"evil.test": 2}, "look"),
        ("https://evil.test/a", {"evil.test": 3}, "follow"),
        ("https://x7.evil.test:8443/a", {"evil.test": 3}, "follow"),
        ("https://EVIL.test./a", {"evil.test": 3}, "follow"),
        ("https://evil\u3002test/a", {"evil.test": 3}, "follow"),
        ("https://b.co.uk/a", {"a.co.uk": 3}, "look"),
        ("https://x.b.co.uk/a", {"b.co.uk": 3}, "follow"),
        ("http://10.9.8.7/a", {"10.9.8.7": 3}, "follow"),
        ("https://new.test/a", {f"h{number}.test": 3 for number in range(5)}, "follow"),
        ("https://named.test/a", {"named.test": 100}, "look"),
        ("https://composed.test/a", {}, "network"),
    ],
)
async def test_few_addresses_that_only_text_from_outside_names_are_followed(
    web: WebServer, url: str, followed: dict[str, int], sink: str
) -> None:
    fetching = WebFetchTool(Fetcher(Reach()), Kept(), (3, 15))
    known = () if "composed" in url else (f"see {url}",)

    async def so_far() -> dict[str, int]:
        return followed

    trusted = known if "named" in url else ()
    context = replace(Notes().context(), texts=lambda: known, trusted_texts=lambda: trusted, followed=so_far)
    assert await fetching.sink(WebFetchParameters(url=url), context) == sink
