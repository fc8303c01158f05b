"""Calls of Slack's Web API through slack-sdk, which raise only `ApiError` and are never retried here."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from channels.base import NotDownloaded
from channels.failures import ApiError, Trouble, reason_of
from channels.slack.settings import SlackAccount

# The scopes that the bot token needs.
SCOPES = (
    *("app_mentions:read", "chat:write", "commands", "files:read", "files:write", "im:write", "pins:write"),
    *("channels:history", "groups:history", "im:history", "mpim:history", "reactions:write", "users:read"),
    *("channels:read", "groups:read", "im:read", "mpim:read"),
)
# The beginnings of methods that take no JSON.
_READING = ("conversations.history", "conversations.info", "conversations.replies", "files.info", "files.get", "users.")
_TOKEN = (
    *("account_inactive", "ekm_access_denied", "invalid_auth", "no_permission", "not_allowed_token_type", "not_authed"),
    *("org_login_required", "team_access_not_granted", "token_expired", "token_revoked", "two_factor_setup_required"),
)
_FAILED = ("fatal_error", "internal_error", "service_unavailable")
_PLAIN = {
    "channel_not_found": "there is no such conversation, or the bot is not in it",
    "not_in_channel": "the bot is not in that channel; somebody there can /invite it",
}
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_HOST = "slack.com"
_REDIRECTS = 3
_PIECE = 65_536
# The troubles after which a retry would not help.
NEVER = (Trouble.SCOPE, Trouble.REFUSED)


class Api:
    """The Web API of one bot. It has to be opened on the event loop before use."""

    def __init__(self, section: SlackAccount) -> None:
        self._section = section
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Open the session whose connections all calls share, so that not every call costs a TLS handshake."""
        section = self._section
        timeout = aiohttp.ClientTimeout(total=section.request_timeout, connect=section.connect_timeout)
        self._session = aiohttp.ClientSession(timeout=timeout)
        token, log = section.secret("bot_token"), logging.getLogger("slack_sdk")
        self.client = AsyncWebClient(token, section.base_url, session=self._session, retry_handlers=[], logger=log)

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(self, method: str, arguments: Mapping[str, object], token: str | None = None) -> Any:
        """Call a method and return its answer. token: used instead of the bot's. Raises ApiError."""
        if self._session is None:
            raise ApiError(Trouble.NETWORK, "not connected")
        given: dict[str, Any] = dict(arguments)
        try:
            if token is not None or method.startswith(_READING):
                params = given if token is None else {**given, "token": token}
                return await self.client.api_call(method, http_verb="POST" if token else "GET", params=params)
            return await self.client.api_call(method, json=given)
        except SlackApiError as error:
            raise _refused(error.response) from None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, TypeError, AttributeError) as error:
            raise _broken(error) from None

    @asynccontextmanager
    async def request(self, verb: str, url: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make a request outside of the Web API, without the token. Raises ApiError, also while the content is read."""
        if self._session is None:
            raise ApiError(Trouble.NETWORK, "not connected")
        section = self._section  # a file may take long, as long as something moves
        timeout = aiohttp.ClientTimeout(connect=section.connect_timeout, sock_read=section.request_timeout)
        try:
            async with self._session.request(
                verb, url, proxy=self.client.proxy, timeout=timeout, **options
            ) as response:
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise _broken(error) from None

    async def file(self, ref: str) -> AsyncIterator[bytes]:
        """Download a file, only from Slack's own hosts, because the request has the token.

        ref: its id and URL. An expired URL is renewed once. Raises ApiError, NotDownloaded.
        """
        file_id, _, url = ref.partition(" ")
        headers = {"Authorization": f"Bearer {self._section.secret('bot_token')}"}
        for renewed in (False, True):
            if renewed or not url:
                file = (await self.call("files.info", {"file": file_id}))["file"]
                url = file.get("url_private_download") or file.get("url_private") or ""
            for _ in range(_REDIRECTS):
                if not is_slack(url, self._section.base_url):
                    host = urlsplit(url).hostname or "none"
                    raise NotDownloaded(f"the file is not on Slack's own hosts but on {host}")
                async with self.request("GET", url, headers=headers, allow_redirects=False) as response:
                    if response.status in (301, 302, 303, 307, 308):
                        url = urljoin(url, response.headers.get("Location", ""))
                        continue
                    # Without access Slack answers 200 with a sign-in page; files come as attachments.
                    shown = "attachment" not in response.headers.get("Content-Disposition", "")
                    if response.status in (401, 403, 404, 410) or (response.content_type == "text/html" and shown):
                        break
                    if response.status != 200:
                        raise ApiError(Trouble.FAILED, f"status {response.status}")
                    async for piece in response.content.iter_chunked(_PIECE):
                        yield piece
                    return
        raise NotDownloaded("Slack does not hand out the file: the app needs the scope files:read and access to it")


def is_slack(url: str, base_url: str) -> bool:
    """Whether a URL is Slack's, or of the configured server, which has the token anyway."""
    parts, base = urlsplit(url), urlsplit(base_url)
    host = parts.hostname or ""
    own = parts.scheme == "https" and (host == _HOST or host.endswith(f".{_HOST}"))
    return own or (parts.scheme, parts.netloc) == (base.scheme, base.netloc)


def _broken(error: Exception) -> ApiError:
    trouble = Trouble.NETWORK if isinstance(error, _NEVER_SENT) else Trouble.UNKNOWN
    return ApiError(trouble, reason_of(error))


def _refused(response: Any) -> ApiError:
    """The error of an answer that reports a failure. One without Slack's own form came from a proxy in between."""
    status = int(getattr(response, "status_code", None) or response.status)
    data = getattr(response, "data", None)
    data = data if isinstance(data, dict) else {}
    code = str(data.get("error", ""))
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return flood(response.headers)
    if not code:
        if status >= 500:
            return ApiError(Trouble.FAILED, f"status {status}")
        return ApiError(Trouble.NETWORK, f"something in between answered in its place, with status {status}")
    if code in _FAILED or status >= 500:
        return ApiError(Trouble.FAILED, code, code=code)
    if code == "missing_scope":
        return ApiError(Trouble.SCOPE, lacking(data.get("needed", "")), code=code)
    if code == "request_timeout":  # Slack did not receive the whole request
        return ApiError(Trouble.NETWORK, code, code=code)
    details = data.get("response_metadata", {}).get("messages", ())
    words = " ".join((_PLAIN.get(code, code.replace("_", " ")), *map(str, details)))[:300]
    return ApiError(Trouble.TOKEN if code in _TOKEN else Trouble.REFUSED, words, code=code)


def lacking(scopes: str) -> str:
    """The plain sentence about scopes that were not granted."""
    return f"the app lacks the scope {scopes}: add it under OAuth & Permissions on its page and install it again"


def flood(headers: Mapping[str, str]) -> ApiError:
    """The error of an answer with status 429."""
    told = headers.get("Retry-After", "")
    seconds = float(told) if told.isdecimal() else 1.0
    return ApiError(Trouble.FLOOD, f"too many calls, again in {seconds:g} s", code="ratelimited", retry_after=seconds)
