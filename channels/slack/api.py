"""Calls of Slack's Web API through slack-sdk, with what can go wrong turned into the closed set of `failures`.

Nothing is repeated here.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from channels.failures import ApiError, Trouble, reason_of
from channels.slack.settings import SlackSettings

log = logging.getLogger(__name__)

_HISTORY = ("channels:history", "groups:history", "im:history", "mpim:history")
METHODS: Mapping[str, tuple[str, ...]] = {
    "apps.connections.open": (),
    "assistant.threads.setStatus": ("chat:write",),
    "auth.test": (),
    "chat.delete": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "chat.update": ("chat:write",),
    "conversations.history": _HISTORY,
    "conversations.replies": _HISTORY,
    "files.completeUploadExternal": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "files.info": ("files:read",),
    "reactions.add": ("reactions:write",),
    "reactions.remove": ("reactions:write",),
    "users.conversations": ("channels:read", "groups:read", "im:read", "mpim:read"),
    "users.info": ("users:read",),
}
"""Every method that is called, with the scopes of the bot token that it needs."""
EVENT_SCOPES = ("app_mentions:read", "commands")
"""Scopes without which Slack does not send mentions and commands; those of messages are the ones of the history."""

_READING = ("conversations.", "files.info", "files.getUploadURLExternal", "users.")
"""What methods begin with that read no JSON, or need none."""
_TOKEN = (
    *("account_inactive", "ekm_access_denied", "invalid_auth", "no_permission", "not_allowed_token_type", "not_authed"),
    *("org_login_required", "team_access_not_granted", "token_expired", "token_revoked", "two_factor_setup_required"),
)
_FAILED = ("fatal_error", "internal_error", "service_unavailable")
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


NEVER = (Trouble.SCOPE, Trouble.REFUSED)
"""Asking again would not help."""


class Api:
    """One bot at one server. To be opened on the event loop before it is used."""

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Make the one session of connections that all calls share: a connection for each would cost a handshake."""
        settings = self._settings
        timeout = aiohttp.ClientTimeout(total=settings.request_timeout, connect=settings.connect_timeout)
        self._session = aiohttp.ClientSession(timeout=timeout)
        self.client = AsyncWebClient(
            settings.bot_token,
            settings.base_url,
            session=self._session,
            retry_handlers=[],
            logger=logging.getLogger("slack_sdk"),
        )

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(self, method: str, arguments: Mapping[str, object], token: str | None = None) -> Any:
        """The answer of one of METHODS; token: instead of the bot's. Raises ApiError."""
        assert method in METHODS
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
        """A request beside the Web API, without a token of its own. Raises ApiError, also while its content is read."""
        if self._session is None:
            raise ApiError(Trouble.NETWORK, "not connected")
        settings = self._settings  # a file may take long, as long as something moves
        timeout = aiohttp.ClientTimeout(connect=settings.connect_timeout, sock_read=settings.request_timeout)
        try:
            async with self._session.request(
                verb, url, proxy=self.client.proxy, timeout=timeout, **options
            ) as response:
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise _broken(error) from None


def _broken(error: Exception) -> ApiError:
    trouble = Trouble.NETWORK if isinstance(error, _NEVER_SENT) else Trouble.UNKNOWN
    return ApiError(trouble, reason_of(error))


def _refused(response: Any) -> ApiError:
    """What an answer means that is no success. One that is not Slack's own came from something in between."""
    status = int(getattr(response, "status_code", None) or response.status)
    data = getattr(response, "data", None)
    data = data if isinstance(data, dict) else {}
    code = str(data.get("error", ""))
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return flood(response.headers)
    if not code:
        return ApiError(Trouble.FAILED if status >= 500 else Trouble.NETWORK, f"status {status}")
    if code in _FAILED or status >= 500:
        return ApiError(Trouble.FAILED, code, code=code)
    if code == "missing_scope":
        words = f"the app lacks the scope {data.get('needed', '')}; {WHERE_SCOPES}"
        return ApiError(Trouble.SCOPE, words, code=code)
    if code == "request_timeout":  # of the request's own content, which did not arrive whole
        return ApiError(Trouble.NETWORK, code, code=code)
    details = data.get("response_metadata", {}).get("messages", ())
    words = " ".join((code, *map(str, details)))[:300]
    return ApiError(Trouble.TOKEN if code in _TOKEN else Trouble.REFUSED, words, code=code)


WHERE_SCOPES = "add it under OAuth & Permissions on the app's page and install the app again"


def flood(headers: Mapping[str, str]) -> ApiError:
    """The error of an answer 429."""
    told = headers.get("Retry-After", "")
    return ApiError(
        Trouble.FLOOD, "ratelimited", code="ratelimited", retry_after=float(told) if told.isdigit() else 1.0
    )
