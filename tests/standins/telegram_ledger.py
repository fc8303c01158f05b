"""What the Telegram stand-in remembers and what it holds against its client.

Every call is logged without the token, every visible call is in `sent`, every broken rule is a `Violation`.
`broken()` lists them; the server asks for it at the end of each test. `until()` waits for a state.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Violation:
    rule: Rule
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


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


@dataclass(slots=True)
class Ledger:
    """The server's memory. `timeline` holds (chat id, "in", "out", "typing" or "over") in order."""

    token: str
    calls: list[Call] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    tolerated: set[Rule] = field(default_factory=set)
    repeats_allowed: set[str] = field(default_factory=set)
    typing_may_stay: set[int] = field(default_factory=set)
    timeline: list[tuple[int, str]] = field(default_factory=list)
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def complain(self, rule: Rule, detail: str) -> None:
        self.violations.append(Violation(rule, detail))

    def broken(self, more: Iterable[Violation] = ()) -> list[Violation]:
        """All violations that are not tolerated: as they came, from the whole story, and `more`."""
        found = [*self.violations, *self._late_typing(), *self._repeated(), *self._leaks(), *more]
        return [violation for violation in found if violation.rule not in self.tolerated]

    def _late_typing(self) -> list[Violation]:
        found: list[Violation] = []
        for chat in {chat for chat, _ in self.timeline} - self.typing_may_stay:
            over = False
            pending = False
            for kind in (kind for where, kind in self.timeline if where == chat):
                if kind == "typing" and over:
                    found.append(Violation(Rule.LATE_TYPING, f"chat {chat}: typing after the turn was over"))
                over = kind == "over" or (over and kind == "typing")
                pending = kind == "typing" or (pending and kind != "out")
            if pending:
                found.append(Violation(Rule.LATE_TYPING, f"chat {chat}: no message follows the last typing"))
        return found

    def _repeated(self) -> list[Violation]:
        posts = Counter((one.chat_id, one.text) for one in self.sent if one.method == "sendMessage")
        return [
            Violation(Rule.REPEATED_TEXT, f"chat {chat}: {count} times {text[:80]!r}")
            for (chat, text), count in posts.items()
            if count > 1 and text not in self.repeats_allowed
        ]

    def _leaks(self) -> list[Violation]:
        return [
            Violation(Rule.TOKEN_LEAK, f"{call.method} carries the token in its query or parameters")
            for call in self.calls
            if self.token in call.url or self.token in repr(call.params)
        ]

    def story(self) -> str:
        """The last calls, for error messages."""
        lines = [f"  {call.at:10.3f} {call.method} {str(call.params)[:160]}" for call in self.calls[-15:]]
        return "last calls:\n" + ("\n".join(lines) or "  none")

    def changed(self) -> None:
        """Wake everybody who waits for a state."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, ready: Callable[[], bool], seconds: float) -> bool:
        """True as soon as `ready()`, False when the seconds are over."""
        try:
            async with asyncio.timeout(seconds):
                while not ready():
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiters.append(waiter)
                    await waiter
        except TimeoutError:
            return ready()
        return True

    async def until(self, ready: Callable[[], bool], what: str, seconds: float = 5.0) -> None:
        """Wait for a state; AssertionError with the last calls when it does not come."""
        if not await self.wait(ready, seconds):
            raise AssertionError(f"waited {seconds} s in vain for {what}; {self.story()}")
