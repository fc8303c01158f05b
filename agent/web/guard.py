"""The transport of requests to the web: it connects to addresses that were checked, and to nothing else."""

import ssl

import httpx2

from agent.web.reach import Reach, WebError

# Addresses of one host that are tried.
_TRIED = 4
_PORTS = {"http": 80, "https": 443}


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves the host of each request once, and connects to exactly the addresses that were checked.

    The header Host and the name that the certificate must have stay those of the URL. No proxy of the environment is
    used, and no connection twice, so that none is shared by two names with the same address.
    """

    def __init__(self, reach: Reach, tls: ssl.SSLContext) -> None:
        none_kept = httpx2.Limits(max_keepalive_connections=0)
        self._reach = reach
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=none_kept)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Raises WebError where it may not go, or an error of httpx2."""
        url, host = request.url, request.url.raw_host.decode("ascii").removesuffix(".")
        if url.scheme not in _PORTS or not host or url.userinfo:
            raise WebError("Only addresses that begin with http:// or https://, without a user in them, can be read.")
        failed: httpx2.TransportError = httpx2.ConnectError("no address")
        for address in (await self._reach.addresses(host, url.port or _PORTS[url.scheme]))[:_TRIED]:
            pinned = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,  # Host among them
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:  # nothing was sent
                failed = error
        raise failed

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()
