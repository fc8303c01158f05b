"""Who may call: decided before a route sees the request (the rules are those of `docs/http.md`).

With a token: whoever sends it, as an owner. Without one: programs of this machine, as persons with sessions of their
own, but no web page that a browser on it shows; therefore loopback names only (against DNS rebinding), JSON bodies and
no foreign origin. A Unix socket lets everyone in who can open it, as an owner.
"""

import hmac
import re
from enum import Enum

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.gateway.answers import HttpProblem

log = structlog.get_logger()

_LOOPBACK_HOST = re.compile(rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_OWN_SITES = (b"none", b"same-origin")
_TOKEN_HINT = "Send the header `Authorization: Bearer …` with the value of gateway.token."
_LOCAL_HINT = "Without gateway.token only programs of this machine are answered; set a token for anything else."


class Caller(Enum):
    """Who sends a request: an owner over the socket, an owner with the token, or a person without it."""

    SOCKET = "socket"
    TOKEN = "token"
    PERSON = "person"

    @property
    def sessions(self) -> str:
        """The prefix of the keys of all sessions that the caller may see."""
        return "agent:main:http:direct:" if self is Caller.PERSON else ""

    def check_session(self, session_key: str) -> None:
        """Raises HttpProblem when the caller may not see this session."""
        if not session_key.startswith(self.sessions):
            raise not_open(f"Without a token only the sessions {self.sessions}* are open.")


def caller(request: Request) -> Caller:
    """Who sends a request, as the guard of its listener has found."""
    found: Caller = request.scope["hark.caller"]
    return found


def only_owners(request: Request, message: str) -> None:
    """Raises HttpProblem with the message when the caller is no owner."""
    if caller(request) is Caller.PERSON:
        raise not_open(message)


def not_open(message: str) -> HttpProblem:
    """The error for something that callers without a token may not have."""
    hint = "Set gateway.token and send it, or use the Unix socket in the state directory."
    return HttpProblem(403, "owners_only", message, hint)


class Guard:
    """Checks the callers of one listener before its routes, and logs exceptions that no route has handled.

    token: what callers must send, None for the rules without a token. socket: whoever can open it is an owner.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, socket: bool) -> None:
        self._app = app
        self._token = token.encode() if token is not None else None
        self._caller = Caller.SOCKET if socket else Caller.PERSON if token is None else Caller.TOKEN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["hark.caller"] = self._caller
        if self._caller is not Caller.SOCKET and scope["path"].startswith("/v1/"):
            problem = self._refusal(dict(scope["headers"]))
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            log.info("client left before it was answered", path=scope["path"])
        except Exception:  # answered with a 500 already
            log.exception("request failed", method=scope["method"], path=scope["path"])

    def _refusal(self, headers: dict[bytes, bytes]) -> HttpProblem | None:
        if self._token is None:
            return _local_refusal(headers)
        scheme, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(sent.strip(), self._token):
            return None
        told = {"WWW-Authenticate": "Bearer"}
        return HttpProblem(401, "unauthorized", "The token is missing or wrong.", _TOKEN_HINT, told)


def _local_refusal(headers: dict[bytes, bytes]) -> HttpProblem | None:
    host = headers.get(b"host", b"")
    if not _LOOPBACK_HOST.fullmatch(host):
        return HttpProblem(403, "foreign_host", "Only requests to a loopback name are answered.", _LOCAL_HINT)
    origin = headers.get(b"origin")
    foreign = origin is not None and origin.lower() != b"http://" + host.lower()
    if foreign or headers.get(b"sec-fetch-site", b"none").lower() not in _OWN_SITES:
        return HttpProblem(403, "foreign_origin", "Requests of other web pages are not answered.", _LOCAL_HINT)
    has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    if has_body and headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        hint = "Send the header `Content-Type: application/json`."
        return HttpProblem(403, "not_json", "Bodies must be declared as JSON.", hint)
    return None
