"""Faults that a test orders of the Discord stand-in's REST side, and how they are told apart from each other."""

import asyncio
import re
from dataclasses import dataclass, field

from tests.standins.discord_ledger import Json, Refusal, Rule, Violation
from tests.standins.discord_limits import too_many
from tests.standins.discord_routes import ROUTES

PROXY_PAGES = {500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
DOWNLOAD = "GET /attachments/{channel}/{attachment}/{filename}"
PROXY_PAGES |= {520: "Web server is returning an unknown error", 524: "A timeout occurred", 429: "Too Many Requests"}


@dataclass(slots=True, eq=False)
class Fault:
    """One ordered fault; `reached` is set when a call is held, `release()` lets it go on.

    Without a route it is a silence: it meets every call until it is released.
    """

    route: re.Pattern[str] | None
    named: str
    answer: Refusal | int | None = None
    drop: bool = False
    times: int = 1
    after_apply: bool = False
    gate: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    fired: int = 0

    def release(self) -> None:
        if self.gate is not None:
            self.gate.set()


class Faults:
    """Ordered and what became of them. A route is "METHOD /path" with `*` for one part, or {names} as documented."""

    def __init__(self) -> None:
        self._ordered: list[Fault] = []

    def fail_next(
        self,
        route: str,
        *,
        status: int = 500,
        code: int = 0,
        message: str = "",
        errors: Json | None = None,
        page: bool | None = None,
        retry_after: float = 1.0,
        scope: str = "user",
        drop: bool = False,
        times: int = 1,
        after_apply: bool = False,
    ) -> Fault:
        """Answer the next calls of `route` with an error, or drop the connection, instead of obeying.

        With `after_apply` the call is carried out first, so that its outcome is unknown to the client. A status from
        500 on without a code is a page of the proxy in front; 429 carries `retry_after` (seconds) and `scope`, as a
        `page` it is the ban of that proxy. 401 and 403 have Discord's words.
        """
        answer: Refusal | int = Refusal(status, code, message or f"{status}: error", errors=errors)
        if page or (page is None and status >= 500 and not code):
            answer = status
        elif status == 429:
            answer = too_many(retry_after, scope=scope)
        elif status == 401:
            answer = Refusal(401, 0, "401: Unauthorized")
        fault = Fault(pattern_of(route), route, answer, drop=drop, times=times, after_apply=after_apply)
        self._ordered.append(fault)
        return fault

    def hold_next(self, route: str, *, after_apply: bool = False) -> Fault:
        """Keep the next call of `route` waiting, before or after it is carried out, until `release()`."""
        fault = Fault(pattern_of(route), route, after_apply=after_apply, gate=asyncio.Event())
        self._ordered.append(fault)
        return fault

    def fall_silent(self, *, apply: bool = False) -> Fault:
        """Answer no call until `release()`, then end their connections. With `apply` they are carried out anyway."""
        fault = Fault(None, "silence", drop=True, after_apply=apply, gate=asyncio.Event())
        self._ordered.append(fault)
        return fault

    def release_all(self) -> None:
        for fault in self._ordered:
            fault.release()

    def unfired(self) -> list[Violation]:
        return [
            Violation(Rule.FAULT_NOT_FIRED, f"{fault.named}: {fault.fired} of {fault.times}")
            for fault in self._ordered
            if fault.fired < fault.times
        ]

    def take(self, name: str, *, silence: bool = True) -> Fault | None:
        """The fault that meets a call, a silence of the API after all others."""
        for fault in self._ordered:
            if fault.route is not None and fault.route.fullmatch(name) and fault.fired < fault.times:
                fault.fired += 1
                return fault
        return self.silence() if silence else None

    def silence(self) -> Fault | None:
        for fault in self._ordered:
            if fault.route is None and fault.gate is not None and not fault.gate.is_set():
                fault.fired += 1
                return fault
        return None


def pattern_of(route: str) -> re.Pattern[str]:
    """A route as a test names it, downloads included; ValueError when no documented one can be meant."""
    parts = re.split(r"\*|\{\w+\}", route)
    pattern = re.compile("[^/]+".join(re.escape(part) for part in parts))
    method, _, path = route.partition(" ")
    filled = re.compile("[^/]+".join(re.escape(part) for part in re.split(r"\*|\{\w+\}|(?<=/)\d{15,}", path)))
    names = [name.partition(" ") for name in (DOWNLOAD, *(known.name for known in ROUTES))]
    if not any(known == method and filled.fullmatch(where) for known, _, where in names):
        raise ValueError(f"no route of this server is {route!r}")
    return pattern
