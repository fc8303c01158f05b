"""How events come in: one function stores each of them, and only then is it acknowledged.

`accept` is what bolt calls first, behind the check of the signature. It stores the event and answers 200, or 500, by
which nothing is acknowledged, over HTTP as well as by a socket. There are no listeners. Nothing is awaited before the
store, so the order in which envelopes come is the order in which they are accepted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.request import SocketModeRequest

from channels.base import Health, NotAccepted, Reached, Sink, Times
from channels.failures import ApiError, Trouble, reason_of
from channels.listener import Listener
from channels.message import Incoming
from channels.slack.api import EVENT_SCOPES, METHODS, NEVER, WHERE_SCOPES, Api
from channels.slack.events import Me, read, read_me, unread
from channels.slack.history import conversations
from channels.slack.known import Known
from channels.slack.settings import SlackSettings
from channels.slack.socket import Connection
from channels.standing import Standing

log = logging.getLogger(__name__)

_WATCH = 0.25
"""Seconds between two looks at the event loop."""
_SENTENCES = {
    Trouble.NETWORK: "Slack cannot be reached",
    Trouble.FAILED: "Slack answers that something is wrong on its side",
    Trouble.UNKNOWN: "The connection to Slack broke",
    Trouble.FLOOD: "Slack asks to wait",
    Trouble.TOKEN: "Slack does not accept the bot token; OAuth & Permissions on the app's page has the right one",
}
_OPEN = "apps.connections.open"
_APP_TOKEN = (
    "Slack does not accept the app-level token for Socket Mode; Basic Information on the app's page makes one, "
    "with the scope connections:write"
)
_NO_SOCKET = "Slack lets this app open no connection; switch on Socket Mode on the app's page, or use mode http"


class Receiver:
    """Learns who the bot is, then receives. `me` is None until then."""

    def __init__(self, api: Api, known: Known, settings: SlackSettings, times: Times) -> None:
        self.me: Me | None = None
        self._api = api
        self._known = known
        self._settings = settings
        self._times = times
        self._standing = Standing("slack", times)
        self._pauses = settings.pauses()
        self._connection: Connection | None = None
        self._listener: Listener | None = None
        self._gap = True
        self._reached: list[Reached] = []
        self._refusing = False
        self._watching: asyncio.TimerHandle | None = None

    async def run(self, sink: Sink) -> None:
        """Receive until cancelled. Once only."""
        self._sink = sink
        self._standing.begin()
        self._watch()
        while True:
            try:
                await self._step()
            except ApiError as error:
                await self._pause(error)
            except Exception as error:
                log.exception("slack: unexpected error while connecting")
                await self._wait(f"Unexpected error: {type(error).__name__}", self._pauses.next())

    async def stop(self) -> None:
        """Take nothing more; what is being stored is answered."""
        if self._watching is not None:
            self._watching.cancel()
        if self._listener is not None:
            await self._listener.close()
        if self._connection is not None:
            await self._connection.close()
        self._listener = self._connection = None
        self._standing.stop()

    def health(self) -> Health:
        """READY only while a connection lives, or while requests are taken."""
        return self._standing.health

    async def accept(self, body: dict[str, Any]) -> BoltResponse:
        """Store what came and answer 200; 500 when it could not be stored."""
        assert self.me is not None
        self._tell_gap()
        try:
            items = read(body, self.me, self._known, self._times.now())
        except Exception as error:
            items = [unread(body, self.me, error)]
        return BoltResponse(status=200 if not items or await self._store(items) else 500, body="")

    async def _store(self, items: list[Incoming]) -> bool:
        """Whether it could be stored."""
        try:
            await self._sink.accept(items, None)
        except Exception as error:
            if not isinstance(error, NotAccepted):
                log.exception("slack: unexpected error of the store")
            # Slack offers an event three times in six minutes; after that only the history has it.
            if not self._refusing:
                log.warning("slack: messages cannot be stored, so none are acknowledged: %s", error)
                self._gap = True
                self._tell_gap()
            self._refusing = self._gap = True
            return False
        self._refusing = False
        return True

    def _tell_gap(self) -> None:
        """Say that something may have been missed, before the first event behind it is accepted."""
        if self._gap and self.me is not None:
            self._gap = False
            self._sink.missed("slack", self.me.id, self._reached)

    async def _step(self) -> None:
        if self.me is None:
            answer = await self._api.call("auth.test", {})
            self._check_scopes(answer.headers.get("X-OAuth-Scopes", ""))
            self._app = AsyncApp(
                client=self._api.client,
                signing_secret=self._settings.signing_secret,
                before_authorize=_Before(self.accept),
                logger=logging.getLogger("slack_bolt"),
                name="hark",
            )
            self.me = read_me(answer)
            self._sink.can_send("slack", self.me.id)
        if self._connection is None or not self._connection.is_open:
            self._reached = await self._conversations(self.me)
        await (self._listen() if self._settings.listen is not None else self._connect())

    async def _conversations(self, me: Me) -> list[Reached]:
        try:
            return await conversations(self._api, me, self._known)
        except ApiError as error:
            if error.trouble not in NEVER:
                raise
            log.warning("slack: conversations cannot be listed, so new ones are not caught up: %s", error.reason)
            return []

    async def _connect(self) -> None:
        """A connection until it ends; one that Slack refreshes is closed when the next one stands."""
        settings = self._settings
        try:
            answer = await self._api.call(_OPEN, {}, settings.app_token)
            connection = Connection(
                answer["url"], self._api.client, self._answer, self._received, settings.ping_interval
            )
            try:
                async with asyncio.timeout(settings.connect_timeout):
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
        assert self._settings.listen is not None
        listen = self._settings.listen
        listener = Listener(listen, self._request)
        try:
            await listener.start()
        except OSError as error:
            sentence = f"Requests of Slack cannot be taken at {listen.host}:{listen.port}: {error.strerror}"
            await self._wait(sentence, self._pauses.next())
            return
        self._listener = listener
        self._tell_gap()
        self._received(f"http://{listen.host}:{listener.port}{listen.path}")
        await asyncio.Event().wait()

    async def _answer(self, request: SocketModeRequest) -> BoltResponse:
        try:
            asked = AsyncBoltRequest(mode="socket_mode", body=request.payload)
        except Exception:  # bolt trips over what is malformed enough; it is kept unread like the rest
            return await self.accept(request.payload)
        return await self._app.async_dispatch(asked)

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

    def _received(self, where: str = "a connection of Socket Mode") -> None:
        assert self.me is not None
        self._pauses.failures = 0
        if self._standing.receive(f"receiving as @{self.me.name} by {where}"):
            self._sink.can_send("slack", self.me.id)

    def _check_scopes(self, told: str) -> None:
        """Say which scopes are missing, a line each, where Slack tells which are granted."""
        granted = {scope.strip() for scope in told.split(",")}
        wanted = {scope for scopes in METHODS.values() for scope in scopes}.union(EVENT_SCOPES)
        for scope in sorted(wanted - granted) if told else ():
            log.warning("slack: the app lacks the scope %s; %s", scope, WHERE_SCOPES)

    async def _pause(self, error: ApiError) -> None:
        sentence = _SENTENCES.get(error.trouble, "Slack cannot be used")
        if error.code == _OPEN and error.trouble in (Trouble.TOKEN, Trouble.SCOPE):
            sentence = _APP_TOKEN
        elif error.code == _OPEN and error.trouble is Trouble.REFUSED:
            sentence = _NO_SOCKET
        seconds = self._pauses.next()
        if error.trouble in (Trouble.TOKEN, *NEVER):
            seconds = min(5 * seconds, self._settings.slow_retry)
        await self._wait(f"{sentence} ({error.reason})", error.retry_after or seconds)

    async def _wait(self, sentence: str, seconds: float) -> None:
        """Say it once, until something is received again, and wait."""
        self._standing.fail(sentence)
        await self._times.sleep(seconds)

    def _watch(self, due: float = 0.0) -> None:
        """Look how late the event loop is: what blocks it for seconds costs Slack's acknowledgements."""
        loop = asyncio.get_running_loop()
        late = loop.time() - due
        if due and late > self._settings.lag_warning:
            log.warning("slack: the event loop was %.1f s late; events must be acknowledged within 3 s", late)
        self._watching = loop.call_later(_WATCH, self._watch, loop.time() + _WATCH)


class _Before(AsyncMiddleware):
    """Bolt hands a function its arguments by their names, and trips over malformed events while it gathers them."""

    def __init__(self, accept: Callable[[dict[str, Any]], Awaitable[BoltResponse]]) -> None:
        self._accept = accept

    async def async_process(
        self, *, req: AsyncBoltRequest, resp: BoltResponse, next: Callable[[], Awaitable[BoltResponse]]
    ) -> BoltResponse:
        return await (next() if req.body.get("type") == "url_verification" else self._accept(req.body))
