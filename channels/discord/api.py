"""REST calls through discord.py's own client, which raise only `ApiError`.

The library waits for the rate limit of each route and channel, so a flooded channel delays no other.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import discord
from discord.http import HTTPClient, Ratelimit, Route

from channels.base import NotDownloaded
from channels.discord.settings import DiscordAccount
from channels.discord.world import UNKNOWN_CHANNEL, UNKNOWN_MESSAGE
from channels.failures import ApiError, Trouble, reason_of

ONE = "/channels/{channel_id}/messages/{message_id}"
# Seconds that a call waits for the limit of its route; the least that the library allows.
LONGEST_WAIT = 30.0
_PIECE = 64 * 1024
TOO_LARGE, THREAD_EXISTS = 40005, 160004
_TOKEN = re.compile(r"(/(?:webhooks|interactions)/\d+/)[^/\s]+")
_SIGN = re.compile(r"/reactions/|/typing$")
_PERMISSIONS = "in Discord: the channel's settings, Permissions, the role of the bot"
_HINTS = {
    UNKNOWN_CHANNEL: "the channel is gone",
    UNKNOWN_MESSAGE: "the message is gone, or stands in another channel",
    10014: "an emoji is one character, or <:name:id> of one of the server",
    TOO_LARGE: "the file is too large for Discord",
    50001: f"the bot does not see this channel; allow it View Channel {_PERMISSIONS}",
    50007: "the person takes no direct messages from the bot, has blocked it, or shares no server with it",
    50033: "there is no such conversation or person",
    50013: f"the bot lacks a permission; allow it {{}} {_PERMISSIONS}",
    160002: f"the bot cannot read what it replies to; allow it Read Message History {_PERMISSIONS}",
}
# The permission that a call needs, by a part of its route; the first one that fits.
_NEEDED = {
    "/pins/": "Pin Messages",
    "/reactions/": "Add Reactions and Read Message History",
    "/threads": "Create Public Threads",
    "GET ": "Read Message History",
    "DELETE ": "Manage Messages, for messages of others",
    "": "Send Messages, Send Messages in Threads and Attach Files",
}


def _hide_tokens(record: logging.LogRecord) -> bool:
    """Remove the tokens of interactions from log records: they are in addresses, which the library logs."""
    record.msg, record.args = _TOKEN.sub(r"\1<token>", record.getMessage()), ()
    return True


class _Bucket(Ratelimit):
    """The rate limit of a route. The library's own would delay the result of a call until the next one may be made."""

    def __init__(self, longest: float | None, leaving: set[asyncio.Task[None]]) -> None:
        super().__init__(longest)
        self._leaving = leaving

    async def __aexit__(self, *exception: Any) -> None:
        error = exception[1]
        if isinstance(error, ApiError) and error.trouble is Trouble.FLOOD:  # the library does not learn of it
            self.outgoing -= 1
            self.remaining, self.reset_after, self.expires = 0, 0.0, self._loop.time() + error.retry_after
            return
        task = asyncio.create_task(super().__aexit__(*exception))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def waits(self, keep: int) -> float:
        """Seconds until a call may be made so that `keep` more remain."""
        left = 0.0 if self.expires is None else self.expires - self._loop.time()
        return max(left, 0.0) if self.remaining <= keep else 0.0


