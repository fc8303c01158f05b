"""How a call to a platform fails, how long it may take, how often it may be made, and pauses between retries.

What matters about a failed call is whether it may have been carried out; `Trouble` says so.
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import ClassVar

from channels.actions import ActionFailed

_LONGEST_REASON = 300


class Trouble(StrEnum):
    """Why a call failed."""

    # The call never reached the platform.
    NETWORK = "network"
    # The platform, or something on the way, answered with an error; the call may have been carried out.
    FAILED = "failed"
    # The request was written and no answer came; the call may have been carried out.
    UNKNOWN = "unknown"
    # Too many calls; this one was not carried out.
    FLOOD = "flood"
    # The platform refused the call for good.
    REFUSED = "refused"
    # The bot was not granted a permission that the call needs.
    SCOPE = "scope"
    # The chat has another id.
    MOVED = "moved"
    # The token is not accepted.
    TOKEN = "token"
    # Another program receives the events of this bot, or a webhook is set.
    CONFLICT = "conflict"


@dataclass(eq=False)
class ApiError(ActionFailed):
    """A call failed. Its text is what a model that asked for the call is told."""

    trouble: Trouble
    # In plain words, for people.
    reason: str
    _: KW_ONLY
    # The HTTP status of the answer; 0 without one.
    status: int = 0
    # The error code as the platform writes it; 0 without one.
    code: int | str = 0
    # Of a FLOOD, the seconds after which to retry.
    retry_after: float = 0.0
    # Of a MOVED chat, its new id.
    new_chat: str = ""

    def __str__(self) -> str:
        unsure = self.trouble in (Trouble.UNKNOWN, Trouble.FAILED)
        return f"it is not known whether this was done: {self.reason}" if unsure else self.reason


@dataclass(slots=True)
class Pauses:
    """Pauses after consecutive failures, in seconds: doubled from the first up to the most."""

    first: float
    most: float
    failures: int = 0

    def next(self) -> float:
        """The pause after one more failure."""
        self.failures += 1
        return self.after(self.failures)

    def after(self, failures: int) -> float:
        """The pause after so many failures; at least one."""
        return min(self.first * 2.0 ** min(failures - 1, 16), self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How many messages a platform takes before it answers 429."""

    # Seconds between two messages of one chat.
    chat_interval: float = 1.0
    group_per_minute: int = 20
    # Messages of the whole bot.
    per_second: int = 30


class Patience:
    """Timeouts and pauses of an adapter, in seconds; the section of each account derives from it."""

    # Until a connection must be established.
    connect_timeout: ClassVar[float] = 10.0
    # How long the answer to a call may take before its outcome counts as unknown.
    request_timeout: ClassVar[float] = 30.0
    # The same for a typing sign and a frame of a preview, for which a send to that place waits.
    typing_timeout: ClassVar[float] = 3.0
    # Pauses after failures, doubled from the first to the most.
    retry_first: ClassVar[float] = 1.0
    retry_most: ClassVar[float] = 30.0
    # The pause while a token is refused, or another program receives.
    slow_retry: ClassVar[float] = 30.0

    def pauses(self) -> Pauses:
        """New pauses after failures, from the first."""
        return Pauses(self.retry_first, self.retry_most)


def reason_of(error: Exception) -> str:
    """The text of an exception, bounded in length."""
    return (str(error) or type(error).__name__)[:_LONGEST_REASON]
