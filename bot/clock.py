"""Time, randomness and ids: the one place that reads the machine's clock, so that tests can bring their own."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from random import Random, SystemRandom


@dataclass(frozen=True, slots=True)
class Clock:
    """What the service knows of time and chance.

    now: milliseconds since the epoch. monotonic: seconds, never backwards. zone: None means the machine's own.
    """

    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=SystemRandom)
    zone: tzinfo | None = None

    def new_id(self) -> str:
        """A UUIDv7 (RFC 9562) as 32 hexadecimal digits: ids sort by the time they were made."""
        value = (self.now() & (1 << 48) - 1) << 80 | self.random.getrandbits(80)
        value = value & ~(0xF << 76) | 0x7 << 76
        value = value & ~(0x3 << 62) | 0x2 << 62
        return f"{value:032x}"

    def nonce(self) -> int:
        """63 random bits: fits SQLite's integer and the shortest nonce that a platform takes, 25 characters."""
        return self.random.getrandbits(63)

    def stamp(self, at: int, zone: tzinfo | None = None) -> str:
        """A moment as people read it: weekday, date, time and zone. zone: another one than the machine's."""
        zone = zone or self.zone
        moment = datetime.fromtimestamp(at / 1000, zone).astimezone(zone)
        return moment.strftime("%a %Y-%m-%d %H:%M %Z")


async def unless(event: asyncio.Event, waiting: Awaitable[object]) -> None:
    """Wait, at most until an event is set."""
    both = [asyncio.ensure_future(one) for one in (waiting, event.wait())]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in both:
            one.cancel()


def moment(at: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC, such as 2026-01-31T12:00:00.250Z."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"
