"""What every answer of the gateway looks like: JSON bodies, and one shape for all errors."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response


class HttpProblem(HTTPException):
    """A request that is not fulfilled; becomes `{"error": {"code", "message", "hint"}}` with this status.

    code: for programs, never changed. message: what is wrong, in a sentence. hint: what to do about it, may be empty.
    """

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
        self.hint = hint

    def response(self) -> Response:
        """The answer to send."""
        body = {"error": {"code": self.code, "message": self.detail, "hint": self.hint}}
        return answer(body, self.status_code, self.headers)


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer. body: a mapping or a dataclass."""
    return Response(to_json(body), status, headers, media_type="application/json")


def unavailable(code: str, message: str, hint: str) -> HttpProblem:
    """Not now: the same request may work soon."""
    return HttpProblem(503, code, message, hint, {"Retry-After": "5"})
