"""The errors of a run. `agent/runner.py` decides what each kind of model error leads to.

AgentError
├── ModelError(kind)     a model call failed; kind is one of ErrorKind
├── BudgetReached        the next model call could cost more than a budget allows
├── RunLost              the store refused a write: the run was stopped or belongs to another worker
└── whatever a journal raises when it cannot write

ToolError is separate, because it ends no run: the model reads its text.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from agent.message import Provenance

# Why a run is lost whose turn goes on later, when an owner lets it.
HALTED = "the turn was put back into the queue"


class ErrorKind(StrEnum):
    """Kinds of failed model calls; each model client maps its provider's errors to them."""

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
    OWNERS_ONLY = "owners_only"
    UNSAFE = "unsafe"
    UNKNOWN = "unknown"


class AgentError(Exception):
    """Base class of the errors that end a run."""


class ModelError(AgentError):
    """A model call failed."""

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        retry_after: float | None = None,
        status: int | None = None,
        named: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """detail: the provider's own words, for the log and for owners; never holds a key. retry_after: seconds
        that the provider asked to wait, None if it did not. status: of the HTTP response, None if there was none.
        named: the block of the body, as JSON values, at the place that the words name; empty: they name none."""
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.status = status
        self.named = named


class BudgetReached(AgentError):
    """The next model call could cost more than a budget allows; the text is for people."""


class RunLost(AgentError):
    """The turn was stopped, put back or claimed by another worker, so this run ends without another word."""


class ToolError(Exception):
    """A call cannot do what it is asked to do; the model reads the text."""

    # Where words of others in the text came from.
    origins: tuple[Provenance, ...] = ()
