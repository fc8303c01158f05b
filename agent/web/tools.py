"""The tools `web_fetch` and `web_search`."""

import asyncio
import hashlib
import re
import time
from urllib.parse import urlsplit

from pydantic import Field

from agent.message import Provenance, ToolOutput
from agent.tools.base import CallContext, Parameters, Sink, Tool
from agent.tools.registry import WEB_FETCH, WEB_SEARCH
from agent.web.fence import addresses, fenced
from agent.web.fetch import Fetcher
from agent.web.pages import Kept, readable
from agent.web.reach import WebError
from agent.web.search import Provider

AT_ONCE = 4
# How often an address that a person named is asked for in a day of one task, and what begins the name by which that is
# counted; no host has a blank.
_OFTEN, _NAMED = 20, "named "
# What stands before the name of a country where domains have three labels.
_SHARED = ("ac", "co", "com", "edu", "go", "gob", "gov", "ne", "net", "or", "org")
# What separates labels as well (RFC 3490), so that one host has several spellings.
_DOTS = dict.fromkeys(map(ord, "\u3002\uff0e\uff61"), ".")
# The end of a host that is an address of IPv4 or IPv6.
_NUMERIC = re.compile(r"(^|\.)\d+$|:")


class WebFetchParameters(Parameters):
    """Of `web_fetch`."""

    url: str = Field(min_length=1, max_length=4000)


class WebFetchTool(Tool[WebFetchParameters]):
    """Reads what is at an address."""

    name = WEB_FETCH
    description = "Read a web page, PDF or other text at an address: its text, with links."
    parameters = WebFetchParameters
    parallel_safe = True
    reads_web = True

    def __init__(self, fetcher: Fetcher, kept: Kept, most: tuple[int, int] = (2, 20)) -> None:
        """most: how many addresses that only text from outside names are followed unasked, of a host and in a task."""
        self._fetcher, self._kept, self._places = fetcher, kept, asyncio.Semaphore(AT_ONCE)
        self._of_host, self._of_task = most

    async def run(self, parameters: WebFetchParameters, context: CallContext) -> ToolOutput:
        """Return the text in a fence. Raises WebError."""
        address = parameters.url.strip()
        origins = (Provenance("web", urlsplit(address).hostname or address[:100]),)
        if said := self._kept.get(address):
            return ToolOutput(text=said, origins=origins)
        async with self._places:
            answer = await self._fetcher.get(address)
            said = fenced("web-page", await readable(answer), answer.address)
        if answer.status >= 300:
            text = f"The server answered with status {answer.status}:\n{said}"
            return ToolOutput(text=text, is_error=True, origins=origins)
        self._kept.put(address, said)
        return ToolOutput(text=said, origins=origins)

    async def sink(self, parameters: WebFetchParameters, context: CallContext) -> Sink:
        """See Tool: an address carries data out, unless others wrote it as it is; so does the choice."""
        address = parameters.url.strip()
        if not any(address in addresses(text) for text in context.texts()):
            return "network"
        if not (host := await self.follows(parameters, context)):
            return "look"
        followed = await context.followed()
        if host.startswith(_NAMED):
            return "look" if followed.get(host, 0) < _OFTEN else "follow"
        every = sum(count for name, count in followed.items() if not name.startswith(_NAMED))
        return "look" if followed.get(host, 0) < self._of_host and every < self._of_task else "follow"

    async def follows(self, parameters: WebFetchParameters, context: CallContext) -> str:
        """See Tool; what is kept is asked for at no server.

        What people have written they have chosen, but how often it is asked for is a choice as well.
        """
        address = parameters.url.strip()
        if self._kept.get(address):
            return ""
        if any(address in addresses(text) for text in context.trusted_texts()):
            day, digest = time.time() // 86_400, hashlib.sha256(address.encode(errors="replace")).hexdigest()
            return f"{_NAMED}{day:.0f} {digest[:16]}"
        return _site(address)


def _site(address: str) -> str:
    """Return the host of an address without the labels that the owner of its domain chooses."""
    host = (urlsplit(address).hostname or address[:100]).translate(_DOTS).rstrip(".").lower()
    labels = host.split(".")
    shared = len(labels[-1]) == 2 and len(labels) > 2 and labels[-2] in _SHARED
    return host if _NUMERIC.search(host) else ".".join(labels[-3 if shared else -2 :])


class WebSearchParameters(Parameters):
    """Of `web_search`."""

    query: str = Field(min_length=1, max_length=400)


class WebSearchTool(Tool[WebSearchParameters]):
    """Asks a provider of searches."""

    name = WEB_SEARCH
    description = "Search the web: titles, addresses and snippets. Read a page with web_fetch."
    parameters = WebSearchParameters
    parallel_safe = True
    reads_web = True

    def __init__(self, provider: Provider, fetcher: Fetcher, kept: Kept) -> None:
        self._provider, self._fetcher, self._kept = provider, fetcher, kept

    async def run(self, parameters: WebSearchParameters, context: CallContext) -> ToolOutput:
        """Return the results in a fence. Raises WebError with the name of the provider."""
        name, query = self._provider.name, " ".join(parameters.query.split())
        origins = (Provenance("web", f"results of {name}"),)
        if said := self._kept.get(query):
            return ToolOutput(text=said, origins=origins)
        try:
            answer = await self._fetcher.get(*self._provider.request(query), redirects=0)
            found = await asyncio.to_thread(self._provider.read, answer)
        except WebError as error:
            raise WebError(f"The search with {name} has failed: {str(error).rstrip('.')}.") from None
        results = "\n\n".join(f"{at}. {one.title}\n{one.address}\n{one.snippet}" for at, one in enumerate(found, 1))
        said = f"Found by {name}:\n{fenced('web-results', results)}" if found else f"{name} found nothing."
        self._kept.put(query, said)
        return ToolOutput(text=said, origins=origins)
