"""What the Telegram stand-in remembers and what it holds against its client. See `ledger`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.standins import ledger
from tests.standins.ledger import Violation

Json = dict[str, Any]


class Rule(StrEnum):
    """The rules a client must keep; a test that breaks one on purpose adds it to `Ledger.tolerated`."""

    FORMATTING = "text and entities are never rejected"
    EARLY = "no call before retry_after has ended"
    SECOND_POLLER = "one poller at a time"
    UNKNOWN_FIELD = "no field that the documentation does not know"
    UNKNOWN_METHOD = "no method that this server does not know"
    BAD_VALUE = "every value has the type and range of the documentation"
    LATE_TYPING = "no typing after the last block of a turn"
    REPEATED_TEXT = "no text twice in one chat"
    TOKEN_LEAK = "no token in anything but the path"
    UNANSWERED_CLICK = "every click is answered"
    FAULT_NOT_FIRED = "every ordered fault happens"


class Refusal(Exception):
    """An error answer of the Bot API; with `rule` it is also a violation."""

    def __init__(
        self, code: int, description: str, *, rule: Rule | None = None, parameters: Json | None = None
    ) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.rule = rule
        self.parameters = parameters

    def body(self) -> Json:
        """The documented error object."""
        answer: Json = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            answer["parameters"] = self.parameters
        return answer


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived; `url` has no token in it, `at` is the server's clock in seconds."""

    method: str
    url: str
    params: Json
    at: float


@dataclass(frozen=True, slots=True)
class Sent:
    """One accepted call that a person can see: a message, an edit, a deletion or a reaction.

    `text` is what was sent, before Telegram trims it; `at` is the server's clock in seconds.
    """

    method: str
    chat_id: int
    message_id: int
    text: str
    entities: list[Json]
    thread_id: int | None
    reply_to: int | None
    at: float
    params: Json


@dataclass(kw_only=True)
class Ledger(ledger.Ledger[Rule, Call, Sent]):
    """The server's memory. `timeline` holds (chat id, "in", "out", "typing" or "over") in order."""

    token: str
    timeline: list[tuple[int, str]] = field(default_factory=list)
    # Chats in which the sign of work may be the last that happens.
    typing_may_stay: set[int] = field(default_factory=set)

    def _story_broken(self) -> Iterable[Violation]:
        typing = [one for one in self.timeline if one[0] not in self.typing_may_stay]
        yield from ledger.late_typing(Rule.LATE_TYPING, typing, ends=lambda chat: True)
        posts = ((one.chat_id, one.text) for one in self.sent if one.method == "sendMessage")
        yield from self._repeated(Rule.REPEATED_TEXT, posts)
        for call in self.calls:
            if self.token in call.url or self.token in repr(call.params):
                yield Violation(Rule.TOKEN_LEAK, f"{call.method} carries the token in its query or parameters")

    def _line(self, call: Call) -> str:
        return f"{call.method} {str(call.params)[:160]}"
