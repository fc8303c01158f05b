"""How a call to a platform fails, in one closed set; pauses that grow.

What matters of a failed call is whether it may have been carried out; `Trouble` says so.
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import ClassVar

from channels.actions import ActionFailed

_LONGEST_REASON = 300


class Trouble(StrEnum):
    """Why a call failed.

    network: it never reached the platform. failed: the answer says that something went wrong on the way or in the
    platform itself; the call may have been carried out all the same. unknown: it was written, and no answer came that
    says what became of it. flood: too many calls; this one was not carried out. refused: this call will never do.
    scope: the bot was not granted what it needs. moved: the chat has another id. token: the token is not accepted.
    conflict: another program receives, or a webhook is set.
    """

    NETWORK = "network"
    FAILED = "failed"
    UNKNOWN = "unknown"
    FLOOD = "flood"
    REFUSED = "refused"
    SCOPE = "scope"
    MOVED = "moved"
    TOKEN = "token"
    CONFLICT = "conflict"


@dataclass(eq=False)
class ApiError(ActionFailed):
    """A call failed; as text it is what a model is told that asked for it.

    reason: for people. status, code: of the answer, code as the platform writes it; 0 without one. retry_after:
    seconds, of a flood. new_chat: of a chat that moved.
    """

    trouble: Trouble
    reason: str
    _: KW_ONLY
    status: int = 0
    code: int | str = 0
    retry_after: float = 0.0
    new_chat: str = ""

    def __str__(self) -> str:
        unsure = self.trouble in (Trouble.UNKNOWN, Trouble.FAILED)
        return f"it is not known whether this was done: {self.reason}" if unsure else self.reason


@dataclass(slots=True)
class Pauses:
    """Pauses after failures in a row, in seconds: doubled from the first to the most."""

    first: float
    most: float
    failures: int = 0

    def next(self) -> float:
        """The pause after one more failure."""
        self.failures += 1
        return self.after(self.failures)

    def after(self, failures: int) -> float:
        """The pause after so many failures, at least one."""
        return min(self.first * 2.0 ** min(failures - 1, 16), self.most)


class Patience:
    """How long an adapter waits for what, in seconds; the section of each account is one.

    connect_timeout: until a connection must stand. request_timeout: how long an answer to a call may take before its
    outcome counts as unknown. typing_timeout: the same for the sign of work and for a frame of a preview, which a send
    to that place waits for. retry_first, retry_most: pauses after failures, doubled from the first to the most.
    slow_retry: pause while a token is refused, or another program receives.
    """

    connect_timeout: ClassVar[float] = 10.0
    request_timeout: ClassVar[float] = 30.0
    typing_timeout: ClassVar[float] = 3.0
    retry_first: ClassVar[float] = 1.0
    retry_most: ClassVar[float] = 30.0
    slow_retry: ClassVar[float] = 30.0

    def pauses(self) -> Pauses:
        """Those after failures, from the first."""
        return Pauses(self.retry_first, self.retry_most)


def reason_of(error: Exception) -> str:
    """What an exception says, in one bounded line."""
    return (str(error) or type(error).__name__)[:_LONGEST_REASON]
