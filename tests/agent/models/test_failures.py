"""From what providers and connections say to the closed set of errors."""

from typing import Any

import httpx2
import pytest

from agent.errors import ErrorKind
from agent.models.failures import masked, of_exception, of_payload

K = ErrorKind


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def openai(code: str | None, message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (401, anthropic("authentication_error", "invalid x-api-key"), K.AUTH),
        (403, anthropic("permission_error", "not for this key"), K.AUTH),
        (400, [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}], K.AUTH),
        (401, openai("invalid_api_key", "Incorrect API key provided: sk-a***b."), K.AUTH),
        (402, "Payment Required", K.BILLING),
        (400, anthropic("invalid_request_error", "Your credit balance is too low to access the API"), K.BILLING),
        (429, openai("insufficient_quota", "You exceeded your current quota", "insufficient_quota"), K.BILLING),
        (429, openai("rate_limit_exceeded", "Rate limit reached", "requests"), K.RATE_LIMIT),
        (429, anthropic("rate_limit_error", "This would exceed the limit of input tokens per minute"), K.RATE_LIMIT),
        (429, [{"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED"}}],
         K.RATE_LIMIT),
        (529, anthropic("overloaded_error", "Overloaded"), K.OVERLOADED),
        (503, openai(None, "The engine is overloaded", "service_unavailable_error"), K.OVERLOADED),
        (500, anthropic("api_error", "Internal server error"), K.OVERLOADED),
        (502, "<html>Bad gateway</html>", K.OVERLOADED),
        (504, anthropic("timeout_error", "Request timed out"), K.TIMEOUT),
        (408, "", K.TIMEOUT),
        (413, anthropic("request_too_large", "Request exceeds the maximum size"), K.CONTEXT_OVERFLOW),
        (400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
         K.CONTEXT_OVERFLOW),
        (400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000"),
         K.CONTEXT_OVERFLOW),
        (400, openai("context_length_exceeded", "This model's maximum context length is 8192 tokens."),
         K.CONTEXT_OVERFLOW),
        (400, openai(None, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
         K.CONTEXT_OVERFLOW),
        (400, {"object": "error", "message": "Please reduce the length of the messages or completion.", "code": 400},
         K.CONTEXT_OVERFLOW),
        (500, {"error": "input length exceeds the context length"}, K.CONTEXT_OVERFLOW),
        (400, {"error": {"message": "request (9000 tokens) exceeds the available context size (4096 tokens)"}},
         K.CONTEXT_OVERFLOW),
        (400, openai("content_filter", "The response was filtered"), K.CONTENT_FILTER),
        (400, {"error": {"message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, K.CONTENT_FILTER),
        (400, anthropic("invalid_request_error", "Output blocked by content filtering policy"), K.CONTENT_FILTER),
        (400, anthropic("invalid_request_error", "thinking.type.adaptive: not supported on this model"),
         K.THINKING_UNSUPPORTED),
        (400, openai(None, "Unrecognized request argument supplied: reasoning_effort"), K.THINKING_UNSUPPORTED),
        (400, anthropic("invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block"),
         K.INVALID_REQUEST),
        (404, openai("model_not_found", "The model `x` does not exist"), K.MODEL_NOT_FOUND),
        (403, openai("model_not_found", "Project `proj_1` does not have access to model `x`"), K.MODEL_NOT_FOUND),
        (404, anthropic("not_found_error", "model: claude-x"), K.MODEL_NOT_FOUND),
        (404, openai(None, 'model "x" not found, try pulling it first', "api_error"), K.MODEL_NOT_FOUND),
        (404, {"error": "model 'x' not found"}, K.MODEL_NOT_FOUND),
        (404, "404 page not found", K.MODEL_NOT_FOUND),
        (400, {"error": {"message": "some/gpt-4.1 is not a valid model ID", "code": 400}}, K.MODEL_NOT_FOUND),
        (400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"},
         K.MODEL_NOT_FOUND),
        (400, openai("invalid_request_error", "Model Not Exist"), K.MODEL_NOT_FOUND),
        (None, openai("model_not_found", "The model `x` does not exist"), K.MODEL_NOT_FOUND),
        (400, openai(None, "This model does not support tools"), K.INVALID_REQUEST),
        (403, openai("unsupported_country_region_territory", "Country, region, or territory not supported",
                     "request_forbidden"), K.REGION),
        (400, [{"error": {"message": "User location is not supported for the API use.",
                          "status": "FAILED_PRECONDITION"}}], K.REGION),
        (403, anthropic("forbidden", "Request not allowed"), K.REGION),
        (451, "", K.REGION),
        (422, {"detail": [{"msg": "field required"}]}, K.INVALID_REQUEST),
        (400, None, K.INVALID_REQUEST),
        (302, "", K.UNKNOWN),
        (None, anthropic("overloaded_error", "Overloaded"), K.OVERLOADED),
        (None, anthropic("api_error", "Internal server error"), K.OVERLOADED),
        (None, anthropic("rate_limit_error", "slow down"), K.RATE_LIMIT),
        (None, anthropic("invalid_request_error", "something"), K.INVALID_REQUEST),
        (None, {"error": {"message": "Provider returned error: server is busy", "code": 502}}, K.OVERLOADED),
        (None, {"error": "something broke"}, K.UNKNOWN),
        (None, {"error": {"message": "Rate limit exceeded: free-models-per-min.", "code": 429}}, K.RATE_LIMIT),
        (None, {"error": {"message": "No auth credentials found", "code": 401}}, K.AUTH),
        (None, {"error": {"message": "Provider returned error", "code": 502}}, K.OVERLOADED),
        (None, {"error": {"message": "exceeded token rate limit", "code": "429"}}, K.RATE_LIMIT),
        (400, anthropic("invalid_request_error", "You have reached your specified API usage limits. You will regain"
                        " access on 2026-12-01 at 00:00 UTC."), K.BILLING),
        (429, {"error": {"code": "1113", "message": "Insufficient balance or no resource package."}}, K.BILLING),
        (403, {"error": "Your team has either used all available credits or reached its limit."}, K.BILLING),
        (429, openai(None, "please check your plan", "exceeded_current_quota_error"), K.BILLING),
        (429, openai("rate_limit_exceeded", "Request too large for gpt-4o on tokens per min (TPM): Limit 30000,"
                     " Requested 40123. The input or output tokens must be reduced.", "tokens"), K.CONTEXT_OVERFLOW),
        (400, openai("1261", "Prompt exceeds max length"), K.CONTEXT_OVERFLOW),
        (400, openai(None, "Range of input length should be [1, 129024]"), K.CONTEXT_OVERFLOW),
        (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"},
         K.CONTEXT_OVERFLOW),
        (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000"}, K.CONTEXT_OVERFLOW),
        (400, {"error": {"message": "Unsupported value: 'xhigh' is not supported with this model.", "type": "x",
                         "param": "reasoning.effort", "code": "unsupported_value"}}, K.THINKING_UNSUPPORTED),
    ],
)  # fmt: skip
def test_kinds(status: int | None, payload: Any, kind: ErrorKind) -> None:
    assert of_payload(payload, (), status).kind is kind


def test_the_detail_says_what_the_provider_said() -> None:
    error = of_payload(anthropic("overloaded_error", "Please\nwait"), (), 529)
    assert (error.detail, error.status) == ("HTTP 529 overloaded_error: Please wait", 529)


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, "", 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 0.0),
        ({"retry-after": "Wed, 21 Oct 1998 07:28:00 GMT"}, "", 0.0),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "inf"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({}, "Rate limit reached. Please try again in 6.5s.", 6.5),
        ({}, "Please try again in 120ms.", 0.12),
        ({}, "Please retry in 34.07s.", 34.07),
        ({}, "Try again in 2 minutes.", 120.0),
        ({}, "Rate limit reached.", None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], message: str, seconds: float | None) -> None:
    wait = of_payload(openai("rate_limit_exceeded", message), (), 429, headers).retry_after
    assert wait == (seconds if seconds is None else pytest.approx(seconds))


def test_no_key_reaches_the_detail() -> None:
    key = "my-very-own-key"
    echo = f"Incorrect API key provided: {key}. Header was Bearer {key}; also sk-proj-AbCdEfGh1234 and AIza{'x' * 30}"
    for error in (of_payload(openai(None, echo), (key,), 401), of_exception(OSError(echo), (key,))):
        assert key not in str(error)
        assert "AbCdEfGh" not in error.detail
        assert "xxxxx" not in error.detail
    assert masked("a b", ("", "a")) == "a b"


def test_a_long_detail_is_shortened() -> None:
    assert len(of_payload("x " * 5000, (), 500).detail) < 500


REQUEST = httpx2.Request("POST", "http://127.0.0.1/")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectError("refused"), K.NETWORK),
        (httpx2.ConnectTimeout("late"), K.NETWORK),
        (httpx2.RemoteProtocolError("peer closed connection"), K.NETWORK),
        (httpx2.ReadError(""), K.NETWORK),
        (httpx2.DecodingError("not gzip"), K.NETWORK),
        (httpx2.ReadTimeout("silent"), K.TIMEOUT),
        (httpx2.UnsupportedProtocol("no http://"), K.INVALID_REQUEST),
        (ConnectionResetError("reset"), K.NETWORK),
        (KeyError("index"), K.UNKNOWN),
    ],
)
def test_exceptions(error: Exception, kind: ErrorKind) -> None:
    assert of_exception(error, ()).kind is kind
    wrapped = RuntimeError("Connection error.")
    wrapped.__cause__ = error
    if isinstance(error, httpx2.HTTPError):
        assert of_exception(wrapped, ()).kind is kind
