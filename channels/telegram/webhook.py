"""Updates that Telegram brings instead of being asked: stored before they are acknowledged, like those of a poll."""

import hashlib
import hmac
import json

from aiohttp import web

from channels.base import NotAccepted, Times
from channels.failures import ApiError, Trouble
from channels.listener import Listener
from channels.telegram.api import Api
from channels.telegram.events import ALLOWED_UPDATES
from channels.telegram.poll import TelegramReceiver
from channels.telegram.settings import TelegramAccount

_SECRET = "X-Telegram-Bot-Api-Secret-Token"


class WebhookReceiver(TelegramReceiver):
    """Receives by requests of Telegram; what could not be stored it brings again."""

    def __init__(self, name: str, api: Api, section: TelegramAccount, times: Times) -> None:
        super().__init__(name, api, section, times)
        self._listener: Listener | None = None
        # the same after a restart, so that nothing on its way is refused
        self._secret = hashlib.sha256(f"webhook:{section.secret('token')}".encode()).hexdigest()

    async def stop(self) -> None:
        """Take nothing more; Telegram keeps what it cannot bring."""
        if self._listener is not None:
            await self._listener.close()
        await super().stop()

    async def _receive(self) -> None:
        """Listen and be known to Telegram as this; then see for a while that it is so.

        Raises ApiError, also when Telegram says that it cannot bring anything.
        """
        listen = self._section.listen
        if self._listener is None:
            listener = Listener(listen, self._request)
            try:
                await listener.start()
            except OSError as error:
                await self._wait(f"The webhook cannot listen: {error.strerror}", self._pauses.next())
                return
            self._listener = listener
        url = self._section.webhook_url or f"http://{listen.host}:{self._listener.port}{listen.path}"
        info = await self._api.call("getWebhookInfo", {})
        if info["url"] != url:
            arguments = {
                "url": url,
                "secret_token": self._secret,
                "allowed_updates": list(ALLOWED_UPDATES),
                "max_connections": 1,  # so that updates come in their order
            }
            await self._api.call("setWebhook", arguments)
        elif info.get("pending_update_count") and info.get("last_error_message"):
            raise ApiError(Trouble.REFUSED, f"Telegram cannot reach {url}: {info['last_error_message']}")
        self._heard_of()
        await self._times.sleep(self._section.poll_timeout)

    async def _request(self, request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get(_SECRET, "").encode(), self._secret.encode()):
            return web.Response(status=403)
        try:
            update = json.loads(await request.read())
        except ValueError:
            return web.Response(status=400)
        try:
            await self._take([update])
        except NotAccepted:
            return web.Response(status=503)
        return web.Response()
