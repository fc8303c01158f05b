"""Ordered faults of the Slack stand-in, and its rate limits, which are off until a test sets them."""

import asyncio
import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.standins.slack_arguments import METHODS, TIERS
from tests.standins.slack_ledger import Json, Refusal, Rule, Violation, too_many

LEEWAY = 0.01  # seconds; two readings of one clock
# What can fail besides the methods.
OTHER_CALLS = ("connect", "download", "response_url", "upload")


@dataclass(slots=True, eq=False)
class Fault:
    """One ordered fault; `reached` is set when a call is held, `release()` lets it go on.

    Without a method it is a silence: it meets every call until it is released.
    """

    method: str | None
    answer: Refusal | int | None = None
    drop: bool = False
    times: int = 1
    after_apply: bool = False
    channel: str | None = None
    gate: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    fired: int = 0

    def release(self) -> None:
        if self.gate is not None:
            self.gate.set()


class Faults:
    """The faults that a test ordered, in order."""

    def __init__(self) -> None:
        self.ordered: list[Fault] = []

    def order(self, fault: Fault) -> Fault:
        if fault.method is not None and fault.method not in (*METHODS, *OTHER_CALLS):
            raise ValueError(f"{fault.method} is no method of this server")
        self.ordered.append(fault)
        return fault

    def take(self, method: str, args: Json) -> Fault | None:
        """The next fault of a call; it counts as fired."""
        channel = args.get("channel") or args.get("channel_id")
        for fault in self.ordered:
            if fault.method == method and fault.channel in (None, channel) and fault.fired < fault.times:
                fault.fired += 1
                return fault
        return None

    def silence(self) -> Fault | None:
        """The silence that holds now; it counts as fired."""
        for fault in self.ordered:
            if fault.method is None and fault.gate is not None and not fault.gate.is_set():
                fault.fired += 1
                return fault
        return None

    def unfired(self) -> list[Violation]:
        return [
            Violation(Rule.FAULT_NOT_FIRED, f"{fault.method or 'silence'}: {fault.fired} of {fault.times}")
            for fault in self.ordered
            if fault.fired < fault.times
        ]


@dataclass(slots=True)
class RateLimits:
    """Calls per minute by tier, and messages per second and conversation ("Rate limits" on docs.slack.dev)."""

    per_channel: tuple[int, float] = (1, 1.0)
    per_minute: dict[str, int] = field(default_factory=lambda: dict(TIERS))
    _seen: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def admit(self, method: str, args: Json, now: float) -> None:
        """Count one call or raise the 429 that says when the next one may come."""
        windows = {method: (self.per_minute[METHODS[method].tier], 60.0)}
        if method == "chat.postMessage":
            windows[f"{method} {args.get('channel')}"] = self.per_channel
        for name, (count, seconds) in windows.items():
            seen = self._seen[name]
            while seen and seen[0] <= now - seconds + LEEWAY:
                seen.popleft()
            if len(seen) >= count:
                raise too_many(max(1, math.ceil(seen[0] + seconds - now)))
        for name in windows:
            self._seen[name].append(now)


@dataclass(slots=True)
class Waits:
    """Until when a method, or one in a conversation, must be left alone: the Retry-After that was answered."""

    until: dict[tuple[str, str], float] = field(default_factory=dict)

    def start(self, key: tuple[str, str], seconds: float, now: float) -> None:
        self.until[key] = max(self.until.get(key, now), now + seconds)

    def remaining(self, key: tuple[str, str], now: float) -> int:
        """Whole seconds that are left, 0 when the call is welcome."""
        left = self.until.get(key, now) - now
        return math.ceil(left) if left > LEEWAY else 0
