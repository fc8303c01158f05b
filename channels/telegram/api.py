"""Calls of the Bot API through python-telegram-bot, with its exceptions turned into the closed set of `failures`.

The token is in no message and no log record.
"""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from telegram import Bot
from telegram.error import TelegramError
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from channels.failures import ApiError, Trouble
from channels.telegram.settings import TelegramSettings

_POOL = 256
# These name the address of a call, and so the token, in what they log.
_TALKATIVE = ("httpx", "telegram.Bot")
_NEVER_SENT = (httpx.PoolTimeout, httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError)


_ANSWERED = (Trouble.FLOOD, Trouble.REFUSED, Trouble.MOVED, Trouble.TOKEN, Trouble.CONFLICT)
"""In these Telegram itself has answered."""


class _Refusal(TelegramError):
    """An answer that is no success, before the library makes one of its exceptions of it."""

    def __init__(self, status: int, payload: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.payload = payload


class _Request(HTTPXRequest):
    def stream(self, url: str) -> AbstractAsyncContextManager[httpx.Response]:
        """The content of a file, over the same connections."""
        return self._client.stream("GET", url)

    async def do_request(self, *arguments: Any, **options: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*arguments, **options)
        if not 200 <= status <= 299:
            raise _Refusal(status, payload)
        return status, payload


class _RawBot(Bot):
    """The library's bot; asked for raw answers, it need not advise against that with every call."""

    @classmethod
    def _warn(cls, message: Any, category: type[Warning] = PTBUserWarning, stacklevel: int = 0) -> None:
        if not str(message).startswith("Please use 'Bot."):
            super()._warn(message, category, stacklevel)


class _HideToken(logging.Filter):
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if self._token in message:
            record.msg, record.args = message.replace(self._token, "<token>"), ()
        return True


class Api:
    """One bot at one server. Raises telegram's InvalidToken when the token is empty.

    answers: how many calls Telegram has answered so far: it lives when there are more of them than before.
    """

    def __init__(self, settings: TelegramSettings) -> None:
        self.answers = 0
        self._closed = False
        self._token = settings.token
        self._file_url = settings.base_file_url
        self._filter = _HideToken(settings.token)
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(self._filter)
        # One pool for polls and sends: a second one would cost another TLS context.
        request = _Request(
            connection_pool_size=_POOL,
            connect_timeout=settings.connect_timeout,
            write_timeout=settings.request_timeout,
            pool_timeout=settings.connect_timeout,
        )
        self._request = request
        self._bot = _RawBot(
            settings.token,
            base_url=settings.base_url,
            base_file_url=settings.base_file_url,
            request=request,
            get_updates_request=request,
        )

    async def call(self, method: str, arguments: Mapping[str, object], timeout: float) -> Any:
        """The raw result of a method. timeout: seconds to wait for the answer. Raises ApiError."""
        if self._closed:
            raise ApiError(Trouble.NETWORK, "not connected")
        try:
            result = await self._bot.do_api_request(method, dict(arguments), read_timeout=timeout)
        except _Refusal as refusal:
            error = self._refused(refusal)
            self.answers += error.trouble in _ANSWERED
            raise error from None
        except (TelegramError, KeyError, TypeError) as error:
            never_sent = isinstance(error.__cause__, _NEVER_SENT)
            raise ApiError(Trouble.NETWORK if never_sent else Trouble.UNKNOWN, self._plain(error)) from None
        self.answers += 1
        return result

    async def file(self, path: str) -> AsyncIterator[bytes]:
        """The content of a file by the path that getFile told. Raises ApiError."""
        try:
            async with self._request.stream(f"{self._file_url}{self._token}/{path}") as answer:
                if answer.status_code != 200:
                    raise ApiError(Trouble.REFUSED, f"status {answer.status_code}", status=answer.status_code)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise ApiError(Trouble.UNKNOWN, self._plain(error)) from None

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        await self._request.shutdown()
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(self._filter)

    def _plain(self, error: object) -> str:
        return (str(error) or type(error).__name__).replace(self._token, "<token>")[:300]

    def _refused(self, refusal: _Refusal) -> ApiError:
        """What an error answer means. One that is not Telegram's own came from something in between.

        A status of 5xx says nothing about whether the call was carried out, whoever sent it.
        """
        try:
            answer = json.loads(refusal.payload)
            reason = self._plain(answer["description"])
            parameters = answer.get("parameters", {})
            retry_after, new_chat = parameters.get("retry_after"), parameters.get("migrate_to_chat_id")
        except (ValueError, TypeError, KeyError, AttributeError):
            trouble = Trouble.FAILED if refusal.status >= 500 else Trouble.NETWORK
            return ApiError(trouble, f"status {refusal.status}")
        if new_chat:
            return ApiError(Trouble.MOVED, reason, new_chat=str(new_chat))
        if refusal.status == 429:
            return ApiError(Trouble.FLOOD, reason, retry_after=float(retry_after or 1))
        by_status = {401: Trouble.TOKEN, 404: Trouble.TOKEN, 409: Trouble.CONFLICT}
        usual = Trouble.REFUSED if 400 <= refusal.status < 500 else Trouble.FAILED
        return ApiError(by_status.get(refusal.status, usual), reason, status=refusal.status)
