"""Flood control of the Telegram stand-in ("My bot is hitting limits" of the bot FAQ).

`RateLimits` is off until a test sets it; `FloodWaits` remembers every retry_after that was answered, so that
calls which come too early are refused.
"""

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.standins.telegram_ledger import Refusal

SLACK = 0.01  # seconds; two readings of one clock


def too_many(seconds: int) -> Refusal:
    """The documented 429."""
    return Refusal(429, f"Too Many Requests: retry after {seconds}", parameters={"retry_after": seconds})


@dataclass(slots=True)
class RateLimits:
    """Messages and edits per chat, per group and in all, each as (count, seconds)."""

    per_chat: tuple[int, float] = (1, 1.0)
    per_group: tuple[int, float] = (20, 60.0)
    in_all: tuple[int, float] = (30, 1.0)
    _seen: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def admit(self, chat_id: int, now: float) -> None:
        """Count one message or raise the 429 that says when the next one may come."""
        windows = {f"chat {chat_id}": self.per_chat, "all": self.in_all}
        if chat_id < 0:
            windows[f"group {chat_id}"] = self.per_group
        for name, (count, seconds) in windows.items():
            seen = self._seen[name]
            while seen and seen[0] <= now - seconds + SLACK:
                seen.popleft()
            if len(seen) >= count:
                raise too_many(max(1, math.ceil(seen[0] + seconds - now)))
        for name in windows:
            self._seen[name].append(now)


@dataclass(slots=True)
class FloodWaits:
    """Until when a chat, or a method without a chat, must be left alone."""

    until: dict[str, float] = field(default_factory=dict)

    def start(self, key: str, seconds: float, now: float) -> None:
        self.until[key] = max(self.until.get(key, now), now + seconds)

    def remaining(self, key: str, now: float) -> int:
        """Whole seconds that are left, 0 when the call is welcome."""
        left = self.until.get(key, now) - now
        return math.ceil(left) if left > SLACK else 0
