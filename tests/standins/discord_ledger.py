"""What the Discord stand-in remembers and what it holds against its client. See `ledger`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.standins import ledger
from tests.standins.ledger import Violation

Json = dict[str, Any]


class Rule(StrEnum):
    """The rules a client must keep; a test that breaks one on purpose tolerates it."""

    TOKEN = "every call but those of webhooks carries the bot's token"
    HEADERS = "User-Agent and Content-Type are as documented"
    UNKNOWN_ROUTE = "no route that this server does not know"
    UNKNOWN_FIELD = "no field that the documentation does not know"
    FORM = "every body keeps the documented form"
    EARLY = "no call before retry_after has ended"
    GATEWAY = "every gateway payload keeps the documented form"
    GATEWAY_RATE = "at most 120 gateway payloads a minute"
    RESUME_URL = "a session is resumed at its resume_gateway_url"
    UNANSWERED_INTERACTION = "every interaction is answered within three seconds"
    REPEATED_TEXT = "no text twice in one channel"
    LATE_TYPING = "no typing after the last message of a turn"
    TOKEN_LEAK = "no token in anything but the header"
    STAND_IN = "this server itself does not fail"
    FAULT_NOT_FIRED = "every ordered fault happens"


class Refusal(Exception):
    """An error answer of the REST API; with `rule` it is also a violation. `code` 0 stands for no special code."""

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        *,
        rule: Rule | None = None,
        errors: Json | None = None,
        more: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {code} {message} {errors or ''}".rstrip())
        self.status = status
        self.code = code
        self.rule = rule
        self.headers = headers or {}
        self.body: Json = {"message": message, "code": code, **(more or {})}
        if errors:
            self.body["errors"] = errors


def unknown(what: str) -> Refusal:
    """404 of a thing that is not there, as Discord numbers it."""
    codes = {"Channel": 10003, "Guild": 10004, "Member": 10007, "Message": 10008, "User": 10013, "Emoji": 10014}
    codes |= {"Webhook": 10015, "Interaction": 10062, "application command": 10063}
    return Refusal(404, codes[what], f"Unknown {what}")


def form(path: str, code: str, message: str, *, rule: Rule = Rule.FORM) -> Refusal:
    """400 "Invalid Form Body" with one error at a dotted path."""
    errors: Json = {"_errors": [{"code": code, "message": message}]}
    for name in reversed([part for part in path.split(".") if part]):
        errors = {name: errors}
    return Refusal(400, 50035, "Invalid Form Body", rule=rule, errors=errors)


MISSING_ACCESS = (403, 50001, "Missing Access")
MISSING_PERMISSIONS = (403, 50013, "Missing Permissions")


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived; `route` is "METHOD /path" below the API root, `at` the server's clock in seconds."""

    route: str
    query: Json
    body: Any
    at: float


@dataclass(frozen=True, slots=True)
class Pings:
    """Who is notified by a message: ids of users and roles, and whether @everyone or @here."""

    users: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    everyone: bool = False

    def __bool__(self) -> bool:
        return bool(self.users or self.roles or self.everyone)


NOBODY = Pings()


@dataclass(frozen=True, slots=True)
class Sent:
    """One accepted call that a person can see.

    `method` is "send", "edit", "delete", "react", "unreact", "respond" (to an interaction) or "follow_up"; `params` is
    the body as it came, `at` the server's clock in seconds, `previews` the links that Discord would show a preview of.
    """

    method: str
    channel_id: str
    message_id: str
    text: str
    at: float
    params: Json
    pings: Pings = NOBODY
    flags: int = 0
    reply_to: str | None = None
    previews: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Ledger(ledger.Ledger[Rule, Call, Sent]):
    """The server's memory. `timeline` holds (channel id, "in", "out", "typing" or "over") in order."""

    token: str
    timeline: list[tuple[str, str]] = field(default_factory=list)

    def _story_broken(self) -> Iterable[Violation]:
        yield from ledger.late_typing(Rule.LATE_TYPING, self.timeline)
        said = ("send", "respond", "follow_up")
        posts = ((one.channel_id, one.text) for one in self.sent if one.method in said)
        yield from self._repeated(Rule.REPEATED_TEXT, posts)
        for call in self.calls:
            if self.token in call.route or self.token in repr((call.query, call.body)):
                yield Violation(Rule.TOKEN_LEAK, f"{call.route} carries the token in its path, query or body")

    def _line(self, call: Call) -> str:
        return f"{call.route} {call.query or ''} {str(call.body)[:160]}"
