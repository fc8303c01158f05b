"""Values of a provider's JSON by the type they should have: what has another one counts as not being there."""

import json
from typing import Any

from agent.errors import ErrorKind, ModelError

_LARGEST = 1 << 53


def parsed(data: str) -> dict[str, Any]:
    """The JSON object of an event, empty for JSON of another kind.

    Raises ModelError for what is no JSON: half of it is what a broken connection leaves behind.
    """
    try:
        return record(json.loads(data))
    except (ValueError, RecursionError):
        raise ModelError(ErrorKind.NETWORK, f"not JSON in the stream: {data[:80]!r}") from None


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
