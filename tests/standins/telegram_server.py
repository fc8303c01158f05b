"""A strict Telegram Bot API on a loopback port, written from the documentation on core.telegram.org.

`async with TelegramServer() as telegram:` serves `telegram.base_url` + token + "/" + method, and files.
People act through the methods of `World`; faults are ordered with `fail_next`, `hold_next` and `fall_silent`.
When the test ends the server checks, unasked, that its client broke no rule and that every fault happened.
"""

import json
from typing import Any

import aiohttp
from aiohttp import web

from tests.standins import telegram_manage, telegram_rich
from tests.standins.faults import Fault, Faults
from tests.standins.platform_server import PlatformServer
from tests.standins.telegram_fields import BY_LOWER_NAME, read_parameters
from tests.standins.telegram_ledger import Call, Json, Refusal, Rule, Violation
from tests.standins.telegram_limits import FloodWaits, too_many
from tests.standins.telegram_methods import METHODS, get_updates
from tests.standins.telegram_updates import Room
from tests.standins.telegram_world import World
from tests.watch import PATIENCE

PROXY_PAGES = {502: "502 Bad Gateway", 504: "504 Gateway Time-out"}
MAX_BODY = 50 * 1024 * 1024


SIGNS = ("sendChatAction", "setMessageReaction")


