"""A stand-in on loopback for Ollama: chat completions like OpenAI's, and what of its own API is about contexts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from tests.standins.model_server import Refused
from tests.standins.openai_server import CREATED, OpenAIServer, OpenAIWire, line, tokens_of
from tests.standins.prompt_cache import CacheUse
from tests.standins.request_log import Request
from tests.standins.script import Call, Say, Think


class OllamaServer(OpenAIServer):
    """A local Ollama: no key, unknown fields ignored, only its own models, whole tool calls in one chunk.

    `GET /`, `/api/version` and `/api/tags` answer a probe. `models` are the names it has pulled. A model is loaded with
    its parameter `num_ctx`, else with `default_context` tokens, at most `trained`; chat completions cannot say it, and
    the oldest messages that do not fit are left out: `seen` has the messages that remained, of each request, and
    `shifted` counts answers that could have pushed the beginning out. https://docs.ollama.com/context-length
    """

    def __init__(
        self,
        *,
        models: Sequence[str] = ("qwen3:8b",),
        default_context: int = 4096,
        trained: int = 131_072,
        **options: Any,
    ) -> None:
        super().__init__(models=models, reasoning="reasoning", **options)
        self.default_context, self.trained = default_context, trained
        self.parameters: dict[str, dict[str, Any]] = {}
        self.bases: dict[str, str] = {}
        self.running: dict[str, tuple[str, int]] = {}
        self.seen: list[list[dict[str, Any]]] = []
        self.shifted = 0
        self.calls: list[str] = []
        self.pulled: list[str] = []
        self.refuses_create = False

    def add_routes(self, app: web.Application) -> None:
        super().add_routes(app)
        app.router.add_get("/", self._root)
        app.router.add_get("/api/version", self._version)
        app.router.add_get("/api/tags", self._tags)
        app.router.add_get("/api/ps", self._ps)
        app.router.add_post("/api/show", self._show)
        app.router.add_post("/api/generate", self._generate)
        app.router.add_post("/api/create", self._create)

    def named(self, model: object) -> str:
        """The name of a pulled model with its tag. Raises Refused."""
        name = str(model) if ":" in str(model).rpartition("/")[2] else f"{model}:latest"
        if name not in (self.models or ()):
            raise Refused(404, "", f"model '{model}' not found")
        return name

    def load(self, model: object, options: dict[str, Any]) -> int:
        """Load a model, which is in memory once with all its variants; returns the size of its context."""
        name = self.named(model)
        wanted = {"num_ctx": self.default_context, **self.parameters.get(name, {}), **options}["num_ctx"]
        self.running[self.bases.get(name, name)] = name, min(wanted, self.trained)
        return min(wanted, self.trained)

    def key_of(self, request: web.BaseRequest) -> str:
        return ""

    def examine(self, request: web.BaseRequest, body: dict[str, Any]) -> None:
        model = body.get("model")
        if not model:
            raise Refused(400, "", "model is required")
        if not body.get("messages"):
            raise Refused(400, "", "[] is too short - 'messages'")
        self.named(model)

    def wire(self, request: Request) -> OpenAIWire:
        context = self.load(request.body["model"], {})
        self.seen.append(_fitting(request.body, context))
        body = request.body | {"messages": self.seen[-1]}
        size = tokens_of(body)
        self.shifted += size + request.body.get("max_tokens", 0) > context
        return OllamaWire(body, CacheUse(0, 0, size), self.reasoning)

    def error_body(self, status: int, kind: str | None, message: str, param: str | None) -> dict[str, object]:
        type_ = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "api_error")
        return {"error": {"message": message, "type": type_, "param": None, "code": None}}

    async def _root(self, http: web.Request) -> web.Response:
        return web.Response(text="Ollama is running")

    async def _version(self, http: web.Request) -> web.Response:
        return web.json_response({"version": "0.12.6"})

    async def _tags(self, http: web.Request) -> web.Response:
        details = {
            "format": "gguf",
            "family": "qwen3",
            "parameter_size": "8.2B",
            "quantization_level": "Q4_K_M",
        }
        models = [
            {
                "name": name,
                "model": name,
                "modified_at": "2026-01-01T00:00:00Z",
                "size": 5_225_388_164,
                "digest": f"{index:064x}",
                "details": details,
            }
            for index, name in enumerate(self.models or ())
        ]
        return web.json_response({"models": models})

    async def _generate(self, http: web.Request) -> web.Response:
        """https://docs.ollama.com/api/generate: without a prompt the model is loaded, and nothing else."""
        return await self._native(http, lambda body: self.load(body.get("model"), body.get("options") or {}))

    async def _create(self, http: web.Request) -> web.Response:
        """https://docs.ollama.com/api/create, from a model that is there, or else is downloaded."""
        return await self._native(http, self._add_variant)

    async def _show(self, http: web.Request) -> web.Response:
        """https://docs.ollama.com/api-reference/show-model-details"""
        return await self._native(http, lambda body: self.named(body.get("model")), streams=False)

    def _add_variant(self, body: dict[str, Any]) -> None:
        if self.refuses_create:
            raise Refused(403, "", "not allowed here")
        if not body.get("model") or not isinstance(body.get("parameters"), dict):
            raise Refused(400, "", "invalid model name")
        try:
            base = self.named(body.get("from"))
        except Refused:
            self.pulled.append(base := str(body.get("from")))
        self.parameters[body["model"]] = self.parameters.get(base, {}) | body["parameters"]
        self.bases[body["model"]] = self.bases.get(base, base)
        self.models = [body["model"], *(one for one in self.models or () if one != body["model"])]

    async def _native(
        self, http: web.Request, act: Callable[[dict[str, Any]], object], *, streams: bool = True
    ) -> web.Response:
        body = json.loads(await http.read())
        self.calls.append(http.path)
        if streams and body.get("stream") is not False:
            self.violations.append(f"{http.path} streams unless that is turned off")
        try:
            act(body)
        except Refused as refused:
            return web.json_response({"error": refused.message}, status=refused.status)
        return web.json_response({"model": body.get("model"), "status": "success", "done": True})

    async def _ps(self, http: web.Request) -> web.Response:
        self.calls.append(http.path)
        models = [{"name": name, "model": name, "context_length": size} for name, size in self.running.values()]
        return web.json_response({"models": models})


