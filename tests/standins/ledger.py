"""What every stand-in of a platform remembers, and what it holds against its client.

Every call is logged without secrets, every visible call is in `sent`, every broken rule is a `Violation`. `broken()`
lists them; the server asks for it at the end of each test. `until()` waits for a state.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from tests.watch import PATIENCE

RuleT = TypeVar("RuleT", bound=StrEnum)
CallT = TypeVar("CallT", bound="Timed")
SentT = TypeVar("SentT")
# A text that is shown, and where.
Shown = tuple[Hashable, str]


class Timed(Protocol):
    """A call as it arrived; `at` is the server's clock in seconds."""

    @property
    def at(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, and by what."""

    rule: StrEnum
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


@dataclass
class Ledger(Generic[RuleT, CallT, SentT]):
    """The server's memory. A subclass says which rules tell of the whole story (`_story_broken`)."""

    calls: list[CallT] = field(default_factory=list)
    sent: list[SentT] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    # Rules that a test breaks on purpose.
    tolerated: set[RuleT] = field(default_factory=set)
    # Texts that may be said several times in one place.
    repeats_allowed: set[str] = field(default_factory=set)
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def complain(self, rule: RuleT, detail: str) -> None:
        """A rule was broken at this moment."""
        self.violations.append(Violation(rule, detail))

    def broken(self, more: Iterable[Violation] = ()) -> list[Violation]:
        """All violations that are not tolerated: as they came, from the whole story, and `more`."""
        found = [*self.violations, *self._story_broken(), *more]
        return [violation for violation in found if violation.rule not in self.tolerated]

    def _story_broken(self) -> Iterable[Violation]:
        raise NotImplementedError

    def _line(self, call: CallT) -> str:
        """A call on one line."""
        raise NotImplementedError

    def _repeated(self, rule: RuleT, posts: Iterable[Shown]) -> list[Violation]:
        """Texts that stand several times in one place."""
        return [
            Violation(rule, f"{place}: {count} times {text[:80]!r}")
            for (place, text), count in Counter(posts).items()
            if count > 1 and text and text not in self.repeats_allowed
        ]

    def story(self) -> str:
        """The last calls, for error messages."""
        lines = [f"  {call.at:10.3f} {self._line(call)}" for call in self.calls[-15:]]
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

    async def until(self, ready: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait for a state; AssertionError with the last calls when it does not come."""
        if not await self.wait(ready, seconds):
            raise AssertionError(f"waited {seconds} s in vain for {what}; {self.story()}")


def late_typing(
    rule: RuleT, timeline: Sequence[tuple[Hashable, str]], *, ends: Callable[[Hashable], bool] | None = None
) -> list[Violation]:
    """Signs of work behind the last block of a turn. timeline: (place, "in", "out", "typing" or "over") in order.
    ends: whether the sign of a place must also be followed by a message."""
    found: list[Violation] = []
    for place in dict.fromkeys(place for place, _ in timeline):
        over = pending = False
        for kind in (kind for where, kind in timeline if where == place):
            if kind == "typing" and over:
                found.append(Violation(rule, f"{place}: typing after the turn was over"))
            over = kind == "over" or (over and kind == "typing")
            pending = kind == "typing" or (pending and kind != "out")
        if pending and ends is not None and ends(place):
            found.append(Violation(rule, f"{place}: no message follows the last typing"))
    return found
