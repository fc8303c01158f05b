"""Faults that a test orders of the Discord stand-in's REST side, and how they are told apart from each other."""

import functools
import re

from tests.standins.discord_ledger import Json, Refusal
from tests.standins.discord_limits import too_many
from tests.standins.discord_routes import ROUTES

PROXY_PAGES = {500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
DOWNLOAD = "GET /attachments/{channel}/{attachment}/{filename}"
PROXY_PAGES |= {520: "Web server is returning an unknown error", 524: "A timeout occurred", 429: "Too Many Requests"}


def answer_of(
    status: int,
    *,
    code: int = 0,
    message: str = "",
    errors: Json | None = None,
    page: bool | None = None,
    retry_after: float = 1.0,
    scope: str = "user",
) -> Refusal | int:
    """The error that a test orders with a status.

    From 500 on without a code it is a page of the proxy in front; 429 carries `retry_after` (seconds) and `scope`, as a
    `page` it is the ban of that proxy. 401 has Discord's words.
    """
    if page or (page is None and status >= 500 and not code):
        return status
    if status == 429:
        return too_many(retry_after, scope=scope)
    if status == 401:
        return Refusal(401, 0, "401: Unauthorized")
    return Refusal(status, code, message or f"{status}: error", errors=errors)


def meets(route: str, call: str) -> bool:
    """Whether a route as a test names it is that of a call, "METHOD /path"."""
    return pattern_of(route).fullmatch(call) is not None


@functools.cache
def pattern_of(route: str) -> re.Pattern[str]:
    """A route as a test names it, with `*` or {names} for parts, downloads included.

    ValueError when no documented one can be meant.
    """
    parts = re.split(r"\*|\{\w+\}", route)
    pattern = re.compile("[^/]+".join(re.escape(part) for part in parts))
    method, _, path = route.partition(" ")
    filled = re.compile("[^/]+".join(re.escape(part) for part in re.split(r"\*|\{\w+\}|(?<=/)\d{15,}", path)))
    names = [name.partition(" ") for name in (DOWNLOAD, *(known.name for known in ROUTES))]
    if not any(known == method and filled.fullmatch(where) for known, _, where in names):
        raise ValueError(f"no route of this server is {route!r}")
    return pattern
