"""Calls of the Bot API through python-telegram-bot, which raise only `ApiError`.

The token appears in no message and no log record.
"""

import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from telegram import Bot
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from channels.failures import ApiError, Trouble, reason_of
from channels.telegram.settings import TelegramAccount

_POOL = 256
# These loggers log the address of a call, which contains the token.
_TALKATIVE = ("httpx", "telegram.Bot")
_TOKEN = re.compile(r"(?<!\d)\d++:[\w-]{10,}", re.ASCII)
_NEVER_SENT = (httpx.PoolTimeout, httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError)


# The troubles that prove that Telegram itself has answered.
_ANSWERED = (Trouble.FLOOD, Trouble.REFUSED, Trouble.MOVED, Trouble.TOKEN, Trouble.CONFLICT)


class _Refusal(TelegramError):
    """An answer with an error status, raised before the library turns it into one of its own exceptions."""

    def __init__(self, status: int, payload: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.payload = payload


class _Request(HTTPXRequest):
    def stream(self, url: str) -> AbstractAsyncContextManager[httpx.Response]:
        """Download a file over the same connections."""
        return self._client.stream("GET", url)

    async def do_request(self, *arguments: Any, **options: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*arguments, **options)
        if not 200 <= status <= 299:
            raise _Refusal(status, payload)
        return status, payload


def _hide_tokens(record: logging.LogRecord) -> bool:
    record.msg, record.args = _hidden(record.getMessage()), ()
    return True


def _hidden(text: str) -> str:
    return _TOKEN.sub("<token>", text)


class Api:
    """The Bot API of one bot. Raises telegram's InvalidToken when the token is empty."""

    def __init__(self, section: TelegramAccount) -> None:
        # How many calls Telegram has answered; the number grows only while it is reachable.
        self.answers = 0
        self._closed = False
        self._token = section.secret("token")
        self._usual = section.request_timeout
        # Files are downloaded from the server that messages are sent to.
        self._file_url = section.base_file_url or f"{section.base_url.removesuffix('/bot')}/file/bot"
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(_hide_tokens)
        # One pool for polls and sends: a second one would cost another TLS context.
        request = _Request(
            connection_pool_size=_POOL,
            connect_timeout=section.connect_timeout,
            write_timeout=section.request_timeout,
            pool_timeout=section.connect_timeout,
        )
        self._request = request
        self._bot = Bot(self._token, base_url=section.base_url, request=request, get_updates_request=request)

    async def call(self, method: str, arguments: Mapping[str, object], timeout: float | None = None) -> Any:
        """Call a method and return its raw result. timeout: for the answer, in seconds. Raises ApiError."""
        if self._closed:
            raise ApiError(Trouble.NETWORK, "not connected")
        try:
            # The public method warns about raw results with every call.
            result = await self._bot._post(method, dict(arguments), read_timeout=timeout or self._usual)
        except _Refusal as refusal:
            error = _refused(refusal)
            self.answers += error.trouble in _ANSWERED
            raise error from None
        except (TelegramError, KeyError, TypeError) as error:
            never_sent = isinstance(error.__cause__, _NEVER_SENT)
            raise ApiError(Trouble.NETWORK if never_sent else Trouble.UNKNOWN, _hidden(reason_of(error))) from None
        self.answers += 1
        return result

    async def file(self, path: str) -> AsyncIterator[bytes]:
        """Download a file by the path that getFile returned. Raises ApiError."""
        try:
            async with self._request.stream(f"{self._file_url}{self._token}/{path}") as answer:
                if answer.status_code != 200:
                    raise ApiError(Trouble.REFUSED, f"status {answer.status_code}", status=answer.status_code)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise ApiError(Trouble.UNKNOWN, _hidden(reason_of(error))) from None

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        await self._request.shutdown()


def _refused(refusal: _Refusal) -> ApiError:
    """The error of an answer with an error status. One without Telegram's own form came from a proxy in between.

    A status of 5xx does not tell whether the call was carried out, whoever sent it.
    """
    try:
        answer = json.loads(refusal.payload)
        reason = _hidden(str(answer["description"]))[:300]
        parameters = answer.get("parameters", {})
        retry_after, new_chat = parameters.get("retry_after"), parameters.get("migrate_to_chat_id")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        trouble = Trouble.FAILED if refusal.status >= 500 else Trouble.NETWORK
        return ApiError(trouble, f"status {refusal.status}")
    if new_chat:
        return ApiError(Trouble.MOVED, reason, new_chat=str(new_chat))
    if refusal.status == 429:
        return ApiError(Trouble.FLOOD, reason, retry_after=float(retry_after or 1))
    by_status = {401: Trouble.TOKEN, 404: Trouble.TOKEN, 409: Trouble.CONFLICT}
    usual = Trouble.REFUSED if 400 <= refusal.status < 500 else Trouble.FAILED
    return ApiError(by_status.get(refusal.status, usual), reason, status=refusal.status)