class Api(HTTPClient):
    """The REST API of one bot. `request`, and the methods of the library that use it, raise only ApiError."""

    def __init__(self, section: DiscordAccount) -> None:
        super().__init__(discord.utils.MISSING, max_ratelimit_timeout=LONGEST_WAIT)
        self._section = section
        self._opened = self._closed = False
        self._leaving: set[asyncio.Task[None]] = set()
        self.timeout = aiohttp.ClientTimeout(sock_connect=section.connect_timeout, sock_read=section.request_timeout)
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        # This is a class attribute of the library, so it is the same for all bots.
        Route.BASE = section.base_url
        logging.getLogger("discord.http").addFilter(_hide_tokens)

    async def me(self) -> dict[str, Any]:
        """Log in if necessary and return the bot's own user. Raises ApiError."""
        if self._opened:
            return await self.call("GET", "/users/@me")  # type: ignore[no-any-return]
        self._opened = True  # a second login would leave the connections of the first one open
        try:
            return dict(await self.static_login(self._section.secret("token")))
        finally:
            self.token = self._section.secret("token")

    async def call(self, method: str, path: str, **parameters: Any) -> Any:
        """Call an endpoint and return its answer. json, params, files, form: of the request; others fill the path."""
        options = {name: parameters.pop(name) for name in ("json", "params", "files", "form") if name in parameters}
        return await self.request(Route(method, path, **parameters), **options)

    async def request(self, route: Route, **options: Any) -> Any:
        """See the library. It retries only after a 429: the caller knows whether another retry would do harm."""
        if self._closed or not self._opened:
            raise ApiError(Trouble.NETWORK, "not connected")
        if not {".", ".."}.isdisjoint(route.url.split("/")):  # it would change the path of the call
            raise ApiError(Trouble.REFUSED, "not an id of Discord")
        try:
            return await super().request(route, timeout=self.timeout, raise_for_status=_raise_failed, **options)
        except discord.RateLimited as error:
            raise ApiError(Trouble.FLOOD, "too many calls", retry_after=error.retry_after) from None
        except discord.HTTPException as error:
            raise _refused(error, route) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise ApiError(Trouble.NETWORK, reason_of(error)) from None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise ApiError(Trouble.UNKNOWN, reason_of(error)) from None

    def get_ratelimit(self, key: str) -> Ratelimit:
        """See the library."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self.max_ratelimit_timeout, self._leaving)
            self._try_clear_expired_ratelimits()
        return bucket

    async def messages(self, channel: str, limit: int, **where: str | None) -> list[dict[str, Any]]:
        """Messages of a channel, oldest first. where: `after` or `before` an id. Raises ApiError.

        A channel that the bot may not read looks empty; Discord reports that only for a request of a single message.
        """
        answer: Any = await self.logs_from(channel, limit, **where)
        try:
            found = sorted(answer, key=lambda one: int(one["id"]))
        except (ValueError, KeyError, TypeError):
            raise ApiError(Trouble.UNKNOWN, "Discord's history cannot be read") from None
        if not found:
            try:
                await self.get_message(channel, channel)
            except ApiError as error:
                if error.code != UNKNOWN_MESSAGE:
                    raise
        return found

    def waits(self, route: str, channel: str, keep: int = 0) -> float:
        """Seconds until this route may be called for that channel so that `keep` more calls remain, as far as known."""
        bucket = self._buckets.get(f"{self._bucket_hashes.get(route, route)}:{channel}")
        return bucket.waits(keep) if isinstance(bucket, _Bucket) else 0.0

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """See the library. The socket is kept here, because the library drops one that is silent."""
        self._socket = await super().ws_connect(url, compress=compress)
        self._socket._timeout = aiohttp.ClientWSTimeout(ws_close=self._section.close_timeout)
        return self._socket

    async def hang_up(self) -> None:
        """Close the gateway's connection so that its session can be resumed."""
        if self._socket is not None:
            await self._socket.close(code=4000)

    async def file(self, url: str) -> AsyncIterator[bytes]:
        """Download a file, only from Discord's own hosts. An expired URL is renewed once. Raises NotDownloaded."""
        async with aiohttp.ClientSession(timeout=self.timeout) as session:
            for renewed in (False, True):
                if not url.startswith(self._section.cdn):
                    raise NotDownloaded("the file does not lie on Discord's own servers")
                try:
                    async with session.get(url, allow_redirects=False) as response:
                        if response.status == 200:
                            async for piece in response.content.iter_chunked(_PIECE):
                                yield piece
                            return
                        if response.status not in (403, 404) or renewed:
                            raise NotDownloaded(f"Discord answered {response.status}")
                    url = await self._renewed(url)
                except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                    raise NotDownloaded(reason_of(error)) from None

    async def _renewed(self, url: str) -> str:
        try:
            answer = await self.call("POST", "/attachments/refresh-urls", json={"attachment_urls": [url]})
            return str(answer["refreshed_urls"][0]["refreshed"])
        except (ApiError, KeyError, IndexError, TypeError) as error:
            raise NotDownloaded(f"its address has ended and was not renewed: {error}") from None

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        await super().close()
        for task in self._leaving:
            task.cancel()


async def _raise_failed(response: aiohttp.ClientResponse) -> None:
    """Raise ApiError before the library retries: a call that failed with 5xx may have been carried out, and a flood of
    edits or signs must not delay messages."""
    if response.status == 429 and (response.method == "PATCH" or _SIGN.search(response.url.path)):
        response.close()
        raise _flood(response)
    if response.status >= 500:
        response.close()
        raise ApiError(Trouble.UNKNOWN, f"Discord failed with status {response.status}", status=response.status)


def _flood(response: aiohttp.ClientResponse) -> ApiError:
    seconds = response.headers.get("Retry-After", "")
    after = float(seconds) if seconds.isdigit() else LONGEST_WAIT
    return ApiError(Trouble.FLOOD, "too many calls", status=429, retry_after=after)


def _refused(error: discord.HTTPException, route: Route) -> ApiError:
    """The error of an answer with an error status. One without Discord's own form came from a proxy in between."""
    status, code = error.status, TOO_LARGE if error.status == 413 else error.code
    if status == 401 and not code:
        return ApiError(Trouble.TOKEN, "401: Unauthorized", status=status)
    response = error.response
    assert isinstance(response, aiohttp.ClientResponse)  # not of the library's other client, which is not asynchronous
    if status == 429:
        return _flood(response)
    if not code and response.content_type != "application/json":
        return ApiError(Trouble.NETWORK, f"status {status}", status=status)
    needed = next(name for part, name in _NEEDED.items() if part in route.key)
    hint = f": {_HINTS[code]}".format(needed) if code in _HINTS else ""
    return ApiError(Trouble.REFUSED, f"{error.text[:300]} ({code}){hint}", status=status, code=code)
