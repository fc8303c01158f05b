"""Ordered faults of the Slack stand-in, and its rate limits, which are off until a test sets them."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.standins.slack_arguments import METHODS, TIERS
from tests.standins.slack_ledger import Json, too_many

LEEWAY = 0.01  # seconds; two readings of one clock
# What can fail besides the methods.
OTHER_CALLS = ("connect", "download", "response_url", "upload")


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
