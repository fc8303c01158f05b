"""What a model stand-in keeps of a request, and the comparison of consecutive requests of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
_TEXTS = ("text", "input_text", "output_text")


@dataclass(slots=True)
class Request:
    """One request as it came, and what became of it.

    `at`: the server's clock. `status`: of the answer, None while it runs. `refusal`: the message of a refused
    request. `disconnected`: the client left first. `cut`: the script broke the connection. `chunks`: deltas
    sent so far. `finished`: answered to the end.
    """

    number: int
    at: float
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Json = field(default_factory=dict)
    status: int | None = None
    refusal: str | None = None
    disconnected: bool = False
    cut: bool = False
    finished: bool = False
    chunks: int = 0

    @property
    def messages(self) -> list[Json]:
        """The messages, or the items of a request to the Responses API, whose role is their type if they have none."""
        items = self.body.get("input") or []
        return self.body.get("messages") or [{"role": item.get("type"), **item} for item in items]

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def system(self) -> str:
        """The system prompt of either provider."""
        if "system" in self.body or "instructions" in self.body:
            return text_of(self.body.get("system") or self.body.get("instructions"))
        rulers = (m for m in self.messages if m["role"] in ("system", "developer"))
        return "\n".join(text_of(message.get("content")) for message in rulers)

    @property
    def tool_names(self) -> list[str]:
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools", [])]

    @property
    def first_user_text(self) -> str:
        return _first_text(self.messages)

    @property
    def last_user_text(self) -> str:
        return _first_text(reversed(self.messages))

    @property
    def tool_results(self) -> list[tuple[str, str]]:
        """Every tool result as (id, text), in order."""
        found = []
        for message in self.messages:
            if message["role"] == "tool":
                found.append((message["tool_call_id"], text_of(message.get("content"))))
            elif isinstance(message.get("content"), list):
                blocks = (block for block in message["content"] if block.get("type") == "tool_result")
                found += [(block["tool_use_id"], text_of(block.get("content"))) for block in blocks]
        return found

    def assistant_texts_after(self, asked: str) -> list[str]:
        """The texts of the assistant after the last user message that contains `asked`."""
        texts: list[str] = []
        for message in self.messages:
            text = text_of(message.get("content"))
            if message["role"] == "user" and asked in text:
                texts = []
            elif message["role"] == "assistant" and text:
                texts.append(text)
        return texts


def _first_text(messages: Iterable[Json]) -> str:
    texts = (text_of(message.get("content")) for message in messages if message["role"] == "user")
    return next((text for text in texts if text), "")


def text_of(content: Any) -> str:
    """The text of a message's content, a string or a list of blocks of either provider."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(block.get("text", "") for block in content if block.get("type") in _TEXTS)


def unmarked(value: Any) -> Any:
    """The value without cache marks."""
    if isinstance(value, dict):
        return {name: unmarked(item) for name, item in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    return value


def canonical(value: Any) -> str:
    """The value as the model sees it: fields in their order, no cache marks, a bare text as a text block."""
    value = unmarked(value)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        value["content"] = [{"type": "text", "text": value["content"]}]
    return json.dumps(value, ensure_ascii=False)


def canonical_system(system: Any) -> str:
    """A system prompt as `canonical` has it, from a string or from blocks."""
    return canonical([{"type": "text", "text": system}] if isinstance(system, str) else system)


def prefix_differences(requests: Iterable[Request], key: Callable[[Request], Hashable | None]) -> list[str]:
    """The first difference of consecutive requests of which the later does not begin with the earlier."""
    last: dict[Hashable, Request] = {}
    found: list[str] = []
    for request in requests:
        if request.refusal or not request.body or (conversation := key(request)) is None:
            continue
        before = last.get(conversation)
        last[conversation] = request
        difference = before and _difference(before, request)
        if before and difference:
            found.append(f"{conversation!r}: request {before.number} → {request.number}: {difference}")
    return found


def _difference(before: Request, after: Request) -> str | None:
    if text := _first_difference(canonical(before.body.get("tools")), canonical(after.body.get("tools"))):
        return f"tools differ {text}"
    earlier, later = (
        canonical_system(request.body.get("system") or request.body.get("instructions")) for request in (before, after)
    )
    if text := _first_difference(earlier, later):
        return f"system differs {text}"
    if len(after.messages) < len(before.messages):
        return f"{len(after.messages)} messages after {len(before.messages)}"
    for index, message in enumerate(before.messages):
        if text := _first_difference(canonical(message), canonical(after.messages[index])):
            return f"messages[{index}] differs {text}"
    return None


def _first_difference(before: str, after: str) -> str | None:
    if before == after:
        return None
    pairs = enumerate(zip(before, after, strict=False))
    at = next((i for i, (old, new) in pairs if old != new), min(len(before), len(after)))
    start = max(0, at - 30)
    return f"at character {at}: {before[start : at + 40]!r} → {after[start : at + 40]!r}"
