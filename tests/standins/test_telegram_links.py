"""Targets of links: each rule with a raw call that must be refused, and its near misses, which are accepted.

No Telegram library takes part.
"""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.standins.telegram_ledger import Json, Rule
from tests.standins.telegram_rows import mark
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE

NO_DOT = "Wrong HTTP URL"
NO_HOST = "URL host is empty"
PORT = "Wrong port number specified in the URL"
SCHEME = "Unsupported URL protocol"
SYMBOL = "Disallowed character in URL host"
PERCENT = "Wrong percent-encoded symbol in URL host"
OWN_HOST = "Unallowed characters in URL host"

# Target, Telegram's words, and near misses as they are sent and as they are shown.
ROWS: list[tuple[str, str, dict[str, str]]] = [
    # the host has a dot
    ("http://localhost:3000", NO_DOT, {"http://localhost.:3000": "http://localhost.:3000/"}),
    ("https://host/a.html", NO_DOT, {"https://.host/a.html": "https://.host/a.html"}),
    ("http://2130706433/", NO_DOT, {"http://127.0.0.1": "http://127.0.0.1/", "http://999.1/": "http://999.1/"}),
    ("http://user.name@host/", NO_DOT, {"http://user@host.org/": "http://user@host.org/"}),
    # there is a host
    ("", NO_HOST, {"https://e.org": "https://e.org/"}),
    ("http://", NO_HOST, {"http://..": "http://../"}),
    ("https://user@/", NO_HOST, {"https://@e.org/": "https://e.org/"}),
    ("#section", NO_HOST, {"https://e.org#section": "https://e.org/#section"}),
    ("./a.html", "Host is invalid", {"https://e.org/./a.html": "https://e.org/./a.html"}),
    ("docs/a.html", NO_DOT, {"https://docs.e.org/a.html": "https://docs.e.org/a.html"}),
    # the port is 1 to 65535 in digits
    ("https://e.org:0/", PORT, {"https://e.org:1/": "https://e.org:1/"}),
    ("https://e.org:65536/", PORT, {"https://e.org:65535/": "https://e.org:65535/"}),
    ("https://e.org:/", PORT, {"https://e.org/:": "https://e.org/:"}),
    ("https://e.org:8o80/", PORT, {"https://e.org:008080/": "https://e.org:8080/"}),
    ("https://e.org:-1/", PORT, {"https://e-.org/": "https://e-.org/"}),
    ("tel:110", NO_DOT, {}),
    ("javascript:alert(1.0)", PORT, {}),
    # http, https and Telegram's own schemes
    ("ftp://e.org/", SCHEME, {"HTTP://E.org/A": "http://e.org/A"}),
    (" https://e.org/", SCHEME, {"https://e.org/ ": "https://e.org/"}),
    ("tg://", NO_HOST, {"tg://resolve?domain=name": "tg://resolve?domain=name"}),
    ("tg:e.org", OWN_HOST, {"TG:Re_solve-1": "tg://re_solve-1/"}),
    ("tg://resolve:80", "Wrong tg URL", {"tg:resolve#80": "tg://resolve/#80"}),
    ("ton://[::1]", "Wrong ton URL", {"ton://transfer/x": "ton://transfer/x"}),
    ("ton://e.ton", OWN_HOST, {"tonsite://e.ton/x": "tonsite://e.ton/x", "tonsite://e": "tonsite://e/"}),
    ("tonſite:e", PORT, {"tonSite:e": "tonsite://e/"}),
    # IPv6 in brackets
    ("http://::1/", SYMBOL, {"http://[::1]/": "http://[::1]/"}),
    ("http://[::g]/", "Wrong IPv6 address specified in the URL", {"http://[::f]/": "http://[::f]/"}),
    # the characters of host and user
    ("https://e .org/", SYMBOL, {"https://e_x.org/": "https://e_x.org/"}),
    ("https://e.org\n/x", SYMBOL, {"https://e.org/\nx": "https://e.org/%0Ax", "https://e.\rorg": "https://e.org/"}),
    ("https://e.org\t/x", SYMBOL, {"https://e.org/\tx": "https://e.org/%20x"}),
    ("https://e.org%", PERCENT, {"https://e.org/%": "https://e.org/%"}),
    ("https://e.org%zz/", PERCENT, {"https://e.org/%zz": "https://e.org/%zz"}),
    ("https://a b@e.org/", "Disallowed character in URL userinfo", {"https://a:b@e.org/": "https://a:b@e.org/"}),
    ("https://a@b@e.org/", "Disallowed character in URL userinfo", {"https://a%40b@e.org/": "https://a%40b@e.org/"}),
    (
        "https://%4x@e.org/",
        "Wrong percent-encoded symbol in URL userinfo",
        {"https://%41@e.org/": "https://%41@e.org/"},
    ),
    # no limit of length
    (f"https://{'x' * 300}/", NO_DOT, {f"https://{'x' * 300}.{'y' * 3000}/": f"https://{'x' * 300}.{'y' * 3000}/"}),
]

