"""A stand-in on loopback for OpenAI's Responses API, without conversations that the provider keeps.

Headings of https://platform.openai.com/docs/api-reference/responses that the rules come from: Create a model response,
Streaming events, Input item list; and of the guides: Conversation state, Reasoning ("Encrypted reasoning items"),
Function calling. Reasoning that it gave out is only taken back as it was, and before what it led to.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from tests.standins.model_server import Refused
from tests.standins.openai_rules import EFFORTS, code_of, is_reasoning, param_of
from tests.standins.openai_server import CODES, CREATED, OpenAIServer
from tests.standins.prompt_cache import CacheUse
from tests.standins.request_log import Request, canonical
from tests.standins.script import Call, Fail, Say, Think
from tests.standins.shapes import Wrong, anything, array, boolean, nullable, number, one_of, record, string

_ids = itertools.count(1)
TOOL = record(
    {
        "type": one_of("function"),
        "name": string(r"[a-zA-Z0-9_-]{1,64}"),
        "parameters": anything,
        "strict": nullable(boolean),
    },
    {"description": string()},
)
REQUEST = record(
    {"model": string(shortest=1), "input": anything},
    {
        "include": array(one_of("reasoning.encrypted_content", "message.output_text.logprobs")),
        "instructions": nullable(string()),
        "max_output_tokens": nullable(number(16, whole=True)),
        "metadata": anything,
        "parallel_tool_calls": boolean,
        "prompt_cache_key": string(),
        "reasoning": record({}, {"effort": nullable(one_of(*EFFORTS)), "summary": nullable(string())}),
        "service_tier": string(),
        "store": nullable(boolean),
        "stream": nullable(boolean),
        "temperature": nullable(number(0, 2)),
        "text": anything,
        "tool_choice": anything,
        "tools": array(TOOL),
        "top_p": nullable(number(0, 1)),
        "truncation": nullable(one_of("auto", "disabled")),
    },
)
INPUT_TEXT = record({"type": one_of("input_text"), "text": string(shortest=1)})
INPUT_IMAGE = record(
    {
        "type": one_of("input_image"),
        "image_url": string(r"(?s)(https|data):.*"),
        "detail": one_of("auto", "low", "high"),
    }
)
CALL = record(
    {
        "type": one_of("function_call"),
        "call_id": string(shortest=1, longest=64),
        "name": string(),
        "arguments": string(),
    },
    {"id": string(r"fc_.+"), "status": string()},
)
REASONING = record(
    {
        "type": one_of("reasoning"),
        "id": string(r"rs_.+"),
        "summary": array(record({"type": one_of("summary_text"), "text": string()})),
        "encrypted_content": string(shortest=1),
    }
)


class ResponsesServer(OpenAIServer):
    """POST /v1/responses, streaming only. `thinks`: the model shows summaries of its reasoning."""

    path = "/v1/responses"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._issued: dict[str, tuple[str, str]] = {}

    def examine(self, request: web.BaseRequest, body: dict[str, Any]) -> None:
        try:
            REQUEST(body, ())
            if body.get("store") is not False:
                raise Refused(400, "", "This stand-in keeps no conversations: send store=false.", "store")
            if not body.get("stream"):
                raise Refused(400, "", "This stand-in only streams.", "stream")
            self._examine_input(body)
        except Wrong as wrong:
            param = param_of(wrong)
            raise Refused(400, code_of(wrong), f"Invalid '{param}': {wrong.text}.", param) from None
        if "tool_choice" in body and "tools" not in body:
            raise Refused(400, "", "Tool choice is only allowed when 'tools' are specified.", "tool_choice")
        if "effort" in body.get("reasoning", {}) and not is_reasoning(body["model"]):
            raise Refused(400, "unsupported_parameter", "Unsupported parameter: 'reasoning.effort'", "reasoning.effort")
        tokens = sum(len(text) for text, _ in _prompt(body)) // 4
        if tokens > self.context_window:
            text = "Your input exceeds the context window of this model. Please adjust your input and try again."
            raise Refused(400, "context_length_exceeded", text, "input")

    def _examine_input(self, body: dict[str, Any]) -> None:
        called: list[str] = []
        answered: list[str] = []
        last = ""
        for index, item in enumerate(body["input"]):
            at = ("input", index)
            kind = item.get("type") or "message"
            if last == "reasoning" and (kind not in ("reasoning", "function_call") and item.get("role") != "assistant"):
                text = f"Item '{body['input'][index - 1]['id']}' of type 'reasoning' was provided without its required"
                raise Refused(400, "", f"{text} following item.", "input")
            last = kind
            if kind == "message":
                _examine_message(item, at)
            elif kind == "function_call":
                CALL(item, at)
                called.append(item["call_id"])
            elif kind == "function_call_output":
                if item["call_id"] not in called or item["call_id"] in answered:
                    raise Refused(400, "", f"No tool call found for output with call_id {item['call_id']}.", "input")
                answered.append(item["call_id"])
                if isinstance(item["output"], list):
                    for block in item["output"]:
                        (INPUT_IMAGE if block.get("type") == "input_image" else INPUT_TEXT)(block, at)
                else:
                    string()(item["output"], (*at, "output"))
            elif kind == "reasoning":
                REASONING(item, at)
                issued = self._issued.get(item["id"])
                summary = "".join(part["text"] for part in item["summary"])
                if issued is not None and issued != (item["encrypted_content"], summary):
                    raise Refused(400, "invalid_encrypted_content", "The encrypted content could not be verified.")
            else:
                raise Wrong((*at, "type"), "value", f"Invalid value: '{kind}'")
        if last == "reasoning":
            raise Refused(400, "", "An item of type 'reasoning' was provided without its required following item.")
        if missing := [one for one in called if one not in answered]:
            raise Refused(400, "", f"No tool output found for function call {missing[0]}.", "input")

    def wire(self, request: Request) -> ResponsesWire:
        use = self._cache.use(request.model, _prompt(request.body)) if self.strict else CacheUse(0, 0, 10)
        encrypted = "reasoning.encrypted_content" in request.body.get("include", ())
        return ResponsesWire(request.body, use, self._issued, encrypted=encrypted)


def _examine_message(item: dict[str, Any], at: tuple[str | int, ...]) -> None:
    one_of("user", "assistant", "system", "developer")(item.get("role"), (*at, "role"))
    content = item.get("content")
    if isinstance(content, str):
        string(shortest=1)(content, (*at, "content"))
        return
    if not isinstance(content, list) or not content:
        raise Wrong((*at, "content"), "empty", "expected a text or a list of content")
    for block in content:
        if item["role"] == "assistant":
            one_of("output_text", "refusal")(block.get("type"), (*at, "content"))
        else:
            (INPUT_IMAGE if block.get("type") == "input_image" else INPUT_TEXT)(block, (*at, "content"))


def _prompt(body: dict[str, Any]) -> list[tuple[str, bool]]:
    first = [canonical({"instructions": body.get("instructions")})]
    return [(one, True) for one in (*map(canonical, body.get("tools", ())), *first, *map(canonical, body["input"]))]


class ResponsesWire:
    """One answer as events; implements `model_server.Wire`."""

    def __init__(
        self, body: dict[str, Any], use: CacheUse, issued: dict[str, tuple[str, str]], *, encrypted: bool
    ) -> None:
        self._body, self._use, self._issued, self._encrypted = body, use, issued, encrypted
        self._sequence = itertools.count()
        self._id = f"resp_{next(_ids):048x}"
        self._output: list[dict[str, Any]] = []
        self._spoken = 0

    def start(self) -> bytes:
        begun = self._response("in_progress")
        return self._event("response.created", response=begun) + self._event("response.in_progress", response=begun)

    def open(self, part: Say | Think | Call) -> bytes:
        item = self._item(part, "")
        self._output.append(item)
        events = self._event("response.output_item.added", output_index=self._at, item=item)
        if isinstance(part, Say):
            blank = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            events += self._event("response.content_part.added", **self._of(), content_index=0, part=blank)
        return events

    def delta(self, part: Say | Think | Call, piece: str) -> bytes:
        self._spoken += max(1, len(piece) // 4)
        match part:
            case Say():
                return self._event(
                    "response.output_text.delta", **self._of(), content_index=0, delta=piece, logprobs=[]
                )
            case Think():
                return self._event("response.reasoning_summary_text.delta", **self._of(), summary_index=0, delta=piece)
            case Call():
                return self._event("response.function_call_arguments.delta", **self._of(), delta=piece)

    def close(self, part: Say | Think | Call) -> bytes:
        whole = part.raw if isinstance(part, Call) else part.text
        item = self._output[-1] = {**self._item(part, whole), "id": self._output[-1]["id"]}
        if isinstance(part, Call):
            item["call_id"] = self._calls[-1]
        if item["type"] == "reasoning" and self._encrypted:
            item["encrypted_content"] = f"gAAAA{next(_ids):032x}"
            self._issued[item["id"]] = (item["encrypted_content"], part.text if isinstance(part, Think) else "")
        return self._event("response.output_item.done", output_index=self._at, item=item)

    def ping(self) -> bytes:
        return b": keep-alive\n\n"

    def fail(self, part: Fail) -> bytes:
        error = {"code": part.kind or CODES.get(part.status) or "server_error", "message": part.message or "Scripted."}
        failed = {**self._response("failed"), "error": error}
        return self._event("response.failed", response=failed)

    def finish(self, reason: str | None) -> bytes:
        why = {"max_tokens": "max_output_tokens", "length": "max_output_tokens", "refusal": "content_filter"}
        if reason in why:
            ended = {**self._response("incomplete"), "incomplete_details": {"reason": why[reason]}}
            return self._event("response.incomplete", response=ended)
        return self._event("response.completed", response=self._response("completed"))

    def message(self, parts: Sequence[Say | Think | Call], reason: str | None) -> dict[str, object]:
        raise ValueError("only streams are played")

    @property
    def _at(self) -> int:
        return len(self._output) - 1

    @property
    def _calls(self) -> list[str]:
        return [item["call_id"] for item in self._output if item["type"] == "function_call"]

    def _of(self) -> dict[str, Any]:
        return {"item_id": self._output[-1]["id"], "output_index": self._at}

    def _item(self, part: Say | Think | Call, text: str) -> dict[str, Any]:
        number = next(_ids)
        match part:
            case Say():
                content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if text else []
                done = {"id": f"msg_{number:048x}", "type": "message", "role": "assistant", "content": content}
            case Think():
                summary = [{"type": "summary_text", "text": text}] if text else []
                done = {"id": f"rs_{number:048x}", "type": "reasoning", "summary": summary}
            case Call():
                done = {"id": f"fc_{number:048x}", "type": "function_call", "name": part.name, "arguments": text}
                done["call_id"] = part.id or f"call_{number:024x}"
        return {**done, "status": "completed" if text else "in_progress"}

    def _response(self, status: str) -> dict[str, Any]:
        prompt = self._use.read + self._use.written + self._use.plain
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": self._use.read // 128 * 128},
            "output_tokens": self._spoken,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + self._spoken,
        }
        return {
            "id": self._id,
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._body["model"],
            "output": self._output if status != "in_progress" else [],
            "usage": None if status == "in_progress" else usage,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = json.dumps({"type": kind, "sequence_number": next(self._sequence), **fields}, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n".encode()
