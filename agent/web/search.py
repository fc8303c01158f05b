"""Searches the web with one of several providers, each of which says why it has failed."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote, urlencode

from agent.web.fetch import Answer
from agent.web.reach import WebError

RESULTS = 10
_Request = tuple[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Found:
    """One result of a search."""

    title: str
    address: str
    snippet: str


class Provider(Protocol):
    """Says how a provider is asked, and reads what it answers."""

    @property
    def name(self) -> str:
        """The name in errors and results."""

    def request(self, query: str) -> _Request:
        """Return the address to ask, and the headers to send."""

    def read(self, answer: Answer) -> Sequence[Found]:
        """Return the results in an answer, at most RESULTS; none: nothing was found. Raises WebError."""


@dataclass(frozen=True, slots=True)
class Brave:
    """Brave's API."""

    key: str
    base_url: str = "https://api.search.brave.com"
    name: str = "Brave"

    def request(self, query: str) -> _Request:
        """See `Provider`."""
        asked = urlencode({"q": query, "count": RESULTS, "text_decorations": "false"})
        return f"{self.base_url}/res/v1/web/search?{asked}", {"X-Subscription-Token": self.key}

    def read(self, answer: Answer) -> Sequence[Found]:
        """See `Provider`. A key that is not known is answered with 422."""
        if answer.status in (401, 403) or (answer.status == 422 and b"SUBSCRIPTION_TOKEN" in answer.body):
            raise WebError("it refuses the key; check web.search.api_key")
        return _results(_object(_json(answer, "type").get("web")).get("results"), "description")


@dataclass(frozen=True, slots=True)
class SearXNG:
    """A server of SearXNG."""

    base_url: str
    name: str = "SearXNG"

    def request(self, query: str) -> _Request:
        """See `Provider`."""
        return f"{self.base_url}/search?{urlencode({'q': query, 'format': 'json'})}", {}

    def read(self, answer: Answer) -> Sequence[Found]:
        """See `Provider`."""
        if answer.status == 403:
            raise WebError("it refuses JSON (403); its settings.yml needs json among search.formats")
        said = _json(answer, "results")
        found = _results(said.get("results"), "content")
        if not found and said.get("unresponsive_engines"):
            raise WebError("the engines that it asks did not answer; its own page of statistics says why")
        return found


# Bounded as the page is, so that many beginnings without an end take no time.
_PAGE = 500_000
_RESULT = re.compile(r'<a\b[^>]{0,200}\bclass="(result__a|result__snippet)"([^>]{0,4000})>(.{0,4000}?)</a>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class DuckDuckGo:
    """The pages of DuckDuckGo for browsers without scripts, which need no key and refuse whom they take for a robot."""

    base_url: str = "https://html.duckduckgo.com"
    name: str = "DuckDuckGo"

    def request(self, query: str) -> _Request:
        """See `Provider`."""
        return f"{self.base_url}/html/?{urlencode({'q': query})}", {"Sec-Fetch-Mode": "navigate"}

    def read(self, answer: Answer) -> Sequence[Found]:
        """See `Provider`. Advertisements lead to /y.js."""
        page = answer.body[:_PAGE].decode(errors="replace")
        if answer.status in (202, 403) or "anomaly-modal" in page or "anomaly.js" in page:
            raise WebError("it takes this machine for a robot; wait, or configure another web.search.provider")
        _check(answer)
        found: list[dict[str, str]] = []
        for kind, attributes, inside in _RESULT.findall(page):
            if kind == "result__a":
                link = html.unescape("".join(re.findall(r'href="([^"]*)', attributes)))
                target = unquote("".join(re.findall(r"/l/\?uddg=([^&]*)", link))) or link
                found.append({"title": inside, "url": "" if "duckduckgo.com/y.js" in target else target})
            elif found:
                found[-1]["snippet"] = inside
        if not found and "no-results" not in page:
            raise WebError("its page is not understood")
        return _results(found, "snippet")


def _check(answer: Answer) -> None:
    """Raise WebError for a status that says that there are no results."""
    if answer.status == 429:
        raise WebError("it was asked too often (429); wait, or look at the limits of its plan")
    if answer.status != 200:
        raise WebError(f"it answered with status {answer.status}")


def _json(answer: Answer, key: str) -> dict[str, Any]:
    """Return what an answer says, which always has this key. Raises WebError."""
    _check(answer)
    with suppress(ValueError, RecursionError):
        said = _object(json.loads(answer.body))
        if key in said:
            return said
    raise WebError("its answer is not understood")


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _results(found: object, snippet: str) -> Sequence[Found]:
    """Return what has an address that can be read; titles and snippets are HTML."""
    ones: Iterable[dict[str, Any]] = map(_object, found if isinstance(found, list) else ())
    results = (Found(_line(one.get("title"), 200), str(one.get("url")), _line(one.get(snippet), 500)) for one in ones)
    return [one for one in results if re.fullmatch(r"https?://[^\s<>\"]{1,2000}", one.address)][:RESULTS]


def _line(text: object, most: int) -> str:
    plain = html.unescape(re.sub(r"</?(?:b|strong)>", "", str(text or "")))
    return " ".join(plain.split())[:most]
