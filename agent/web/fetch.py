"""Asks for what is at an address: bounded in time, size, redirects and kinds, and only where it may go."""

import asyncio
import re
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.web.reach import Reach, WebError

if TYPE_CHECKING:  # it takes a tenth of a second to load, which only whoever reads pages waits for
    import httpx2

SECONDS = 30.0
MAX_BYTES = 5 * 1024 * 1024
REDIRECTS = 5
_SILENCE_SECONDS = 10.0
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Hark)",
    "Accept": "text/html,text/*;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
_READABLE = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml)|application/(?:pdf|javascript|yaml)|")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    status: int
    # Where it was found at last.
    address: str
    # What it is, such as text/html, and in which encoding, as the server says; or empty.
    media: str
    charset: str
    # Decompressed.
    body: bytes


class Fetcher:
    """Asks servers that are within reach."""

    def __init__(self, reach: Reach, *, seconds: float = SECONDS, tls: ssl.SSLContext | None = None) -> None:
        """seconds: for all of one answer, redirects included. tls: None trusts whom this machine trusts."""
        self._reach, self._seconds, self._tls = reach, seconds, tls

    async def get(self, address: str, headers: Mapping[str, str] | None = None, redirects: int = REDIRECTS) -> Answer:
        """Return what is at an address. headers: are sent also where it leads to, so secret ones need no redirects.

        Raises WebError.
        """
        if self._tls is None:
            self._tls = await asyncio.to_thread(_trusted)
        import httpx2

        from agent.web.guard import GuardedTransport

        try:
            guard = GuardedTransport(self._reach, self._tls)
            client = httpx2.AsyncClient(transport=guard, trust_env=False, timeout=_SILENCE_SECONDS)
            async with asyncio.timeout(self._seconds), client:
                url = httpx2.URL(address)
                for _ in range(redirects + 1):
                    async with client.stream("GET", url, headers={**_HEADERS, **(headers or {})}) as response:
                        if not response.has_redirect_location:
                            return await _read(response)
                        url = url.join(response.headers["location"])
        except httpx2.TimeoutException:
            raise WebError(f"The server said nothing for {_SILENCE_SECONDS:g} seconds.") from None
        except TimeoutError:
            raise WebError(f"The server did not answer in full within {self._seconds:g} seconds.") from None
        except httpx2.InvalidURL:
            raise WebError("That is no address of the web; one begins with http:// or https://.") from None
        except httpx2.HTTPError as error:
            why = "its certificate is not valid" if "CERTIFICATE" in str(error) else type(error).__name__
            raise WebError(f"The server was not reached, or broke off: {why}.") from None
        raise WebError(f"The server leads on to other addresses, more than {redirects} times.")


def _trusted() -> ssl.SSLContext:
    """Load what requests are made with, and return whom this machine trusts."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def _read(response: "httpx2.Response") -> Answer:
    """Read an answer whole. Raises WebError when it is of a kind that is not read, or too long."""
    media, _, rest = response.headers.get("content-type", "").lower().partition(";")
    media = media.strip()
    if not _READABLE.fullmatch(media):
        raise WebError(f"That is `{re.sub('[^a-z0-9/.+-]', '?', media)[:60]}`, not a text, page or PDF.")
    if response.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip", "deflate"):
        raise WebError("The server's answer is compressed in a way that it was not asked for.")
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:  # decompressed, at most 1 MiB each
            body += piece
            if len(body) > MAX_BYTES:
                raise WebError(f"What is there is longer than {MAX_BYTES // 1024**2} MB.")
    charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", rest)
    return Answer(response.status_code, str(response.url), media, charset[1] if charset else "", bytes(body))