# Accepted, and something else than what was meant: target and what is kept instead.
MISREAD = {
    "mailto:anna@e.org": "http://mailto:anna@e.org/",
    "tel:110@e.org": "http://tel:110@e.org/",
    "notes.md": "http://notes.md/",
    "../up": "http://../up",
    "e.org/x": "http://e.org/x",
    "e.org:80": "http://e.org:80/",
    "[::1]": "http://[::1]/",
}
MENTIONS = ["tg://user?id=123456789", "TG:user/?x=1&ID=5#y"]


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        server.write("hello")
        yield server


async def send(http: aiohttp.ClientSession, server: TelegramServer, *targets: str) -> Json:
    """A message of a bold word and linked ones; returns the body of the answer."""
    links = [mark("text_link", 5 * n, 4, url=target) for n, target in enumerate(targets, 1)]
    params = {"chat_id": ALICE.id, "text": "word " * (len(targets) + 1), "entities": [mark("bold", 0, 4), *links]}
    async with http.post(f"{server.base_url}{server.token}/sendMessage", json=params) as answer:
        body: Json = await answer.json()
        assert answer.status == body.get("error_code", 200)
        return body


@pytest.mark.parametrize(("target", "words", "near"), ROWS, ids=[repr(row[0])[:60] for row in ROWS])
async def test_target(
    target: str, words: str, near: dict[str, str], telegram: TelegramServer, http: aiohttp.ClientSession
) -> None:
    telegram.tolerate(Rule.FORMATTING, Rule.REPEATED_TEXT)
    refused = await send(http, telegram, "https://good.example/", target)
    named = target.replace("\t", " ")
    assert refused["description"] == f"Bad Request: entity URL '{named}' is invalid: {words}"
    assert refused["error_code"] == 400
    assert telegram.sent == []
    assert [one.rule for one in telegram.ledger.violations] == [Rule.FORMATTING]
    telegram.ledger.violations.clear()

    for sent, shown in near.items():
        accepted = await send(http, telegram, sent)
        assert accepted["ok"], accepted
        assert accepted["result"]["entities"][1]["url"] == shown
        assert telegram.sent[-1].entities[1]["url"] == sent
        assert telegram.ledger.violations == []


@pytest.mark.parametrize("target", MISREAD)
async def test_target_without_scheme_is_not_what_was_meant(
    target: str, telegram: TelegramServer, http: aiohttp.ClientSession
) -> None:
    telegram.tolerate(Rule.FORMATTING)
    accepted = await send(http, telegram, target)
    assert accepted["result"]["entities"][1]["url"] == MISREAD[target]
    assert [one.detail for one in telegram.ledger.violations] == [f"the link to {target!r} becomes {MISREAD[target]}"]


@pytest.mark.parametrize("target", MENTIONS)
async def test_link_to_a_person_is_a_mention(
    target: str, telegram: TelegramServer, http: aiohttp.ClientSession
) -> None:
    telegram.tolerate(Rule.FORMATTING)
    assert (await send(http, telegram, target))["ok"]
    assert [one.detail.partition(" becomes ")[2] for one in telegram.ledger.violations] == [
        "a mention that notifies a person"
    ]


async def test_overlong_target_is_cut(telegram: TelegramServer, http: aiohttp.ClientSession) -> None:
    whole = "https://e.org/".ljust(34_996, "x")
    assert (await send(http, telegram, whole))["ok"]
    assert telegram.violations == []
    telegram.tolerate(Rule.FORMATTING, Rule.REPEATED_TEXT)
    assert (await send(http, telegram, whole + "x"))["ok"]
    assert len(telegram.ledger.violations) == 1
