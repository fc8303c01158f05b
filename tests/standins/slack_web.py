"""The HTTP side of the Slack stand-in: the Web API, uploads, downloads, response_urls and the handshake of sockets."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.standins import slack_shapes as shapes
from tests.standins.slack_arguments import METHODS, read_arguments
from tests.standins.slack_delivery import Delivering, Envelope, State
from tests.standins.slack_faults import RateLimits, Waits
from tests.standins.slack_ledger import Call, Json, Refusal, Rule, too_many
from tests.standins.slack_methods import WRITING, answer, respond
from tests.standins.slack_reading import READING
from tests.standins.slack_sockets import Sockets

APPLY = {**READING, **WRITING}
MAX_BODY = 50 * 1024 * 1024
SIGN_IN = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>"
ERROR_PAGE = "<!DOCTYPE html><html><head><title>Server Error | Slack</title></head><body>Oops</body></html>"


class Serving(Delivering):
    """Routes and what they do; `limits` is off until a test sets a `RateLimits`."""

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.bot_token, self.app_token = shapes.BOT_TOKEN, shapes.APP_TOKEN
        self.limits: RateLimits | None = None
        self.sockets = Sockets(self)
        self.transport = self.sockets
        self.port = 0
        self._waits = Waits()
        self._closing = False

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def application(self) -> web.Application:
        """All routes."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_get("/link/", self._connect)
        app.router.add_post("/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/{path:.*}", self._download)
        app.router.add_post("/{kind:commands|actions}/{rest:.*}", self._respond)
        app.router.add_route("*", "/api/{method:.*}", self._api)
        return app

    # The Web API

    async def _api(self, request: web.Request) -> web.StreamResponse:
        if self._closing:
            return _drop(request)
        method = request.match_info["method"]
        try:
            return await self._call(request, method)
        except Refusal as refusal:
            return self._refused(method, refusal)
        finally:
            self.ledger.changed()

    def _refused(self, method: str, refusal: Refusal) -> web.Response:
        if refusal.rule is not None:
            self.ledger.complain(refusal.rule, f"{method}: {refusal.error} {' '.join(refusal.messages)}")
        body = refusal.body()
        headers = {}
        if refusal.status == 429:
            headers["Retry-After"] = str(body.pop("retry_after"))
        return web.json_response(body, status=refusal.status, headers=headers)

    async def _call(self, request: web.Request, method: str) -> web.StreamResponse:
        given, warning = await self._given(request, method)
        self.ledger.calls.append(Call(method, request.path_qs, given, self.clock()))
        if method not in METHODS:
            raise Refusal("unknown_method", rule=Rule.UNKNOWN_METHOD, req_method=method)
        self._authorize(request, method)
        args = read_arguments(method, given, self.ledger.complain)
        key = (method, str(args.get("channel", "")))
        if early := self._waits.remaining(key, self.clock()):
            self.ledger.complain(Rule.EARLY, f"{method} {early} s before its Retry-After has ended")
            raise too_many(early)
        try:
            return await self._obey(request, method, lambda: self._apply(method, args, warning), args)
        except Refusal as refusal:
            if refusal.retry_after:
                self._waits.start(key, refusal.retry_after, self.clock())
            raise

    async def _given(self, request: web.Request, method: str) -> tuple[Json, str]:
        """Arguments from query and body, and the warning that the body's type earns."""
        given: Json = dict(request.query)
        if request.method not in ("GET", "POST") or not request.can_read_body:
            return given, ""
        charset = "charset" in request.headers.get("Content-Type", "").lower()
        if request.content_type == "application/json":
            try:
                body = await request.json()
            except ValueError:
                body = None
            if not isinstance(body, dict):
                raise Refusal("invalid_json", rule=Rule.BAD_VALUE)
            if method in METHODS and not METHODS[method].takes_json:
                self.ledger.complain(Rule.BAD_VALUE, f"{method} does not read JSON")
                return given, ""
            return given | body, "" if charset else "missing_charset"
        if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
            return given | dict(await request.post()), "superfluous_charset" if charset else ""
        raise Refusal("invalid_form_data", rule=Rule.BAD_VALUE)

    def _authorize(self, request: web.Request, method: str) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            raise Refusal("not_authed", rule=Rule.BAD_TOKEN)
        if token not in (self.bot_token, self.app_token):
            raise Refusal("invalid_auth", rule=Rule.BAD_TOKEN)
        wanted = METHODS[method]
        if method != "auth.test" and not token.startswith(wanted.token):
            raise Refusal("not_allowed_token_type", rule=Rule.BAD_TOKEN)
        if wanted.token == "xoxb" and wanted.scope not in (None, "history", "read"):
            self.need(str(wanted.scope))

    async def _obey(
        self, request: web.Request, name: str, apply: Callable[[], web.Response], args: Json
    ) -> web.StreamResponse:
        fault = self.faults.take(name, args.get("channel") or args.get("channel_id")) or self.faults.silence()
        if fault is None:
            return apply()
        result = None
        if fault.after_apply:
            with fault.spoiling(Refusal):
                result = apply()
        if fault.gate is not None:
            self.ledger.changed()
            fault.reached.set()
            await fault.gate.wait()
        if fault.drop:
            return _drop(request)
        if isinstance(fault.answer, Refusal):
            raise fault.answer
        if fault.answer is not None:
            return web.Response(status=fault.answer, text=ERROR_PAGE, content_type="text/html")
        return result if result is not None else apply()

    def _apply(self, method: str, args: Json, warning: str) -> web.Response:
        if self.limits is not None:
            self.limits.admit(method, args, self.clock())
        if method == "apps.connections.open":
            body: Json = {"ok": True, "url": self.sockets.ticket()}
        else:
            body = {"ok": True, **APPLY[method](self, args)}
        if warning:
            body["warning"] = warning
            body["response_metadata"] = body.get("response_metadata", {}) | {"warnings": [warning]}
        return web.json_response(body, headers={"X-OAuth-Scopes": ",".join(sorted(self.scopes))})

    # Beside the Web API

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        fault = self.faults.take("connect")
        if fault is not None and fault.gate is not None:
            fault.reached.set()
            await fault.gate.wait()
        elif fault is not None:
            if fault.drop or not isinstance(fault.answer, int):
                return _drop(request)
            return web.Response(status=fault.answer, text=ERROR_PAGE, content_type="text/html")
        return await self.sockets.accept(request)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["file"])
        if request.content_type == "multipart/form-data":
            parts = [part for part in (await request.post()).values() if isinstance(part, web.FileField)]
            data = parts[0].file.read() if parts else b""
        else:
            data = await request.read()
        self.ledger.calls.append(Call("upload", request.path_qs, {"size": len(data)}, self.clock()))

        def keep() -> web.Response:
            if file is None:
                return web.Response(status=404)
            if len(data) != file.body["size"]:
                self.ledger.complain(Rule.BAD_VALUE, f"upload of {len(data)} bytes, {file.body['size']} announced")
                return web.Response(status=400, text="length mismatch")
            file.data = data
            return web.Response(text=f"OK - {len(data)}")

        try:
            return await self._obey(request, "upload", keep, {})
        except Refusal as refusal:
            return self._refused("upload", refusal)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        self.ledger.calls.append(Call("download", request.path_qs, {}, self.clock()))
        file = self.files.get(request.match_info["path"].split("/")[0].removeprefix(f"{shapes.TEAM}-"))

        def serve() -> web.Response:
            allowed = request.headers.get("Authorization") == f"Bearer {self.bot_token}"
            if not allowed or "files:read" not in self.scopes:
                if not allowed:
                    self.ledger.complain(Rule.PUBLIC_DOWNLOAD, request.path)
                return web.Response(text=SIGN_IN, content_type="text/html")
            if file is None or file.data is None:
                return web.Response(status=404, text=ERROR_PAGE, content_type="text/html")
            return web.Response(body=file.data, content_type=file.body["mimetype"])

        try:
            return await self._obey(request, "download", serve, {})
        except Refusal as refusal:
            return self._refused("download", refusal)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        key = request.path.removeprefix("/")
        try:
            body = await request.json()
        except ValueError:
            body = {}
        self.ledger.calls.append(Call("response_url", request.path_qs, body, self.clock()))

        def apply() -> web.Response:
            respond(self, key, body)
            return web.Response(text="ok")

        try:
            return await self._obey(request, "response_url", apply, body)
        except Refusal as refusal:
            if refusal.rule is not None:
                self.ledger.complain(refusal.rule, f"response_url: {refusal.error}")
            return web.Response(status=refusal.status if refusal.status > 200 else 400, text=refusal.error)
        finally:
            self.ledger.changed()

    def acknowledged(self, envelope: Envelope, answer_: Any = None) -> None:
        """What an app says with the acknowledgement of a command is said to the person."""
        if envelope.state is State.LOST:
            return
        super().acknowledged(envelope, answer_)
        if envelope.kind == "slash_commands" and isinstance(answer_, dict) and answer_:
            url = envelope.payload["response_url"].removeprefix(f"{self.origin}/")
            try:
                answer(self, self.response_urls[url], answer_, "ack")
            except Refusal as refusal:
                self.ledger.complain(refusal.rule or Rule.BAD_VALUE, f"ack of {envelope.name}: {refusal.error}")


def _drop(request: web.Request) -> web.Response:
    """Close the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()
