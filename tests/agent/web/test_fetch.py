"""What is asked for on the wire, and the bounds of what comes back."""

import asyncio
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from agent.web.fetch import MAX_BYTES, REDIRECTS, Fetcher
from agent.web.guard import GuardedTransport
from agent.web.reach import Reach, WebError
from tests.standins.web_server import Asked, Said, WebServer, moved
from tests.watch import LoopTime

TLS = ssl.create_default_context()
CERTIFICATES = Path(__file__).parents[2] / "standins" / "certificates"


@pytest.fixture
async def web() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        yield server


async def here(host: str, port: int) -> Sequence[str]:
    """A resolver for which every name is this machine."""
    return ["127.0.0.1"]


def fetcher(web: WebServer, *hosts: str, seconds: float = 30, tls: ssl.SSLContext = TLS) -> Fetcher:
    """Reads the hosts at the port of the server."""
    named = frozenset((host, web.port) for host in hosts or ("127.0.0.1",))
    return Fetcher(Reach(named, resolver=here), seconds=seconds, tls=tls)


async def test_an_answer_with_what_was_asked(web: WebServer) -> None:
    web.pages["/a/b"] = Said("grüße".encode("latin-1"), 'Text/HTML; Charset="ISO-8859-1"')
    answer = await fetcher(web, "page.test").get(f"http://page.test:{web.port}/a/b?q=1&q=ü#part", {"X-Key": "k"})
    (asked,) = web.asked
    assert (asked.path, asked.headers["host"]) == ("/a/b", f"page.test:{web.port}")
    assert (asked.headers["x-key"], asked.headers["accept-encoding"]) == ("k", "gzip, deflate")
    assert "Hark" in asked.headers["user-agent"]
    assert (answer.status, answer.media, answer.charset) == (200, "text/html", "iso-8859-1")
    assert answer.address == f"http://page.test:{web.port}/a/b?q=1&q=%C3%BC#part"
    assert answer.body.decode("latin-1") == "grüße"


async def test_no_proxy_and_no_password_file_of_the_environment(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password word\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    web.pages["/"] = Said(b"hello")
    assert (await fetcher(web).get(web.at)).body == b"hello"
    assert "authorization" not in web.asked[0].headers


async def test_redirects_are_followed_to_the_end(web: WebServer) -> None:
    for number in range(REDIRECTS):
        web.pages[f"/{number}"] = moved(f"{number + 1}", (301, 302, 303, 307, 308)[number])
    web.pages[f"/{REDIRECTS}"] = Said(b"there")
    answer = await fetcher(web).get(f"{web.at}/0")
    assert (answer.address, answer.body) == (f"{web.at}/{REDIRECTS}", b"there")
    web.pages["/before"] = moved("/0")
    with pytest.raises(WebError, match="more than 5 times"):
        await fetcher(web).get(f"{web.at}/before")
    with pytest.raises(WebError, match="more than 0 times"):
        await fetcher(web).get(f"{web.at}/0", redirects=0)


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("http://127.0.0.1:1/", "no host of the public internet"),
        ("http://169.254.169.254/latest/", "no host of the public internet"),
        ("//10.0.0.1/", "no host of the public internet"),
        ("http://[::ffff:127.0.0.1]/", "no host of the public internet"),
        ("http://0x7f.1/", "is no host"),
        ("file:///etc/passwd", "http:// or https://"),
        ("http://user@127.0.0.1/", "without a user"),
        ("http://[::1", "no address of the web"),
        ("gopher://127.0.0.1/", "http:// or https://"),
    ],
)
async def test_each_redirect_is_checked_anew(web: WebServer, to: str, why: str) -> None:
    web.pages["/"] = moved(to)
    with pytest.raises(WebError, match=why):
        await fetcher(web).get(web.at)
    assert web.connections == 1


