"""A stand-in for Anthropic's Messages API on loopback: strict about requests, exact about its event stream.

    async with AnthropicServer() as server:
        server.add(Think("hm"), Call("read", {"path": "a.txt"}))
        server.add(Say("done"))
        client = anthropic.AsyncAnthropic(base_url=server.url, api_key="test-key", max_retries=0)

Rules are in `anthropic_rules.py`, the script's words in `script.py`, waiting and checks in `model_server.py`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from aiohttp import web

from tests.standins import anthropic_rules as rules
from tests.standins.anthropic_signatures import redact, sign, tool_use_id
from tests.standins.model_server import ModelServer, Refused
from tests.standins.prompt_cache import CacheUse, PromptCache
from tests.standins.request_log import Request, canonical, canonical_system
from tests.standins.script import Call, Fail, Say, Think
from tests.standins.shapes import Wrong

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STOPS = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
)

_ids = itertools.count(1)


class AnthropicServer(ModelServer):
    """POST /v1/messages, streaming or not. `abilities` says what its model takes (thinking, sizes).

    `cache_minimum`: tokens below which a prompt is not cached.
    """

    path = "/v1/messages"
    default_kinds: ClassVar = KINDS

    def __init__(self, *, abilities: rules.Abilities | None = None, cache_minimum: int = 1024, **options: Any) -> None:
        super().__init__(**options)
        self.abilities = abilities or rules.Abilities()
        self._cache = PromptCache(cache_minimum)

    def key_of(self, request: web.BaseRequest) -> str:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = request.headers.get("x-api-key") or (bearer if scheme == "Bearer" else "")
        if not key:
            raise Refused(401, KINDS[401], "An Authorization or x-api-key header is required.")
        if key not in self.keys:
            raise Refused(401, KINDS[401], "invalid API key")
        return key

    def examine(self, request: web.BaseRequest, body: dict[str, object]) -> None:
        version = request.headers.get("anthropic-version")
        if not version:
            raise Refused(400, KINDS[400], "anthropic-version: header is required")
        if version not in rules.VERSIONS:
            raise Refused(400, KINDS[400], f'anthropic-version: "{version}" is not a valid version')
        try:
            rules.examine(body, self.abilities, version)
        except Wrong as wrong:
            raise Refused(400, KINDS[400], f"{'.'.join(map(str, wrong.path))}: {wrong.text}") from None
        except rules.Unfit as unfit:
            raise Refused(400, KINDS[400], str(unfit)) from None
        if self.models is not None and body["model"] not in self.models:
            raise Refused(404, KINDS[404], f"model: {body['model']}")
        tokens = sum(len(text) for text, _ in _prompt(body)) // 4
        if tokens > self.abilities.context_window:
            limit = self.abilities.context_window
            raise Refused(400, KINDS[400], f"prompt is too long: {tokens} tokens > {limit} maximum")

    def wire(self, request: Request) -> AnthropicWire:
        use = self._cache.use(request.model, _prompt(request.body)) if self.strict else CacheUse(0, 0, 10)
        return AnthropicWire(request.body, use)

    def error_body(self, status: int, kind: str | None, message: str, param: str | None) -> dict[str, object]:
        error = {"type": kind or KINDS.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": f"req_{next(_ids):024x}"}


def _prompt(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """The prompt as the cache sees it: tools, system, blocks of messages, each with whether it is marked."""
    blocks = [(canonical(tool), bool(tool.get("cache_control"))) for tool in body.get("tools", ())]
    system = body.get("system") or []
    if isinstance(system, str):
        blocks.append((canonical_system(system), False))
    else:
        blocks += [(canonical(block), bool(block.get("cache_control"))) for block in system]
    for message in body["messages"]:
        for block in rules.blocks_of(message):
            blocks.append((message["role"] + canonical(block), bool(block.get("cache_control"))))
    if body.get("cache_control"):
        blocks[-1] = (blocks[-1][0], True)
    return blocks


class AnthropicWire:
    """One answer as `Streaming Messages` documents it; implements `model_server.Wire`."""

    def __init__(self, body: dict[str, Any], use: CacheUse) -> None:
        self._id = f"msg_{next(_ids):024x}"
        self._model = body["model"]
        self._hide = (body.get("thinking") or {}).get("display") == "omitted"
        self._use = use
        self._index = -1
        self._spoken = 0
        self._thought = 0
        self._signatures: list[str] = []
        self._pinged = False
        self._last: Say | Think | Call | None = None

    def start(self) -> bytes:
        return _event("message_start", message=self._message([], None, {**self._input(), "output_tokens": 1}))

    def open(self, part: Say | Think | Call) -> bytes:
        self._index += 1
        opening = self._block(part)
        match part:
            case Say():
                opening["text"] = ""
            case Think(redacted=False):
                opening.update(thinking="", signature="")
        events = _event("content_block_start", index=self._index, content_block=opening)
        if isinstance(part, Call):
            events += self._delta({"type": "input_json_delta", "partial_json": ""})
        if not self._pinged:
            self._pinged = True
            events += self.ping()
        return events

    def delta(self, part: Say | Think | Call, piece: str) -> bytes:
        tokens = max(1, len(piece) // 4)
        self._spoken += tokens
        match part:
            case Say():
                return self._delta({"type": "text_delta", "text": piece})
            case Call():
                return self._delta({"type": "input_json_delta", "partial_json": piece})
        self._thought += tokens
        return b"" if self._hide else self._delta({"type": "thinking_delta", "thinking": piece})

    def close(self, part: Say | Think | Call) -> bytes:
        events = b""
        if isinstance(part, Think) and not part.redacted:
            events = self._delta({"type": "signature_delta", "signature": self._signatures[-1]})
        return events + _event("content_block_stop", index=self._index)

    def ping(self) -> bytes:
        return _event("ping")

    def fail(self, part: Fail) -> bytes:
        kind = part.kind or KINDS.get(part.status, "api_error")
        return _event("error", error={"type": kind, "message": part.message or "A scripted failure."})

    def finish(self, reason: str | None) -> bytes:
        details = _details(reason)
        delta = {"stop_reason": self._reason(reason), "stop_sequence": None, **details}
        return _event("message_delta", delta=delta, usage={**self._input(), **self._output()}) + _event("message_stop")

    def message(self, parts: Sequence[Say | Think | Call], reason: str | None) -> dict[str, object]:
        blocks = []
        for part in parts:
            block = self._block(part)
            if isinstance(part, Call):
                block["input"] = json.loads(part.raw)
            blocks.append(block)
            for piece in part.pieces():
                self.delta(part, piece)
        usage = {**self._input(), **self._output()}
        return {**self._message(blocks, self._reason(reason), usage), **_details(reason)}

    def _block(self, part: Say | Think | Call) -> dict[str, object]:
        self._last = part
        match part:
            case Say():
                return {"type": "text", "text": part.text}
            case Call():
                call = part.id or tool_use_id(next(_ids), self._signatures)
                return {"type": "tool_use", "id": call, "name": part.name, "input": {}}
            case Think(redacted=True):
                self._signatures.append(redact(part.text))
                return {"type": "redacted_thinking", "data": self._signatures[-1]}
        shown = "" if self._hide else part.text
        self._signatures.append(sign(shown, part.text))
        return {"type": "thinking", "thinking": shown, "signature": self._signatures[-1]}

    def _reason(self, reason: str | None) -> str:
        if reason is None:
            return "tool_use" if isinstance(self._last, Call) else "end_turn"
        if reason not in STOPS:
            raise ValueError(f"no stop reason of this API: {reason}")
        return reason

    def _message(self, blocks: Sequence[object], reason: str | None, usage: dict[str, object]) -> dict[str, object]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {**usage, "service_tier": "standard"},
        }

    def _input(self) -> dict[str, object]:
        return {
            "input_tokens": self._use.plain,
            "cache_creation_input_tokens": self._use.written,
            "cache_read_input_tokens": self._use.read,
        }

    def _output(self) -> dict[str, object]:
        return {
            "output_tokens": max(1, self._spoken),
            "output_tokens_details": {"thinking_tokens": self._thought},
        }

    def _delta(self, delta: dict[str, object]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)


def _details(reason: str | None) -> dict[str, object]:
    if reason != "refusal":
        return {}
    return {"stop_details": {"type": "refusal", "category": None, "explanation": None}}


def _event(kind: str, **data: object) -> bytes:
    text = json.dumps({"type": kind, **data}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {text}\n\n".encode()
