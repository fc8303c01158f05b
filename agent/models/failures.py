"""Classifies failed model calls: HTTP errors, error events in a stream, and broken connections become a ModelError.

All clients use it, because compatible servers mix the vendors' formats. Words such as "context length" are looked for
in error payloads only, never in what a model wrote. No key gets into the detail of an error.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.errors import ErrorKind, ModelError

_DETAIL = 400

_BILLING_CODES = {
    *("insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_balance"),
    "exceeded_current_quota_error",
}
_BILLING = re.compile(
    r"credit balance is too low|insufficient (credits?|balance|funds)|payment required|billing hard limit"
    r"|purchase credits|specified (workspace )?api usage limits|used all (of its |your )?available credits"
)
_REGION_CODES = {"unsupported_country_region_territory"}
_REGION = re.compile(
    r"(country|region|territory|location).{0,30}(not|un)[ -]?(supported|available|allowed)"
    r"|unsupported (country|region|territory|location)|request not allowed"
)
_MODEL_CODES = {"model_not_found", "invalid_model", "deploymentnotfound"}
_MODEL = re.compile(
    r"model.{0,80}(not found|(does not|doesn't|not) exist)|(invalid|unknown) model\b|not a valid model|no such model"
    r"|not have access to (the )?model"
)
_AUTH_CODES = {"authentication_error", "permission_error", "invalid_api_key", "permission_denied", "unauthenticated"}
_AUTH = re.compile(
    r"api key not valid|(invalid|incorrect) (x-)?api[- ]key|api key (is )?(invalid|expired)|unauthorized"
)
_OVERFLOW_CODES = {"context_length_exceeded", "request_too_large", "model_context_window_exceeded"}
_OVERFLOW = re.compile(
    r"prompt is too long|input is too long|input length and .{0,20}max_tokens. exceed|context (length|window|size)"
    r"|maximum context|context[_ ]limit|exceeds? the (model'?s )?(maximum|available) (context|number of tokens)"
    r"|(input|prompt) token count .{0,40}(exceeds|only supports)|too many (input )?tokens|maximum (prompt|input) length"
    r"|prompt too long|token limit exceeded|exceeded model token limit|reduce the length of the (messages|prompt|input)"
    r"|(request|prompt) \(\d+ tokens\) exceeds|larger than the model'?s? context|request (entity )?too large"
    r"|longer than the maximum model length|`inputs`.{0,40} (tokens.{0,40} must be <=|must have less than)"
    r"|prompt exceeds max length|range of input length|'(messages|input)\[.{0,60}string too long"
)
# A request that is larger than what a minute allows never fits, however long one waits.
_NEVER_FITS = re.compile(r"request too large .{0,200}tokens per min|(input or output )?tokens must be reduced")
_FILTER_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
_FILTER = re.compile(r"content (filter|management|moderation)|content[_ ]policy|flagged by .{0,30}moderation")
_THINKING = re.compile(r"thinking|reasoning[._ ]?effort|output_config\.effort|budget_tokens")
_RATE = "rate_limit_error rate_limit_exceeded resource_exhausted too_many_requests throttlingexception"
_RATE_CODES = frozenset(_RATE.split())
_OVERLOADED_CODES = {"overloaded_error", "overloaded", "server_is_overloaded", "engine_overloaded", "unavailable"}
_OVERLOADED = re.compile(r"overloaded|at capacity|high demand|temporarily unavailable|server is busy")
_SERVER_CODES = {"api_error", "server_error", "internal_server_error", "internal_error", "service_unavailable_error"}
_WAIT = re.compile(r"(?:try again|retry) in (\d+(?:\.\d+)?) ?(ms|s|seconds?|m|minutes?)\b")
# A place in a body: messages.3.content.1.image, input[4].content, tools[0].function.parameters, "messages", 3.
_PLACE = re.compile(r"\b(?:messages|input|tools)(?:['\"]?[.,\[ ]{1,3}['\"]?\w{1,40}\]?){1,12}")
_KEYS = re.compile(r"\b(?:sk|xai|gsk|key|pk|or)-[A-Za-z0-9*_-]{8,}|\bAIza[A-Za-z0-9_-]{20,}|(?<=Bearer )\S+")


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return the text on one line, shortened, without the secrets and anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "<key>")
    text = _KEYS.sub("<key>", " ".join(text.split()))
    return text if len(text) <= _DETAIL else text[:_DETAIL] + "…"


def of_exception(error: Exception, secrets: Iterable[str], body: Mapping[str, object] | None = None) -> ModelError:
    """Classify an exception of an SDK or its HTTP library, raised before or during the stream.

    body: of the request, in which places are looked up that the words name.
    """
    import httpx2

    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        response = getattr(error, "response", None)
        found = of_payload(getattr(error, "body", None), secrets, status, getattr(response, "headers", None) or {})
        found.named = named(body or {}, found.detail)
        return found
    cause = error.__cause__ if isinstance(error.__cause__, httpx2.HTTPError) else error
    detail = masked(f"{type(cause).__name__}: {cause}", secrets)
    if isinstance(cause, httpx2.ReadTimeout | httpx2.WriteTimeout | httpx2.PoolTimeout):
        return ModelError(ErrorKind.TIMEOUT, detail)
    if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.TooManyRedirects):
        return ModelError(ErrorKind.INVALID_REQUEST, detail)
    if isinstance(cause, httpx2.HTTPError | OSError) or type(error).__name__ == "APIConnectionError":
        return ModelError(ErrorKind.NETWORK, detail)
    return ModelError(ErrorKind.UNKNOWN, detail)


def named(body: Mapping[str, object], words: str) -> Mapping[str, Any]:
    """Return the innermost member of a list of a body at the first place that words name; empty: they name none."""
    for place in _PLACE.finditer(words):
        found: Mapping[str, Any] = {}
        where: Any = body
        for step in re.findall(r"\w+", re.sub(r"tools\W+0\W+function_declarations", "tools", place[0])):
            if isinstance(where, list) and step.isdecimal() and int(step) < len(where):
                where = where[int(step)]
                found = where if isinstance(where, dict) else found
            elif isinstance(where, dict) and step in where:
                where = where[step]
        if found:
            return found
    return {}


def of_payload(
    payload: Any, secrets: Iterable[str], status: int | None = None, headers: Mapping[str, str] | None = None
) -> ModelError:
    """Classify an HTTP error (with a status), or an error event in a stream (without).

    payload: the parsed JSON in any vendor's format, or text. SDKs give the whole body or only its `error` member.
    """
    codes, message = _read(payload)
    words = message.lower()
    kind = _kind(status or _status_of(payload), codes, words)
    label = " ".join([f"HTTP {status}" if status else "error event", *sorted(codes)])
    return ModelError(kind, masked(f"{label}: {message}", secrets), _retry_after(headers or {}, words), status)


def of_unfinished(head: bytes, secrets: Iterable[str]) -> ModelError:
    """Classify an answer that ended too early. head: what came, if there was no event in it.

    Some servers send an error as plain JSON though the HTTP status says that all is well.
    """
    try:
        payload = json.loads(head)
    except (ValueError, RecursionError):
        payload = None
    if isinstance(payload, dict) and payload.get("error"):
        return of_payload(payload, secrets)
    return ModelError(ErrorKind.NETWORK, "the stream ended before the answer was complete")


def _read(payload: Any) -> tuple[set[str], str]:
    """Return the codes, in lower case, and the message of an error payload."""
    if isinstance(payload, list) and payload:  # Gemini wraps the object in a list
        payload = payload[0]
    if not isinstance(payload, dict):
        return set(), str(payload or "")
    error = payload.get("error", payload)
    if not isinstance(error, dict):  # Ollama: {"error": "words"}
        return set(), str(error)
    inner = error.get("innererror")  # where Azure says that it was the filter
    found = [error.get("type"), error.get("code"), error.get("status")]
    found += [inner.get("code")] if isinstance(inner, dict) else []
    codes = {str(code).lower() for code in found if isinstance(code, str) and code != "error"}
    message, field = error.get("message"), error.get("param")
    if isinstance(message, str) and isinstance(field, str) and field not in message:
        message = f"{message} ({field})"
    about = error.get("metadata")
    if isinstance(message, str) and isinstance(about, dict) and isinstance(about.get("raw"), str):
        message = f"{message}: {about['raw']}"  # what the provider behind OpenRouter has said
    return codes, message if isinstance(message, str) else json.dumps(error, ensure_ascii=False, default=str)


def _status_of(payload: Any) -> int | None:
    """Return the status that an error event names as its code, such as OpenRouter's after the HTTP status was sent."""
    error = payload.get("error", payload) if isinstance(payload, dict) else None
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch("[45][0-9][0-9]", code) else None