class TelegramServer(PlatformServer, World):
    """See the module."""

    platform = "the Bot API"

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.port = 0
        self._floods = FloodWaits()
        self._runner: web.AppRunner | None = None
        self._closing = False
        self.serve(Faults(Rule.FAULT_NOT_FIRED))

    # Life

    async def start(self) -> None:
        """Listen; after a stop on the same port as before, with the same state."""
        self._closing = False
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening; a poll that waits ends with 500, calls that are held go on."""
        self._closing = True
        self.faults.release_all()
        if self.poll is not None:
            self.poll.ended = Refusal(500, "Internal Server Error: restart")
            self.poll = None
            self.ledger.changed()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def base_url(self) -> str:
        """The token and "/method" follow."""
        return f"http://127.0.0.1:{self.port}/bot"

    @property
    def base_file_url(self) -> str:
        """The token and "/file_path" follow."""
        return f"http://127.0.0.1:{self.port}/file/bot"

    # What tests read

    def texts(self, chat: Room | int | None = None) -> list[str]:
        """Texts of sendMessage in order, of one chat or of all."""
        chat_id = chat.id if isinstance(chat, Room) else chat
        return [one.text for one in self.sent if one.method == "sendMessage" and chat_id in (None, one.chat_id)]

    def left_open(self) -> list[Violation]:
        """Clicks that nobody has answered."""
        return [Violation(Rule.UNANSWERED_CLICK, query) for query, answered in self.clicks.items() if not answered]

    async def wait_confirmed(self, update: Json, seconds: float = PATIENCE) -> None:
        """Wait until the offset of a poll has passed an update: the bot keeps it from here on."""
        number = update["update_id"]
        await self.ledger.until(lambda: self.confirmed >= number, f"update {number} confirmed", seconds)

    # Faults

    async def bring(self, address: str) -> list[int]:
        """Post what waits to where a proxy leads the webhook, each update until the first that is not taken.

        Returns the statuses; getWebhookInfo tells of the last failure.
        """
        statuses = []
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session:
            while self.queue:
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook_secret} if self.webhook_secret else {}
                async with session.post(address, json=self.queue[0], headers=headers) as answer:
                    statuses.append(answer.status)
                if not 200 <= answer.status < 300:
                    self.webhook["last_error_date"] = int(self.wall())
                    self.webhook["last_error_message"] = f"Wrong response from the webhook: {answer.status}"
                    break
                self.queue.pop(0)
        return statuses

    def fail_next(
        self,
        method: str,
        *,
        status: int = 500,
        description: str = "",
        retry_after: int = 1,
        drop: bool = False,
        times: int = 1,
        after_apply: bool = False,
        chat_id: int | None = None,
    ) -> Fault:
        """Answer the next calls of `method` with an error, or drop the connection, instead of obeying.

        With `after_apply` the call is carried out first, so that its outcome is unknown to the client. 429
        carries `retry_after`, 502 and 504 are pages of the proxy in front, as they are in fact.
        """
        answer: Refusal | int = Refusal(status, description or f"Error {status}")
        if status == 429:
            answer = too_many(retry_after)
        elif status == 500:
            answer = Refusal(500, description or "Internal Server Error")
        elif status in PROXY_PAGES:
            answer = status
        return self.faults.order(method, answer=answer, drop=drop, times=times, after_apply=after_apply, place=chat_id)

    # HTTP

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._closing:
            return _drop(request)
        path = request.path
        is_file = path.startswith("/file/bot")
        token, slash, rest = path.removeprefix("/file").removeprefix("/bot").partition("/")
        if not slash or not path.startswith(("/bot", "/file/bot")):
            return _error(Refusal(404, "Not Found"))
        if token != self.token:
            return _error(Refusal(401, "Unauthorized"))
        if is_file:
            return self._download(rest)
        if request.method not in ("GET", "POST"):
            return _error(Refusal(405, "Method Not Allowed"))
        try:
            return await self._call(request, rest)
        except Refusal as refusal:
            if refusal.rule is not None:
                self.ledger.complain(refusal.rule, f"{rest}: {refusal.description}")
            return _error(refusal)
        finally:
            self.ledger.changed()

    def _download(self, path: str) -> web.Response:
        self.ledger.calls.append(Call("file", f"/file/bot<token>/{path}", {}, self.clock()))
        for known, data in self.files.values():
            if known == path:
                return web.Response(body=data, content_type="application/octet-stream")
        return _error(Refusal(404, "Not Found: file not found"))

    async def _call(self, request: web.Request, asked: str) -> web.StreamResponse:
        method = BY_LOWER_NAME.get(asked.lower())
        given = await _given(request)
        url = request.path_qs.replace(f"/bot{self.token}/", "/bot<token>/")
        self.ledger.calls.append(Call(method or asked, url, given, self.clock()))
        if method is None:
            raise Refusal(404, "Not Found: method not found", rule=Rule.UNKNOWN_METHOD)
        params = read_parameters(method, given, self.ledger.complain)
        key = str(params.get("chat_id", method))
        own = f"{key} {method}" if method in SIGNS else key  # too many signs are no reason to refuse a message
        early = max(self._floods.remaining(one, self.clock()) for one in (key, own))
        if early:
            self.ledger.complain(Rule.EARLY, f"{method} {early} s before retry_after of {key} has ended")
            raise too_many(early)
        try:
            return await self._obey(request, method, params)
        except Refusal as refusal:
            if refusal.code == 429 and refusal.parameters:
                self._floods.start(own, refusal.parameters["retry_after"], self.clock())
            raise

    async def _obey(self, request: web.Request, method: str, params: Json) -> web.StreamResponse:
        fault = self.faults.take(method, params.get("chat_id")) or self.faults.silence()
        if fault is None:
            result = await self.apply(request, method, params)
            fault = self.faults.silence()  # it may have begun while a poll waited
            if fault is None:
                return _ok(result)
        elif fault.after_apply and (fault.name or method != "getUpdates"):
            result = None
            with fault.spoiling(Refusal):
                result = await self.apply(request, method, params)
        if fault.gate is not None:
            self.ledger.changed()
            fault.reached.set()
            await fault.gate.wait()
        if fault.drop or fault.answer is not None:
            return _fail(request, fault)
        return _ok(result if fault.after_apply else await self.apply(request, method, params))

    async def apply(self, request: web.Request, method: str, params: Json) -> object:
        """Carry out a call that is allowed."""
        if method == "getUpdates":
            return await get_updates(self, params, lambda: _listens(request))
        return (METHODS | telegram_rich.METHODS | telegram_manage.METHODS)[method](self, params)


def _listens(request: web.Request) -> bool:
    transport = request.transport
    return transport is not None and not transport.is_closing()


async def _given(request: web.Request) -> Json:
    """Parameters from the query string and from a body, which is JSON or a form."""
    given: Json = dict(request.query)
    if request.content_type == "application/json":
        return given | (await request.json() if request.can_read_body else {})
    return given | dict(await request.post())


def _ok(result: object) -> web.Response:
    return _json(200, {"ok": True, "result": result})


def _error(refusal: Refusal) -> web.Response:
    response = _json(refusal.code, refusal.body())
    if refusal.parameters and "retry_after" in refusal.parameters:
        response.headers["Retry-After"] = str(refusal.parameters["retry_after"])
    return response


def _drop(request: web.Request) -> web.Response:
    """Close the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def _fail(request: web.Request, fault: Fault) -> web.Response:
    """The answer of a fault."""
    if fault.drop:
        return _drop(request)
    if isinstance(fault.answer, Refusal):
        raise fault.answer
    assert fault.answer is not None
    title = PROXY_PAGES[fault.answer]
    page = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n"
        f"<center><h1>{title}</h1></center>\r\n</body>\r\n</html>\r\n"
    )
    return web.Response(status=fault.answer, text=page, content_type="text/html")


def _json(status: int, body: Json) -> web.Response:
    text = json.dumps(body)
    return web.Response(status=status, text=text, content_type="application/json")