async def test_a_name_that_turns_private_at_the_second_look_is_refused(web: WebServer) -> None:
    async def changing(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if not web.asked else ["169.254.169.254"]

    web.pages["/"] = moved("/again")
    reach = Reach(frozenset({("page.test", web.port)}), resolver=changing)
    with pytest.raises(WebError, match="no host of the public internet"):
        await Fetcher(reach, tls=TLS).get(f"http://page.test:{web.port}/")
    assert [asked.path for asked in web.asked] == ["/"]


@pytest.fixture
async def safe() -> AsyncIterator[WebServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "page.test.crt", CERTIFICATES / "page.test.key")
    async with WebServer(context) as server:
        server.pages["/"] = Said(b"hello")
        yield server


async def test_the_certificate_is_checked_for_the_name(safe: WebServer) -> None:
    known = ssl.create_default_context(cafile=str(CERTIFICATES / "page.test.crt"))
    both = fetcher(safe, "page.test", "other.test", tls=known)
    assert (await both.get(f"https://page.test:{safe.port}/")).body == b"hello"
    assert safe.asked[0].headers["host"] == f"page.test:{safe.port}"
    with pytest.raises(WebError, match="its certificate is not valid"):  # for the same address
        await both.get(f"https://other.test:{safe.port}/")
    with pytest.raises(WebError, match="its certificate is not valid"):  # whom nobody trusts
        await fetcher(safe, "page.test").get(f"https://page.test:{safe.port}/")
    assert (len(safe.asked), safe.names) == (1, ["page.test", "other.test", "page.test"])


async def test_a_name_never_travels_on_the_connection_of_another(web: WebServer) -> None:
    web.pages["/"] = Said(b"hello")
    guard = GuardedTransport(Reach(frozenset({("page.test", web.port), ("other.test", web.port)}), resolver=here), TLS)
    async with httpx2.AsyncClient(transport=guard) as client:
        for name in ("page.test", "other.test"):
            assert (await client.get(f"http://{name}:{web.port}/")).text == "hello"
    assert web.connections == 2


async def test_the_next_address_is_tried_where_one_does_not_answer(web: WebServer) -> None:
    async def several(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    web.pages["/"] = Said(b"hello")
    reach = Reach(frozenset({("page.test", web.port)}), resolver=several)
    assert (await Fetcher(reach, tls=TLS).get(f"http://page.test:{web.port}/")).body == b"hello"


MORE = MAX_BYTES + 1


# Made by the test: what stands in a module is made in each process that collects it.
@pytest.mark.parametrize(
    "said",
    [
        lambda: Said(b"x" * MORE),
        lambda: Said(headers={"Transfer-Encoding": "chunked"}, raw=b"HTTP/1.1 200 -\r\n\r\n" + b"x" * MORE),
        lambda: Said(gzip.compress(bytes(200 * 1024 * 1024), 9), headers={"Content-Encoding": "gzip"}),
        lambda: Said(zlib.compress(bytes(MORE)), headers={"Content-Encoding": "deflate"}),
    ],
    ids=["long", "without a length", "bomb", "deflate"],
)
async def test_what_is_too_long_is_not_read(web: WebServer, said: Callable[[], Said]) -> None:
    web.pages["/"] = said()
    with pytest.raises(WebError, match="longer than 5 MB"):
        await fetcher(web).get(web.at)


async def test_compressed_answers_are_read_up_to_the_bound(web: WebServer) -> None:
    body = b"y" * MAX_BYTES
    for name, packed in (
        ("gzip", gzip.compress(body)),
        ("deflate", zlib.compress(body)),
        ("GZIP", gzip.compress(body)),
    ):
        web.pages["/"] = Said(packed, headers={"Content-Encoding": name})
        assert (await fetcher(web).get(web.at)).body == body
    for name in ("br", "zstd", "gzip, gzip", "compress"):
        web.pages["/"] = Said(packed, headers={"Content-Encoding": name})
        with pytest.raises(WebError, match="not asked for"):
            await fetcher(web).get(web.at)
    web.pages["/"] = Said(b"no gzip", headers={"Content-Encoding": "gzip"})
    with pytest.raises(WebError, match="DecodingError"):
        await fetcher(web).get(web.at)


async def test_a_server_that_never_ends_is_left(web: WebServer) -> None:
    web.pages["/drip"] = Said(b"a little", hangs=True)
    web.pages["/silent"] = Said(raw=b"HTTP/1.1 200", hangs=True)
    for path in ("drip", "silent"):
        with pytest.raises(WebError, match=r"within 0\.05 seconds"):
            await fetcher(web, seconds=0.05).get(f"{web.at}/{path}")


async def test_a_resolver_that_never_answers_is_left(web: WebServer) -> None:
    async def silent(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(WebError, match=r"within 0\.05 seconds"):
        await Fetcher(Reach(resolver=silent), seconds=0.05, tls=TLS).get("http://page.test/")


async def test_the_time_is_for_all_redirects_together(web: WebServer) -> None:
    time = LoopTime()

    def on(asked: Asked) -> Said:
        time.move(100)
        return moved("/")

    web.pages["/"] = on
    with pytest.raises(WebError, match="within 300 seconds"):
        await fetcher(web, seconds=300).get(web.at)
    assert len(web.asked) == 3


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 -\r\nContent-Type: text/html\r\nX: " + b"x" * 200_000 + b"\r\n\r\nbody",
        b"HTTP/1.1 200 -\r\n" + b"X-A: b\r\n" * 40_000 + b"\r\nbody",
        b"no http at all\r\n\r\n",
        b"HTTP/1.1 200 -\r\nContent-Length: 99\r\n\r\nshort",
        b"HTTP/1.1 200 -\r\nContent-Length: -1\r\n\r\n",
        b"",
    ],
    ids=["one huge header", "many headers", "no http", "cut off", "wrong length", "nothing"],
)
async def test_what_breaks_the_protocol_is_said(web: WebServer, raw: bytes) -> None:
    def answer(asked: Asked) -> Said:
        asyncio.get_running_loop().call_soon(web.cut)
        return Said(raw=raw)

    web.pages["/"] = answer
    with pytest.raises(WebError, match="broke off: RemoteProtocolError"):
        await fetcher(web).get(web.at)


@pytest.mark.parametrize("media", ["image/png", "application/octet-stream", "video/mp4", "application/zip", "<b>x</b>"])
async def test_other_kinds_are_refused_before_they_are_read(web: WebServer, media: str) -> None:
    web.pages["/"] = Said(b"x", media, hangs=True)
    with pytest.raises(WebError, match="not a text, page or PDF") as refused:
        await fetcher(web).get(web.at)
    assert "<" not in str(refused.value)


@pytest.mark.parametrize("media", ["text/plain", "text/csv", "application/ld+json", "application/rss+xml", ""])
async def test_texts_of_all_kinds_are_read(web: WebServer, media: str) -> None:
    web.pages["/"] = Said(b"x", media)
    assert (await fetcher(web).get(web.at)).body == b"x"
