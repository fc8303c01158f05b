"""A strict Discord on loopback ports (REST v10, gateway v10, attachments), written from docs.discord.com.

`async with DiscordServer() as discord:` serves `discord.base_url` ("/users/@me" follows), `discord.gateway_url` and,
on a port of its own, the links of attachments. Ids are strings in what it gives back; places are Discord's own objects
(guilds, channels, messages as dicts), people are `Person`. Where to find what: places and permissions `World`, what
people do `People`, commands and buttons `Interactions`, connections `Gateway`, faults `Faults`.
When the test ends the server checks, unasked, that its client broke no rule and that every fault happened.

Stricter than Discord: undocumented fields are refused (Discord passes them over), and so are bodies where none belongs.

Not modelled: routes, fields, components and types of answers that Hark never sends (they are refused as undocumented
until somebody adds them), voice, several shards, user-installed applications, group DMs, automatic moderation, slow
mode, read states, archiving of threads by time, THREAD_LIST_SYNC and THREAD_MEMBERS_UPDATE, the limits of IDENTIFY (one
in five seconds, 1000 a day), sessions that time out by themselves (they end by `forget_sessions`, op 9 or the
client's 1000 or 1001), permissions of people to use commands. Limits of requests are off until
`discord.limiter.limits` is set.

What the documentation leaves open was decided so, where marked * as Discord's staff or several libraries report:
lengths are code points*; mentions in code ping nobody*; nor does an answer that was deferred, when it is filled*; who
is not pinged is not in `mentions`*; the nonce of a deleted message counts no longer; forwarded content needs the
message content intent as well.
"""

import json
import re
from collections.abc import Awaitable
from typing import Any

from aiohttp import BodyPartReader, web

from tests.standins import discord_channels, discord_commands
from tests.standins.discord_faults import PROXY_PAGES, answer_of, meets, pattern_of
from tests.standins.discord_fields import check
from tests.standins.discord_files import File
from tests.standins.discord_interactions import Interactions
from tests.standins.discord_ledger import Call, Pings, Refusal, Rule, Violation, form
from tests.standins.discord_limits import INVALID_REQUESTS, Limiter
from tests.standins.discord_routes import Asked, Route, find, is_known
from tests.standins.discord_world import Place, id_of
from tests.standins.faults import Fault, Faults
from tests.standins.platform_server import PlatformServer
from tests.watch import PATIENCE

ROOT = "/api/v10"
AGENT = re.compile(r"DiscordBot \(\S+, ?[^)]+\).*|DiscordBot \(\S+ [^)]+\).*")
MAX_BODY = 25 * 1024 * 1024
METHODS = (discord_channels, discord_commands)  # imported for the routes that they put into the table


