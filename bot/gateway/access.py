"""Who may call: decided before a route sees the request (the rules are those of `docs/http.md`).

With a token: whoever sends it. Without one: programs of this machine, but no web page that a browser on it shows;
therefore loopback names only (against DNS rebinding), JSON bodies and no foreign origin. A Unix socket lets everyone
in who can open it.
"""

import hmac
import re

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.gateway.answers import Problem

log = structlog.get_logger()

_LOOPBACK_HOST = re.compile(rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_OWN_SITES = (b"none", b"same-origin")
_LOCAL_HINT = "Without gateway.token only programs of this machine are answered; set a token for anything else."


class Guard:
    """Stands in front of the routes of one listener, and turns what nobody expected into a plain 500.

    token: what callers must send, None for the rules without one. owner: callers are let in as they are.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, owner: bool) -> None:
        self._app = app
        self._token = token.encode() if token is not None else None
        self._owner = owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["hark.owner"] = self._owner
        if not self._owner and scope["path"].startswith("/v1/"):
            problem = self._refusal(dict(scope["headers"]))
            if problem is not None:
                await problem.response()(scope, receive, send)
                return
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            log.info("client left before its request was complete", path=scope["path"])
        except Exception:  # answered with a 500 already
            log.exception("request failed", method=scope["method"], path=scope["path"])

    def _refusal(self, headers: dict[bytes, bytes]) -> Problem | None:
        if self._token is None:
            return _local_refusal(headers)
        scheme, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(sent.strip(), self._token):
            return None
        return Problem(
            401,
            "unauthorized",
            "The token is missing or wrong.",
            "Send the header `Authorization: Bearer …` with the value of gateway.token.",
            {"WWW-Authenticate": "Bearer"},
        )


def _local_refusal(headers: dict[bytes, bytes]) -> Problem | None:
    host = headers.get(b"host", b"")
    if not _LOOPBACK_HOST.fullmatch(host):
        return Problem(403, "foreign_host", "Only requests to a loopback name are answered.", _LOCAL_HINT)
    origin = headers.get(b"origin")
    if origin is not None and origin.lower() != b"http://" + host.lower():
        return Problem(403, "foreign_origin", "Requests of other web pages are not answered.", _LOCAL_HINT)
    if headers.get(b"sec-fetch-site", b"none").lower() not in _OWN_SITES:
        return Problem(403, "foreign_origin", "Requests of other web pages are not answered.", _LOCAL_HINT)
    has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    if has_body and headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        hint = "Send the header `Content-Type: application/json`."
        return Problem(403, "not_json", "Bodies must be declared as JSON.", hint)
    return None
