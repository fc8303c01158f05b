"""How events come in: one function stores each of them, and only then is it acknowledged.

`accept` is what a socket calls with each envelope, and over HTTP what bolt calls first, behind the check of the
signature. There are no listeners. Nothing is awaited before the store, so envelopes are accepted in the order in which
they come.
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

# Seconds between two looks at the event loop.
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
    """Learns who the bot is, then receives. `account` is empty until then."""

    sentences: ClassVar = {
        Trouble.TOKEN: "Slack does not accept the bot token; OAuth & Permissions on the app's page has the right one"
    }
    lasting: ClassVar = (Trouble.TOKEN, *NEVER)

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
        # Over HTTP: when a request came last, in milliseconds, how many did, and why none is believed to come.
        self._heard, self._requests, self._silent = times.now(), 0, ""
        self._watching: asyncio.TimerHandle | None = None

    async def run(self, sink: Sink) -> None:
        """See `channels.receiver`."""
        self._watch()
        await super().run(sink)

    async def stop(self) -> None:
        """Take nothing more; what is being stored is answered."""
        if self._watching is not None:
            self._watching.cancel()
        if self._listener is not None:
            await self._listener.close()
        if self._connection is not None:
            await self._connection.close()
        self._listener = self._connection = None
        await super().stop()

    async def accept(self, body: dict[str, Any]) -> bool:
        """Store what came; False when it could not be stored, and is not to be acknowledged."""
        self._heard, self._requests, self._silent = self._times.now(), self._requests + 1, ""
        self._tell_gap()
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
                self._tell_gap()
            self._refusing = self._gap = True
            return False
        self._refusing = False
        return True

    def stands_there(self, items: Sequence[Incoming]) -> None:
        """Messages were found in a history. Over HTTP one that was said to the bot since the last request, and not
        just now, proves that requests do not come."""
        due = self._times.now() - 1000 * self._section.on_its_way
        for item in items if self._listener is not None else ():
            if not isinstance(item, InboundMessage) or item.kind is not InboundKind.MESSAGE or not item.by_person:
                continue
            to_us = item.mentioned or item.origin.place.kind is ChatKind.DIRECT
            if to_us and self._heard < item.sent_at < due and not self._silent:
                self._silent = _SILENT
                log.warning("slack: %s", _SILENT)

    def _wrong(self) -> str:
        return self._silent

    async def _look(self) -> None:
        """Have histories read, because nothing comes: either nothing was said, or requests do not arrive."""
        try:
            self._reached = await self._conversations()
        except ApiError as error:
            self._silent = f"{self._sentence(error)} ({error.reason})"
            return
        self._silent = self._silent if self._silent == _SILENT else ""
        self._gap = True
        self._tell_gap()

    def _tell_gap(self) -> None:
        """Say that something may have been missed, before the first event behind it is accepted."""
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
        """A connection until it ends; one that Slack refreshes is closed when the next one stands."""
        section = self._section
        try:
            answer = await self._api.call(_OPEN, {}, section.secret("app_token"))
            connection = Connection(answer["url"], self._api.client, self.accept, self._stands, section.ping_interval)
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
        self._tell_gap()
        if before is not None:
            await before.close()
        await connection.over.wait()
        if not connection.planned:
            self._connection = None
            await connection.close()
            raise ApiError(Trouble.UNKNOWN, "it ended")

    async def _listen(self) -> None:
        """Take requests until cancelled."""
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
        self._tell_gap()
        self._stands(f"http://{listen.host}:{listener.port}{listen.path}")
        while True:
            known = self._requests
            await asyncio.sleep(self._section.silence)
            if self._requests == known:
                await self._look()

    async def _request(self, request: web.Request) -> web.Response:
        headers = request.headers
        at, signature = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
        if not at.isdecimal() or not signature.isascii():  # bolt would trip over these
            return web.Response(status=401)
        try:
            asked = await to_bolt_request(request)
        except (ValueError, TypeError, AttributeError):
            return web.Response(status=400)
        return await to_aiohttp_response(await self._app.async_dispatch(asked))

    def _stands(self, where: str = "a connection of Socket Mode") -> None:
        self._pauses.failures = 0
        self._received(f"receiving as @{self._known.name(self.account)} by {where}{self._lacks}")

    def _check_scopes(self, told: str) -> None:
        """Say which scopes are missing, where Slack tells which are granted."""
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
        """Look how late the event loop is: what blocks it for seconds costs Slack's acknowledgements."""
        loop = asyncio.get_running_loop()
        late = loop.time() - due
        if due and late > self._section.lag_warning:
            log.warning("slack: the event loop was %.1f s late; events must be acknowledged within 3 s", late)
        self._watching = loop.call_later(_WATCH, self._watch, loop.time() + _WATCH)


class _Before(AsyncMiddleware):
    """Bolt hands a function its arguments by their names, and trips over malformed events while it gathers them."""

    def __init__(self, accept: Callable[[dict[str, Any]], Awaitable[bool]]) -> None:
        self._accept = accept

    async def async_process(
        self, *, req: AsyncBoltRequest, resp: BoltResponse, next: Callable[[], Awaitable[BoltResponse]]
    ) -> BoltResponse:
        if req.body.get("type") == "url_verification":
            return await next()
        return BoltResponse(status=200 if await self._accept(req.body) else 500, body="")
