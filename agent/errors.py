"""What can go wrong with a model call, as one closed set; what to do about each is decided in `agent/runner.py`.

AgentError
├── ModelError(kind)     a model call failed; kind is one of ErrorKind
└── RunLost              the store refused a write: the run was stopped or belongs to another worker
"""

from enum import StrEnum


class ErrorKind(StrEnum):
    """The closed set of design.md; each model client maps its provider's errors to it."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    AUTH = "auth"
    BILLING = "billing"
    CONTEXT_OVERFLOW = "context_overflow"
    THINKING_UNSUPPORTED = "thinking_unsupported"
    INVALID_REQUEST = "invalid_request"
    TIMEOUT = "timeout"
    NETWORK = "network"
    CONTENT_FILTER = "content_filter"
    UNKNOWN = "unknown"


class AgentError(Exception):
    """Root of this package's errors."""


class ModelError(AgentError):
    """A model call failed.

    detail: for the log; never holds a key. retry_after: seconds the provider asked to wait, None when it did not say.
    """

    def __init__(self, kind: ErrorKind, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


class RunLost(AgentError):
    """The run no longer holds its turn (stopped, or claimed by another worker): end without another word."""
