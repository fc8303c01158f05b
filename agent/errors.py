"""What can go wrong with a model call, as one closed set; what to do about each is decided in `agent/runner.py`.

AgentError
├── ModelError(kind)     a model call failed; kind is one of ErrorKind
├── RunLost              the store refused a write: the run was stopped or belongs to another worker
└── what a journal raises when it cannot write

Beside it stands ToolError, which ends no run: the model reads it.
"""

from enum import StrEnum


class ErrorKind(StrEnum):
    """A closed set; each model client maps its provider's errors to it."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    AUTH = "auth"
    BILLING = "billing"
    CONTEXT_OVERFLOW = "context_overflow"
    THINKING_UNSUPPORTED = "thinking_unsupported"
    MODEL_NOT_FOUND = "model_not_found"
    REGION = "unsupported_region"
    INVALID_REQUEST = "invalid_request"
    TIMEOUT = "timeout"
    NETWORK = "network"
    CONTENT_FILTER = "content_filter"
    UNKNOWN = "unknown"


class AgentError(Exception):
    """Root of this package's errors."""


class ModelError(AgentError):
    """A model call failed.

    detail: for the log and for owners, with the provider's own words; never holds a key. retry_after: seconds the
    provider asked to wait, None when it did not say. status: of the HTTP answer that said so, if it was one.
    """

    def __init__(
        self, kind: ErrorKind, detail: str, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.status = status


class RunLost(AgentError):
    """The run no longer holds its turn (stopped, or claimed by another worker): end without another word."""


class ToolError(Exception):
    """A call cannot do what it is asked; the text is what the model reads of it."""
