"""A stand-in on loopback for OpenAI's chat completions; the one for Ollama is made of it, in `ollama_server.py`.

    async with OpenAIServer() as server:
        server.add(Say("hello"), Call("read", {"path": "a.txt"}))
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="test-key", max_retries=0)

Rules are in `openai_rules.py`, the script's words in `script.py`, waiting and checks in `model_server.py`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from aiohttp import web

from tests.standins import openai_rules as rules
from tests.standins.model_server import ModelServer, Refused
from tests.standins.prompt_cache import CacheUse, PromptCache
from tests.standins.request_log import Request, canonical
from tests.standins.script import Call, Fail, Say, Think
from tests.standins.shapes import Wrong

CREATED = 1_760_000_000
"""`created` of every answer, in Unix seconds."""

TYPES = {
    401: "invalid_request_error",
    403: "invalid_request_error",
    429: "requests",
    500: "server_error",
    503: "service_unavailable_error",
}
CODES = {
    400: "",
    401: "invalid_api_key",
    403: "unsupported_country_region_territory",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    500: "",
    503: "server_is_overloaded",
}
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}

_ids = itertools.count(1)


class OpenAIServer(ModelServer):
    """POST /v1/chat/completions, streaming or not, and GET /v1/models.

    `reasoning`: the delta field in which a compatible server shows its thinking; OpenAI itself shows none.
    """

    path = "/v1/chat/completions"
    default_kinds: ClassVar = CODES

    def __init__(
        self,
        *,
        reasoning: Literal["reasoning_content", "reasoning"] | None = None,
        context_window: int = 400_000,
        cache_minimum: int = 1024,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.reasoning = reasoning
        self.context_window = context_window
        self._cache = PromptCache(cache_minimum)

    @property
    def base_url(self) -> str:
        """What a client takes as `base_url`."""
        return f"{self.url}/v1"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/v1/models", self._list_models)

    def key_of(self, request: web.BaseRequest) -> str:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not key:
            raise Refused(401, None, "You didn't provide an API key.")
        if key not in self.keys:
            raise Refused(401, "invalid_api_key", f"Incorrect API key provided: {key[:3]}***.")
        return key

    def examine(self, request: web.BaseRequest, body: dict[str, Any]) -> None:
        try:
            rules.examine(body)
        except Wrong as wrong:
            param = rules.param_of(wrong)
            raise Refused(400, rules.code_of(wrong), f"Invalid '{param}': {wrong.text}.", param) from None
        except rules.Unfit as unfit:
            raise Refused(400, unfit.code or "", unfit.message, unfit.param) from None
        if self.models is not None and body["model"] not in self.models:
            text = f"The model `{body['model']}` does not exist or you do not have access to it."
            raise Refused(404, "model_not_found", text)
        tokens = tokens_of(body)
        if tokens > self.context_window:
            text = f"This model's maximum context length is {self.context_window} tokens."
            text = f"{text} However, your messages resulted in {tokens} tokens."
            raise Refused(400, "context_length_exceeded", text, "messages")

    def wire(self, request: Request) -> OpenAIWire:
        return OpenAIWire(request.body, self._use(request), self.reasoning)

    def _use(self, request: Request) -> CacheUse:
        return self._cache.use(request.model, _prompt(request.body)) if self.strict else CacheUse(0, 0, 10)

    def error_body(self, status: int, kind: str | None, message: str, param: str | None) -> dict[str, object]:
        code = kind if kind is not None or status == 401 else CODES.get(status)
        type_ = "insufficient_quota" if code == "insufficient_quota" else TYPES.get(status, "invalid_request_error")
        return {"error": {"message": message, "type": type_, "param": param, "code": code or None}}

    def error_headers(self, fail: Fail) -> dict[str, str]:
        if fail.retry_after is None:
            return {}
        return {
            "retry-after": f"{fail.retry_after:g}",
            "retry-after-ms": f"{fail.retry_after * 1000:g}",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": f"{fail.retry_after:g}s",
        }

    async def _list_models(self, http: web.Request) -> web.Response:
        try:
            self.key_of(http)
        except Refused as refused:
            return web.json_response(self.error_body(401, refused.kind, refused.message, None), status=401)
        models = [
            {"id": name, "object": "model", "created": CREATED, "owned_by": "system"} for name in self.models or ()
        ]
        return web.json_response({"object": "list", "data": models})


def tokens_of(body: dict[str, Any]) -> int:
    """The tokens of a request, about."""
    return sum(len(text) for text, _ in _prompt(body)) // 4


def _prompt(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """The prompt as the cache sees it; OpenAI marks every message by itself."""
    return [(canonical(item), True) for item in (*body.get("tools", ()), *body["messages"])]


class OpenAIWire:
    """One answer as `Streaming` documents it; implements `model_server.Wire`."""

    def __init__(self, body: dict[str, Any], use: CacheUse, reasoning: str | None) -> None:
        self._model = body["model"]
        self._id = f"chatcmpl-{next(_ids):029x}"
        options = body.get("stream_options") or {}
        self._usage_wanted = bool(options.get("include_usage"))
        self._padded = options.get("include_obfuscation", True)
        self._use = use
        self._reasoning = reasoning
        self._calls = -1
        self._spoken = 0
        self._thought = 0

    def start(self) -> bytes:
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def open(self, part: Say | Think | Call) -> bytes:
        if not isinstance(part, Call):
            return b""
        return self._chunk({"tool_calls": [{"index": self._next_call(), **self._call(part, "")}]})

    def delta(self, part: Say | Think | Call, piece: str) -> bytes:
        self._count(part, piece)
        match part:
            case Say():
                return self._chunk({"content": piece})
            case Call():
                return self._chunk({"tool_calls": [{"index": self._calls, "function": {"arguments": piece}}]})
        return self._chunk({self._reasoning: piece}) if self._reasoning else b""

    def close(self, part: Say | Think | Call) -> bytes:
        return b""

    def ping(self) -> bytes:
        return b": keep-alive\n\n"

    def fail(self, part: Fail) -> bytes:
        type_ = TYPES.get(part.status, "invalid_request_error")
        code = part.kind or CODES.get(part.status) or None
        error = {"message": part.message or "A scripted failure.", "type": type_, "param": None, "code": code}
        return line({"error": error})

    def finish(self, reason: str | None) -> bytes:
        events = self._chunk({}, self._reason(reason))
        if self._usage_wanted:
            events += line({**self._head(), "choices": [], "usage": self._usage()})
        return events + b"data: [DONE]\n\n"

    def message(self, parts: Sequence[Say | Think | Call], reason: str | None) -> dict[str, object]:
        text = ""
        calls = []
        thoughts = ""
        for part in parts:
            for piece in part.pieces():
                self._count(part, piece)
            match part:
                case Say():
                    text += part.text
                case Think():
                    thoughts += part.text
                case Call():
                    self._next_call()
                    calls.append(self._call(part, part.raw))
        message: dict[str, object] = {"role": "assistant", "content": text or None, "refusal": None}
        if calls:
            message["tool_calls"] = calls
        if thoughts and self._reasoning:
            message[self._reasoning] = thoughts
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(reason)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    def _reason(self, reason: str | None) -> str:
        if reason is None:
            return "tool_calls" if self._calls >= 0 else "stop"
        if reason not in FINISHES:
            raise ValueError(f"no finish reason of this API: {reason}")
        return FINISHES[reason]

    def _next_call(self) -> int:
        self._calls += 1
        return self._calls

    def _call(self, part: Call, arguments: str) -> dict[str, object]:
        function = {"name": part.name, "arguments": arguments}
        return {"id": part.id or f"call_{next(_ids):024x}", "type": "function", "function": function}

    def _count(self, part: Say | Think | Call, piece: str) -> None:
        tokens = max(1, len(piece) // 4)
        self._spoken += tokens
        if isinstance(part, Think):
            self._thought += tokens

    def _usage(self) -> dict[str, object]:
        prompt = self._use.read + self._use.written + self._use.plain
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self._spoken,
            "total_tokens": prompt + self._spoken,
            "prompt_tokens_details": {"cached_tokens": self._use.read // 128 * 128, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": self._thought, "audio_tokens": 0},
        }

    def _head(self, kind: str = "chat.completion.chunk") -> dict[str, object]:
        return {
            "id": self._id,
            "object": kind,
            "created": CREATED,
            "model": self._model,
            "service_tier": "default",
            "system_fingerprint": None,
        }

    def _chunk(self, delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk: dict[str, object] = {**self._head(), "choices": [choice]}
        if self._usage_wanted:
            chunk["usage"] = None
        if self._padded:
            chunk["obfuscation"] = "Yp3kQ"
        return line(chunk)


def line(data: dict[str, object]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
