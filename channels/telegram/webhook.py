"""Updates that Telegram brings instead of being asked: stored before they are acknowledged, like those of a poll."""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable

from aiohttp import web

from channels.base import NotAccepted, Times
from channels.failures import ApiError, Trouble
from channels.listener import Listener
from channels.settings import Listen
from channels.telegram.api import Api
from channels.telegram.events import ALLOWED_UPDATES
from channels.telegram.settings import TelegramSettings

_SECRET = "X-Telegram-Bot-Api-Secret-Token"


class Webhook:
    """One bot's. accept: stores updates; raises NotAccepted, and then Telegram brings them again."""

    def __init__(
        self,
        api: Api,
        settings: TelegramSettings,
        listen: Listen,
        times: Times,
        accept: Callable[[list[object]], Awaitable[None]],
    ) -> None:
        self._api = api
        self._settings = settings
        self._times = times
        self._accept = accept
        self._listen = listen
        self._listener: Listener | None = None
        # the same after a restart, so that nothing on its way is refused
        self._secret = hashlib.sha256(f"webhook:{settings.token}".encode()).hexdigest()

    async def step(self) -> None:
        """Listen and be known to Telegram as this; then see for a while that it is so.

        Raises ApiError, also when Telegram says that it cannot bring anything, and OSError where it cannot listen.
        """
        if self._listener is None:
            listener = Listener(self._listen, self._take)
            await listener.start()
            self._listener = listener
        info = await self._api.call("getWebhookInfo", {}, self._settings.request_timeout)
        if info["url"] != self._url(self._listener):
            await self._set(self._url(self._listener))
        elif info.get("pending_update_count") and info.get("last_error_message"):
            reason = f"Telegram cannot reach {info['url']}: {info['last_error_message']}"
            raise ApiError(Trouble.REFUSED, reason)

    async def close(self) -> None:
        """Take nothing more; Telegram keeps what it cannot bring."""
        if self._listener is not None:
            await self._listener.close()

    @property
    def port(self) -> int:
        """Where it listens; 0 before."""
        return self._listener.port if self._listener else 0

    def _url(self, listener: Listener) -> str:
        return self._settings.webhook_url or f"http://{self._listen.host}:{listener.port}{self._listen.path}"

    async def _set(self, url: str) -> None:
        arguments = {
            "url": url,
            "secret_token": self._secret,
            "allowed_updates": list(ALLOWED_UPDATES),
            "max_connections": 1,  # so that updates come in their order
        }
        await self._api.call("setWebhook", arguments, self._settings.request_timeout)

    async def _take(self, request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get(_SECRET, "").encode(), self._secret.encode()):
            return web.Response(status=403)
        try:
            update = json.loads(await request.read())
        except ValueError:
            return web.Response(status=400)
        try:
            await self._accept([update])
        except NotAccepted:
            return web.Response(status=503)
        return web.Response()
