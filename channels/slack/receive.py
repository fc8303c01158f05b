"""Receives events over Socket Mode or HTTP: `accept` stores each one, and only then is it acknowledged.

The socket calls `accept` with each envelope; over HTTP bolt calls it first, after it has checked the signature. bolt
has no listeners. Nothing is awaited before the store, so events are stored in the order of their arrival.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from channels.base import NotAccepted, Reached, Sink, Times
from channels.failures import ApiError, Trouble, reason_of
from channels.listener import Listener
from channels.message import ChatKind, InboundKind, InboundMessage, Incoming
from channels.receiver import Receiver
from channels.slack.api import NEVER, SCOPES, Api, lacking
from channels.slack.events import read, unread
from channels.slack.history import conversations
from channels.slack.known import Known
from channels.slack.settings import SlackAccount
from channels.slack.socket import Connection

log = logging.getLogger(__name__)

# Seconds between two measurements of the lag of the event loop.
_WATCH = 0.25
_OPEN = "apps.connections.open"
_APP_TOKEN = (
    "Slack does not accept the app-level token for Socket Mode; Basic Information on the app's page makes one, "
    "with the scope connections:write"
)
_SILENT = (
    "Slack's requests do not arrive: somebody has written, and only the history has it. The Request URLs on the app's "
    "page must lead to channels.slack.listen; until then histories are read from time to time"
)
_NO_SOCKET = "Slack lets this app open no connection; switch on Socket Mode on the app's page, or use mode http"


class SlackReceiver(Receiver):
    """Learns the bot's own id, then receives."""

    sentences: ClassVar = {
        Trouble.TOKEN: "Slack does not accept the bot token; OAuth & Permissions on the app's page has the right one"
    }
    needs_operator: ClassVar = (Trouble.TOKEN, *NEVER)

    def __init__(self, name: str, api: Api, known: Known, section: SlackAccount, times: Times) -> None:
        super().__init__(name, section, times)
        self._api = api
        self._known = known
        self._section = section
        self._connection: Connection | None = None
        self._listener: Listener | None = None
        self._gap = True
        self._reached: list[Reached] = []
        self._lacks = ""
        self._refusing = False
        # Over HTTP: the time of the last request in milliseconds, their number, and why none seem to arrive.
        self._heard, self._requests, self._silent = times.now(), 0, ""
        self._watching: asyncio.TimerHandle | None = None

    async def run(self, sink: Sink) -> None:
        """See `Receiver.run`."""
        self._watch()
        await super().run(sink)

    async def stop(self) -> None:
        """Close all connections; what is being stored is still acknowledged."""
        if self._watching is not None:
            self._watching.cancel()
        if self._listener is not None:
            await self._listener.close()
        if self._connection is not None:
            await self._connection.close()
        self._listener = self._connection = None
        await super().stop()

    async def accept(self, body: dict[str, Any]) -> bool:
        """Store an event; returns False when it could not be stored and must not be acknowledged."""
        self._heard, self._requests, self._silent = self._times.now(), self._requests + 1, ""
        self._report_gap()
        try:
            items: Sequence[Incoming] = read(body, self._known, self._times.now())
        except Exception as error:
            items = [unread(body, self._known, error)]
        if not items:
            return True
        try:
            await self._accept(items)
        except NotAccepted as error:
            # Slack offers an event three times in six minutes; after that only the history has it.
            if not self._refusing:
                log.warning("slack: messages cannot be stored, so none are acknowledged: %s", error)
                self._gap = True
                self._report_gap()
            self._refusing = self._gap = True
            return False
        self._refusing = False
        return True

    def found_in_history(self, items: Sequence[Incoming]) -> None:
        """Check messages from a history. Over HTTP, one to the bot that is newer than the last request, and not just
        sent, proves that requests do not arrive."""
        due = self._times.now() - 1000 * self._section.on_its_way
        for item in items if self._listener is not None else ():
            if not isinstance(item, InboundMessage) or item.kind is not InboundKind.MESSAGE or not item.by_person:
                continue
            to_us = item.mentioned or item.origin.place.kind is ChatKind.DIRECT
            if to_us and self._heard < item.sent_at < due and not self._silent:
                self._silent = _SILENT
                log.warning("slack: %s", _SILENT)

    def _problem(self) -> str:
        return self._silent

    async def _read_histories(self) -> None:
        """Have histories read, because no request came: nothing was said, or requests do not arrive."""
        try:
            self._reached = await self._conversations()
        except ApiError as error:
            self._silent = f"{self._sentence(error)} ({error.reason})"
            return
        self._silent = self._silent if self._silent == _SILENT else ""
        self._gap = True
        self._report_gap()

    def _report_gap(self) -> None:
        """Report that events may have been missed, before the first event after the gap is accepted."""
        if self._gap and self.account:
            self._gap = False
            self._sink.missed(self._name, self.account, self._reached)

    async def _step(self) -> None:
        if not self.account:
            answer = await self._api.call("auth.test", {})
            self._check_scopes(answer.headers.get("X-OAuth-Scopes", ""))
            self._known.meet(answer)
            self.account = self._known.me
            self._sink.can_send(self._name, self.account)
        if self._connection is None or not self._connection.is_open:
            self._reached = await self._conversations()
        await (self._listen() if self._section.mode == "http" else self._connect())

    async def _conversations(self) -> list[Reached]:
        try:
            return await conversations(self._api, self._known)
        except ApiError as error:
            if error.trouble not in NEVER:
                raise
            log.warning("slack: conversations cannot be listed, so new ones are not caught up: %s", error.reason)
            return []

    async def _connect(self) -> None:
        """Receive over a connection until it ends. One that Slack refreshes is closed once the next is established."""
        section = self._section
        try:
            answer = await self._api.call(_OPEN, {}, section.secret("app_token"))
            connection = Connection(
                answer["url"], self._api.client, self.accept, self._connected, section.ping_interval
            )
            try:
                async with asyncio.timeout(section.connect_timeout):
                    await connection.connect()
            except BaseException:
                await connection.close()
                raise
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(Trouble.NETWORK, reason_of(error), code=_OPEN) from None
        except ApiError as error:
            raise ApiError(error.trouble, error.reason, code=_OPEN, retry_after=error.retry_after) from None
        before, self._connection = self._connection, connection
        self._gap = self._gap or before is None or not before.is_open
        self._report_gap()
        if before is not None:
            await before.close()
        await connection.over.wait()
        if not connection.planned:
            self._connection = None
            await connection.close()
            raise ApiError(Trouble.UNKNOWN, "it ended")

    async def _listen(self) -> None:
        """Receive requests until cancelled."""
        listen = self._section.listen
        secret, bolt = self._section.secret("signing_secret"), logging.getLogger("slack_bolt")
        before = _Before(self.accept)
        self._app = AsyncApp(
            client=self._api.client, signing_secret=secret, before_authorize=before, logger=bolt, name="hark"
        )
        listener = Listener(listen, self._request)
        try:
            await listener.start()
        except OSError as error:
            sentence = f"Requests of Slack cannot be taken at {listen.host}:{listen.port}: {error.strerror}"
            await self._wait(sentence, self._pauses.next())
            return
        self._listener = listener
        self._report_gap()
        self._connected(f"http://{listen.host}:{listener.port}{listen.path}")
        while True:
            known = self._requests
            await asyncio.sleep(self._section.silence)
            if self._requests == known:
                await self._read_histories()

    async def _request(self, request: web.Request) -> web.Response:
        headers = request.headers
        at, signature = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
        if not at.isdecimal() or not signature.isascii():  # bolt would fail on these
            return web.Response(status=401)
        try:
            asked = await to_bolt_request(request)
        except (ValueError, TypeError, AttributeError):
            return web.Response(status=400)
        return await to_aiohttp_response(await self._app.async_dispatch(asked))

    def _connected(self, where: str = "a connection of Socket Mode") -> None:
        self._pauses.failures = 0
        self._received(f"receiving as @{self._known.name(self.account)} by {where}{self._lacks}")

    def _check_scopes(self, told: str) -> None:
        """Note which scopes are missing, if Slack tells which are granted."""
        granted = {scope.strip() for scope in told.split(",")}
        if told and not granted.issuperset(SCOPES):
            sentence = lacking(", ".join(sorted({*SCOPES} - granted)))
            log.warning("slack: %s", sentence)
            self._lacks = f"; {sentence}"

    def _sentence(self, error: ApiError) -> str:
        if error.code == _OPEN and error.trouble in (Trouble.TOKEN, Trouble.SCOPE):
            return _APP_TOKEN
        return _NO_SOCKET if error.code == _OPEN and error.trouble is Trouble.REFUSED else super()._sentence(error)

    def _watch(self, due: float = 0.0) -> None:
        """Warn when the event loop is late, because events must be acknowledged within 3 s."""
        loop = asyncio.get_running_loop()
        late = loop.time() - due
        if due and late > self._section.lag_warning:
            log.warning("slack: the event loop was %.1f s late; events must be acknowledged within 3 s", late)
        self._watching = loop.call_later(_WATCH, self._watch, loop.time() + _WATCH)


class _Before(AsyncMiddleware):
    """Passes the body to `accept`. A plain function would not do: bolt fails on malformed events while it collects its
    arguments."""

    def __init__(self, accept: Callable[[dict[str, Any]], Awaitable[bool]]) -> None:
        self._accept = accept

    async def async_process(
        self, *, req: AsyncBoltRequest, resp: BoltResponse, next: Callable[[], Awaitable[BoltResponse]]
    ) -> BoltResponse:
        if req.body.get("type") == "url_verification":
            return await next()
        return BoltResponse(status=200 if await self._accept(req.body) else 500, body="")
