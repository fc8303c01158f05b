"""Flood control of the Telegram stand-in ("My bot is hitting limits" of the bot FAQ).

`FloodWaits` remembers every retry_after that was answered, so that calls which come too early are refused.
"""

import math
from dataclasses import dataclass, field

from tests.standins.telegram_ledger import Refusal

SLACK = 0.01  # seconds; two readings of one clock


def too_many(seconds: int) -> Refusal:
    """The documented 429."""
    return Refusal(429, f"Too Many Requests: retry after {seconds}", parameters={"retry_after": seconds})


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