def _kind(status: int | None, codes: set[str], words: str) -> ErrorKind:
    """Return the kind of an error; what the payload says explicitly counts before what the status means in general."""
    client_error = status in (None, 400, 413, 422)
    if status == 402 or codes & _BILLING_CODES or ((client_error or status in (403, 429)) and _BILLING.search(words)):
        return ErrorKind.BILLING
    if status == 451 or codes & _REGION_CODES or (status in (400, 403) and _REGION.search(words)):
        return ErrorKind.REGION
    if status == 404 or codes & _MODEL_CODES or (status in (400, 403, 422) and _MODEL.search(words)):
        return ErrorKind.MODEL_NOT_FOUND
    if status in (401, 403) or codes & _AUTH_CODES or (client_error and _AUTH.search(words)):
        return ErrorKind.CONTENT_FILTER if codes & _FILTER_CODES else ErrorKind.AUTH
    if status == 413 or codes & _OVERFLOW_CODES or (status == 429 and _NEVER_FITS.search(words)):
        return ErrorKind.CONTEXT_OVERFLOW
    if status == 429 or codes & _RATE_CODES:
        return ErrorKind.RATE_LIMIT
    if (client_error or status == 500) and _OVERFLOW.search(words):  # local servers answer 500
        return ErrorKind.CONTEXT_OVERFLOW
    if codes & _FILTER_CODES or (client_error and _FILTER.search(words)):
        return ErrorKind.CONTENT_FILTER
    if status in (400, 422) and _THINKING.search(words) and "signature" not in words:
        return ErrorKind.THINKING_UNSUPPORTED
    return _general_kind(status, codes, words)


