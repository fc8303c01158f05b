"""What every answer of the gateway looks like: JSON bodies, moments as text, and one shape for all errors."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


class HttpProblem(Exception):
    """A request that is not fulfilled; becomes `{"error": {"code", "message", "hint"}}` with this status.

    code: for programs, never changed. message: what is wrong, in a sentence. hint: what to do about it, may be empty.
    """

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = headers

    def response(self) -> Response:
        """The answer to send."""
        body = {"error": {"code": self.code, "message": self.message, "hint": self.hint}}
        return answer(body, self.status, self.headers)


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer. body: a mapping or a dataclass."""
    return Response(to_json(body), status, headers, media_type="application/json")


def moment(at: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC, such as 2026-01-31T12:00:00.250Z."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


def store_unavailable(*, reading: bool) -> HttpProblem:
    """Nothing was read or written: the same request may work soon."""
    return HttpProblem(
        503,
        "store_unavailable",
        "The store cannot be read right now." if reading else "The store cannot write right now; nothing was accepted.",
        "Send the same request again later; GET /readyz says what is wrong.",
        {"Retry-After": "5"},
    )


def starting() -> HttpProblem:
    """What a crash left is not repaired yet, or the store not open."""
    return HttpProblem(
        503,
        "starting",
        "Hark is starting; nothing was accepted.",
        "Send the same request again later; GET /readyz says what it waits for.",
        {"Retry-After": "5"},
    )


def no_such_run() -> HttpProblem:
    """The run id of the path is nobody's."""
    return HttpProblem(404, "no_such_run", "There is no run of that id.")


def not_yet(what: str) -> HttpProblem:
    """A route that a later version has."""
    return HttpProblem(404, "not_in_this_version", f"{what} is not in this version yet.")
