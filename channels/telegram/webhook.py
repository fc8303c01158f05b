"""Receives updates by webhook: each is stored before it is acknowledged, like those of a poll."""

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
    """Receives by requests of Telegram, which repeats a request whose update could not be stored."""

    def __init__(self, name: str, api: Api, section: TelegramAccount, times: Times) -> None:
        super().__init__(name, api, section, times)
        self._listener: Listener | None = None
        # The same after a restart, so that no request under way is refused.
        self._secret = hashlib.sha256(f"webhook:{section.secret('token')}".encode()).hexdigest()

    async def stop(self) -> None:
        """Stop listening; Telegram keeps the updates that it cannot deliver."""
        if self._listener is not None:
            await self._listener.close()
        await super().stop()

    async def _receive(self) -> None:
        """Listen, register the webhook if Telegram has another one, then wait before the next check.

        Raises ApiError, also when Telegram reports that it cannot deliver updates.
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
                "max_connections": 1,  # keeps the order of updates
            }
            await self._api.call("setWebhook", arguments)
        elif info.get("pending_update_count") and info.get("last_error_message"):
            raise ApiError(Trouble.REFUSED, f"Telegram cannot reach {url}: {info['last_error_message']}")
        self._poll_returned()
        await self._times.sleep(self._section.poll_timeout)

    async def _request(self, request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get(_SECRET, "").encode(), self._secret.encode()):
            return web.Response(status=403)
        try:
            update = json.loads(await request.read())
        except (ValueError, RecursionError):
            return web.Response(status=400)
        try:
            await self._take([update])
        except NotAccepted:
            return web.Response(status=503)
        return web.Response()