def _general_kind(status: int | None, codes: set[str], words: str) -> ErrorKind:
    if status in (408, 504) or "timeout_error" in codes:
        return ErrorKind.TIMEOUT
    if codes & (_OVERLOADED_CODES | _SERVER_CODES) or (status is None and _OVERLOADED.search(words)):
        return ErrorKind.OVERLOADED
    if status is None:
        return ErrorKind.INVALID_REQUEST if "invalid_request_error" in codes else ErrorKind.UNKNOWN
    if status in (500, 502, 503) or 520 <= status <= 530:  # a retry is all that can help
        return ErrorKind.OVERLOADED
    return ErrorKind.INVALID_REQUEST if 400 <= status < 500 else ErrorKind.UNKNOWN


def _retry_after(headers: Mapping[str, str], words: str) -> float | None:
    """Return the seconds to wait: from `retry-after-ms`, `retry-after` as seconds or date, else from the message."""
    after, said = headers.get("retry-after"), _WAIT.search(words)
    unit = 0.001 if said and said[2] == "ms" else 60 if said and said[2].startswith("m") else 1
    waits = (
        _number(headers.get("retry-after-ms"), 0.001),
        _number(after),
        _until(after, headers.get("date")),
        _number(said and said[1], unit),
    )
    return next((max(0.0, wait) for wait in waits if wait is not None), None)


def _number(text: str | None, unit: float = 1) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number * unit if math.isfinite(number) else None


def _until(date: str | None, server_now: str | None) -> float | None:
    """Return the seconds from now to an HTTP date, by the server's clock if it sent its time; None: it is no date."""
    try:
        now = parsedate_to_datetime(server_now) if server_now else datetime.now(UTC)
        return (parsedate_to_datetime(date or "") - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
