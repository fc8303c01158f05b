"""Values of a provider's JSON by the type they should have: what has another one counts as not being there."""

import json
from typing import Any

from agent.errors import ErrorKind, ModelError
from agent.models.base import StopReason

_LARGEST = 1 << 53
# In the words of both protocols: servers mix them.
_STOPS: dict[StopReason, tuple[str, ...]] = {
    "end": ("end_turn", "stop_sequence", "stop"),
    "tool_use": ("tool_use", "tool_calls", "function_call"),
    "max_output": ("max_tokens", "model_context_window_exceeded", "length", "model_length"),
    "refusal": ("refusal", "content_filter"),
}


def parsed(data: str) -> dict[str, Any]:
    """The JSON object of an event, empty for JSON of another kind.

    Raises ModelError for what is no JSON: half of it is what a broken connection leaves behind.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelError(ErrorKind.NETWORK, f"not JSON in the stream: {data[:80]!r}") from None
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """A string."""
    return value if isinstance(value, str) else ""


def record(value: Any) -> dict[str, Any]:
    """An object."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """An array."""
    return value if isinstance(value, list) else []


def number(value: Any) -> int:
    """A number of tokens, or a position."""
    return value if isinstance(value, int) and 0 <= value < _LARGEST else 0


def stop_reason(given: str) -> StopReason:
    """Why an answer ended."""
    return next((reason for reason, words in _STOPS.items() if given in words), "other")