def _fitting(body: dict[str, Any], context: int) -> list[dict[str, Any]]:
    """The messages that Ollama keeps: all that the system says, and of the others the newest, at least the last."""
    system = [one for one in body["messages"] if one["role"] == "system"]
    others = [one for one in body["messages"] if one["role"] != "system"]
    while len(others) > 1 and tokens_of(body | {"messages": [*system, *others]}) > context:
        others.pop(0)
    return [*system, *others]


class OllamaWire(OpenAIWire):
    """Ollama's chunks: the role in each, a tool call whole in one, nothing of OpenAI's extras."""

    def start(self) -> bytes:
        return b""

    def open(self, part: Say | Think | Call) -> bytes:
        if not isinstance(part, Call):
            return b""
        return self._chunk({"tool_calls": [{"index": self._next_call(), **self._call(part, part.raw)}]})

    def delta(self, part: Say | Think | Call, piece: str) -> bytes:
        if isinstance(part, Call):
            self._count(part, piece)
            return b""
        return super().delta(part, piece)

    def _head(self, kind: str = "chat.completion.chunk") -> dict[str, object]:
        return {
            "id": "chatcmpl-1",
            "object": kind,
            "created": CREATED,
            "model": self._model,
            "system_fingerprint": "fp_ollama",
        }

    def _chunk(self, delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"role": "assistant", "content": "", **delta}, "finish_reason": finish}
        return line({**self._head(), "choices": [choice]})
