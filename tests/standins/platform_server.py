"""What tests ask of the stand-in of any platform: its life, what it holds against its client, waiting, and faults."""

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Self

from tests.standins.faults import Fault, Faults
from tests.standins.inspection import made
from tests.standins.ledger import Violation
from tests.watch import PATIENCE


class PlatformServer:
    """Mixed into a world that has a `ledger`, and `texts` of a place. platform: in complaints."""

    platform: str
    ledger: Any
    faults: Faults
    texts: Callable[..., list[str]]

    def serve(self, faults: Faults) -> None:
        """To be called when the world is made; each server answers for its client at the end of a test."""
        self.faults = faults
        made(self)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; after a stop on the same ports as before, with the same state."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop listening; calls that are held go on, connections end."""
        raise NotImplementedError

    # What tests read

    @property
    def sent(self) -> list[Any]:
        """Accepted calls that a person can see, in order."""
        found: list[Any] = self.ledger.sent
        return found

    @property
    def violations(self) -> list[Violation]:
        """Every rule broken so far that the test does not tolerate."""
        found: list[Violation] = self.ledger.broken([*self.left_open(), *self.faults.unfired()])
        return found

    def left_open(self) -> Sequence[Violation]:
        """What the client has begun and not ended."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise AssertionError when the client broke a rule or an ordered fault did not happen."""
        if broken := self.violations:
            lines = "\n  ".join(str(violation) for violation in broken)
            raise AssertionError(f"the client broke rules of {self.platform}:\n  {lines}\n{self.ledger.story()}")

    def tolerate(self, *rules: StrEnum) -> None:
        """This test provokes violations of these rules on purpose."""
        self.ledger.tolerated.update(rules)

    def allow_repeat(self, text: str) -> None:
        """This test provokes that a text is said twice in one place."""
        self.ledger.repeats_allowed.add(text)

    async def wait_for(self, ready: Callable[[], bool], what: str = "a state", seconds: float = PATIENCE) -> None:
        """Wait for any state of the server."""
        await self.ledger.until(ready, what, seconds)

    async def wait_sent(self, count: int, place: Any = None, seconds: float = PATIENCE) -> list[str]:
        """Wait until at least `count` messages were said; returns their texts."""
        await self.wait_for(lambda: len(self.texts(place)) >= count, f"{count} messages", seconds)
        return self.texts(place)

    async def wait_text(self, part: str, seconds: float = PATIENCE) -> Any:
        """Wait for a message or an edit in which a person reads `part`."""

        def found() -> list[Any]:
            return [one for one in self.sent if part in getattr(one, "shown", one.text)]

        await self.wait_for(lambda: bool(found()), f"a text with {part!r}", seconds)
        return found()[0]

    # Faults

    def hold_next(self, name: str, *, after_apply: bool = False, place: object = None) -> Fault:
        """Keep the next call of this name waiting, before or after it is carried out, until `release()`."""
        return self.faults.order(self.named(name), after_apply=after_apply, place=place, gate=asyncio.Event())

    def fall_silent(self, *, apply: bool = False) -> Fault:
        """Answer no call until `release()`, then end their connections. With `apply` they are carried out anyway.

        Faults of a name go first, so that a call can fail in the midst of the silence. Connections through which the
        platform speaks stay as they are.
        """
        return self.faults.order(None, drop=True, after_apply=apply, gate=asyncio.Event())

    def named(self, name: str) -> str:
        """The name of a call that a test means; ValueError when there is none."""
        return name