class DiscordServer(PlatformServer, Interactions):
    """See the module. `faults` orders what goes wrong, `limiter.limits` switches rate limits on."""

    platform = "Discord"

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.limiter = Limiter()
        self.files_port = 0
        self._runners: list[web.AppRunner] = []
        self._closing = False
        self.serve(Faults(Rule.FAULT_NOT_FIRED, meets))

    # Life

    async def start(self) -> None:
        """Listen; after a stop on the same ports as before, with the same state."""
        self._closing = False
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self.port = await self._listen(app, self.port)
        files = web.Application()
        files.router.add_get("/{path:.*}", self._download)
        self.files_port = await self._listen(files, self.files_port)
        self.files.base = f"http://127.0.0.1:{self.files_port}"

    async def _listen(self, app: web.Application, port: int) -> int:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        self._runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        found: int = runner.addresses[0][1]
        return found

    async def stop(self) -> None:
        """Stop listening; calls that are held go on, connections of the gateway are cut."""
        self._closing = True
        self.faults.release_all()
        self.gateway_silent = False
        self.close_gateway(1006)
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    @property
    def base_url(self) -> str:
        """The REST root as discord.py's `Route.BASE` takes it."""
        return f"http://127.0.0.1:{self.port}{ROOT}"

    # What tests read

    def texts(self, channel: Place | None = None) -> list[str]:
        """What the bot has said, in order, in one channel or in all; answers to interactions included."""
        wanted = None if channel is None else id_of(channel)
        said = ("send", "respond", "follow_up")
        return [one.text for one in self.sent if one.method in said and wanted in (None, one.channel_id)]

    def calls(self, route: str) -> list[Call]:
        """Requests of a route, named as for `fail_next`, refused ones included."""
        wanted = pattern_of(route)
        return [call for call in self.ledger.calls if wanted.fullmatch(call.route)]

    def pinged(self) -> list[Pings]:
        """Whom the bot's messages have notified, a `Pings` for each message that notified anybody."""
        return [one.pings for one in self.sent if one.pings]

    def left_open(self) -> list[Violation]:
        return self.unanswered()

    def fail_next(
        self,
        name: str,
        *,
        drop: bool = False,
        times: int = 1,
        after_apply: bool = False,
        status: int = 500,
        **more: Any,
    ) -> Fault:
        """Answer the next calls of a route with an error (see `answer_of`), or drop their connection.

        With `after_apply` the call is carried out first, so that its outcome is unknown to the client.
        """
        answer = answer_of(status, **more)
        return self.faults.order(self.named(name), answer=answer, drop=drop, times=times, after_apply=after_apply)

    def named(self, name: str) -> str:
        pattern_of(name)
        return name

    def turn_over(self, channel: Place) -> None:
        """The test knows that the answer is complete: typing before a person writes is a violation."""
        self.ledger.timeline.append((id_of(channel), "over"))

    async def wait_connected(self, seconds: float = PATIENCE) -> None:
        """Wait until a session is served by a connection."""
        await self.ledger.until(lambda: self.connected, "a gateway session", seconds)

    # HTTP

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._closing:
            return _drop(request)
        if request.path.startswith("/gateway") and not request.path.startswith(ROOT):
            return await self._honestly(self.serve_gateway(request))
        try:
            return await self._honestly(self._call(request))
        except Refusal as refusal:
            if refusal.rule is not None:
                self.ledger.complain(refusal.rule, f"{request.method} {request.path}: {refusal}")
            self.limiter.count(refusal.status, refusal.headers)
            return _json(refusal.status, refusal.body, refusal.headers)
        finally:
            self.ledger.changed()

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """An attachment, from a host that must not get the bot's token."""
        if "Authorization" in request.headers:
            self.ledger.complain(Rule.TOKEN_LEAK, f"GET {request.path} with an Authorization header")
        fault = self.faults.take(f"GET {request.path}")
        if fault is not None and fault.gate is not None:
            fault.reached.set()
            await fault.gate.wait()
        if fault is not None and fault.drop:
            return _drop(request)
        if fault is not None and fault.answer is not None:
            return _page(fault.answer if isinstance(fault.answer, int) else fault.answer.status)
        return await self.files.serve(request)

    async def _honestly(self, work: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        """A fault of the stand-in itself is no answer that a client has to bear in silence."""
        try:
            return await work
        except (Refusal, ConnectionError):
            raise
        except Exception as error:
            self.ledger.complain(Rule.STAND_IN, f"{error!r}")
            raise

    async def _call(self, request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path.removeprefix(ROOT)
        found = find(request.method, path) if request.rel_url.raw_path.startswith(ROOT) else None
        body, files = await _body(request)
        self.ledger.calls.append(Call(f"{request.method} {path}", dict(request.query), body, self.clock()))
        if found is None:
            known = is_known(path)
            words = "405: Method Not Allowed" if known else "404: Not Found"
            raise Refusal(405 if known else 404, 0, words, rule=Rule.UNKNOWN_ROUTE)
        route, names = found
        if self.limiter.invalid >= INVALID_REQUESTS:
            return _page(429)
        self._admit(request, route)
        resource = _resource(route, names)
        headers = self.limiter.admit(route.name, resource, self.clock(), self.wall(), bound=not route.open)
        return await self._carry_out(request, route, Asked(names, dict(request.query), body, files), resource, headers)

    def _admit(self, request: web.Request, route: Route) -> None:
        """Who calls, and how."""
        given = request.headers.get("Authorization")
        if given != f"Bot {self.token}" and not (route.open and given is None):
            raise Refusal(401, 0, "401: Unauthorized", rule=Rule.TOKEN)
        agent = request.headers.get("User-Agent", "")
        if not (AGENT.fullmatch(agent) or (route.open and agent)):
            raise Refusal(403, 40333, "internal network error", rule=Rule.HEADERS)

    async def _carry_out(
        self, request: web.Request, route: Route, asked: Asked, resource: str, headers: dict[str, str]
    ) -> web.StreamResponse:
        call = f"{request.method} {request.rel_url.raw_path.removeprefix(ROOT)}"
        fault = self.faults.take(call) or self.faults.silence()
        if fault is None:
            return _answer(self._apply(route, asked), headers)
        result = None
        if fault.after_apply:
            with fault.spoiling(Refusal):
                result = self._apply(route, asked)
        if fault.gate is not None:
            fault.reached.set()
            self.ledger.changed()
            await fault.gate.wait()
        if fault.drop:
            return _drop(request)
        if isinstance(fault.answer, Refusal):
            if fault.answer.status == 429 and fault.answer.headers.get("X-RateLimit-Scope") != "shared":
                self.limiter.close(route.name, resource, self.clock() + fault.answer.body["retry_after"])
            raise fault.answer
        if fault.answer is not None:
            return _page(fault.answer)
        return _answer(result if fault.after_apply else self._apply(route, asked), headers)

    def _apply(self, route: Route, asked: Asked) -> object:
        query = route.read_query(asked.query)
        if route.body is not None:
            check({} if asked.body is None else asked.body, route.body)
        elif asked.body:
            raise form("", "UNKNOWN_FIELD", "no body belongs here", rule=Rule.UNKNOWN_FIELD)
        if asked.files and not route.files:
            raise form("", "UNKNOWN_FIELD", "no files belong here", rule=Rule.UNKNOWN_FIELD)
        body = {} if asked.body is None else asked.body
        return route.call(self, Asked(asked.path, query, body, asked.files))


def _resource(route: Route, names: dict[str, str]) -> str:
    """The top-level resources of a path: limits count for each of them by itself."""
    if "token" in names:
        return f"{names.get('application') or names['interaction']}+{names['token']}"
    return names.get("channel") or names.get("guild") or ""


async def _body(request: web.Request) -> tuple[Any, dict[str, File]]:
    """The JSON of a body, alone or as `payload_json` beside files, and the files by their number."""
    if not request.can_read_body:
        return None, {}
    if request.content_type == "application/json":
        raw = await request.read()
        return (_load(raw) if raw else None), {}
    if request.content_type != "multipart/form-data":
        words = "Expected \"Content-Type\" header to be one of {'application/json'}."
        raise form("", "CONTENT_TYPE_INVALID", words, rule=Rule.HEADERS)
    body: Any = None
    files: dict[str, File] = {}
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        number = re.fullmatch(r"files\[(\d+)\]", part.name or "")
        data = bytes(await part.read())
        if part.name == "payload_json":
            body = _load(data)
        elif number is None:
            raise form(part.name or "", "UNKNOWN_FIELD", "a part is payload_json or files[n]", rule=Rule.UNKNOWN_FIELD)
        else:
            kind = _guess(part.filename or "file", part.headers.get("Content-Type"))
            files[number[1]] = File(part.filename or "file", data, kind)
    return body, files


def _guess(name: str, given: str | None) -> str:
    """Discord looks at the file; here its name must do."""
    kinds = {"png": "image/png", "txt": "text/plain; charset=utf-8", "ogg": "audio/ogg", "json": "application/json"}
    return kinds.get(name.rpartition(".")[2], given or "application/octet-stream")


def _load(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        raise Refusal(400, 50109, "The request body contains invalid JSON.", rule=Rule.FORM) from None


def _answer(result: object, headers: dict[str, str]) -> web.Response:
    if result is None:
        return web.Response(status=204, headers=headers | {"Via": "1.1 google"})
    return _json(200, result, headers)


def _json(status: int, body: object, headers: dict[str, str]) -> web.Response:
    """discord.py takes an answer for the API's own when its content type has no charset and 429 has passed `Via`."""
    all_headers = headers | {"Content-Type": "application/json", "Via": "1.1 google"}
    return web.Response(status=status, body=json.dumps(body).encode(), headers=all_headers)


def _drop(request: web.Request) -> web.Response:
    """Close the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def _page(status: int) -> web.Response:
    """What the proxy in front answers by itself; 429 is its ban."""
    title = f"{status} {PROXY_PAGES.get(status, 'Error')}"
    words = (
        "error code: 1015" if status == 429 else f"<html><head><title>{title}</title></head><body>{title}</body></html>"
    )
    return web.Response(status=status, text=words, content_type="text/html")
