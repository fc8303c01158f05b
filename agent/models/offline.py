"""The built-in model that needs no network: a small deterministic program behind the interface of a model.

It says what it is in its first answer and how to configure a real one. It is the demonstration of a fresh
installation and the partner of the tests; what it can be asked is in `offline_request.HELP`.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.cut import CUT_NOTE
from agent.errors import ErrorKind, ModelError
from agent.message import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from agent.models.base import (
    Answer,
    ArgumentsDelta,
    ModelRequest,
    StopReason,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ThinkingLevel,
)
from agent.models.offline_request import HELP, Asked, Call, spoken, understand
from agent.models.offline_text import markdown
from agent.models.spec import ModelSpec

INTRODUCTION = (
    "I am Hark's built-in offline model: a small deterministic program, not a language model. To talk to a real one,"
    " set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama, and start Hark again. Say `help` to see what I can do."
)
SLOW_SECONDS = 0.2
_SHOWN_RESULT = 500


@dataclass(frozen=True, slots=True)
class _Plan:
    """One answer. standing: how many characters of the text the transcript holds, because an answer was cut."""

    thinking: str
    text: str
    calls: tuple[Call, ...]
    standing: int


def _new_id() -> str:
    return "offline_" + secrets.token_hex(8)


class OfflineClient:
    """A ModelClient; see `base`. sleep is awaited before each word when it was asked to be slow."""

    def __init__(
        self,
        spec: ModelSpec,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        new_id: Callable[[], str] = _new_id,
    ) -> None:
        self.name = spec.name
        self.context_window = spec.context_window
        self.max_output = spec.max_output
        self.thinking: ThinkingLevel = spec.thinking
        self._sleep = sleep
        self._new_id = new_id

    async def warm(self) -> None:
        """Nothing to import."""

    async def close(self) -> None:
        """Nothing to release."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Answer the last message of a person; see `ModelClient.stream`."""
        read = _size(request) // 4
        if read > self.context_window:
            raise ModelError(ErrorKind.CONTEXT_OVERFLOW, f"{read} tokens do not fit into {self.context_window}")
        start = _question(request)
        asked = understand(spoken(request.messages[start].text))
        plan = _plan(request, start, asked)
        room = request.max_output * 4
        rest = plan.text[plan.standing :]
        parts: list[Part] = [Thinking(plan.thinking)] if plan.thinking else []
        for word in _words(plan.thinking):
            await self._pause(asked)
            yield ThinkingDelta(word)
        for word in _words(rest[:room]):
            await self._pause(asked)
            yield TextDelta(word)
        if rest:
            parts.append(Text(rest[:room]))
        for call in plan.calls if len(rest) <= room else ():
            made = ToolCall(self._new_id(), call.tool, call.arguments)
            yield ArgumentsDelta(made.call_id, made.name, "")
            yield ArgumentsDelta(made.call_id, made.name, made.arguments)
            parts.append(made)
        message = Message("assistant", tuple(parts), self.name)
        stop: StopReason = "max_output" if len(rest) > room else "tool_use" if plan.calls else "end"
        yield Answer(message, stop, Usage(read, max(1, sum(map(_part_size, parts)) // 4)))

    async def _pause(self, asked: Asked) -> None:
        if asked.slow:
            await self._sleep(SLOW_SECONDS)


def _question(request: ModelRequest) -> int:
    """Where the message stands that is to be answered: the person's last one.

    Notes are passed over: that an answer was cut, and (when calls are forbidden) that it is time to sum up.
    """
    messages = request.messages
    users = [
        place for place, message in enumerate(messages) if message.role == "user" and spoken(message.text) != CUT_NOTE
    ]
    if not users:
        return 0
    if not request.allow_calls and len(users) > 1 and any(m.role == "tool" for m in messages[users[-2] : users[-1]]):
        return users[-2]
    return users[-1]


def _plan(request: ModelRequest, start: int, asked: Asked) -> _Plan:
    """What to answer now: the calls of the next step, or, after the last one, what the results say."""
    since = request.messages[start + 1 :]
    done = sum(1 for message in since if message.tool_calls)
    first = not any(message.role == "assistant" for message in request.messages[:start])
    paragraphs = list(_opening(asked, first)) if not done else []
    calls: tuple[Call, ...] = ()
    if done < len(asked.steps) and request.tools and request.allow_calls:
        there = {tool.name for tool in request.tools}
        calls = tuple(call for call in asked.steps[done] if call.named or call.tool in there)
    if not calls:
        paragraphs += _closing(request, start, asked, done)
    text = "\n\n".join(paragraphs)
    thinking = "\n".join(f"Let me think about {what}. It is a matter of {what}." for what in asked.think)
    return _Plan(thinking if not done else "", text, calls, _standing(text, _said(since)))


def _opening(asked: Asked, first: bool) -> Iterator[str]:
    """What is said before any call."""
    if first:
        yield INTRODUCTION
    if asked.help:
        yield HELP
    for what in asked.think:
        yield f"I have thought about {what}."
    yield from asked.say
    if asked.long:
        yield markdown(asked.long)


def _closing(request: ModelRequest, start: int, asked: Asked, done: int) -> Iterator[str]:
    """What is said after the last call: the results, what could not be called, and else the person's words."""
    for message in request.messages[start + 1 :]:
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield _report(part)
    there = {tool.name for tool in request.tools}
    for call in (call for step in asked.steps[done:] for call in step):
        if not (request.tools and request.allow_calls):
            yield f"`{call.tool}` is still open: I may not call tools any more."
        elif call.tool not in there and not call.named:
            yield f"I have no tool named `{call.tool}` here, only {', '.join(sorted(there))}."
    if not (asked.help or asked.think or asked.say or asked.long or asked.steps):
        images = sum(isinstance(part, Image) for part in request.messages[start].parts)
        yield f"You said: {asked.words or '(nothing)'}" + (f" (and sent images: {images})" if images else "")


def _report(result: ToolResult) -> str:
    text = result.text.strip() or "(nothing)"
    if len(text) > _SHOWN_RESULT:
        text = text[:_SHOWN_RESULT] + "…"
    if "\n" in text:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        text = f"\n\n{fence}\n{text}\n{fence}"
    else:
        text = f" {text}"
    return f"`{result.name}` {'failed' if result.is_error else 'said'}:{text}"


def _said(since: Sequence[Message]) -> str:
    """What the assistant has said in this step: after the last results, else after the question."""
    texts: list[str] = []
    for message in since:
        if message.role == "assistant" and not message.tool_calls:
            texts.append(message.text)
        elif message.role != "user":
            texts.clear()
    return "".join(texts)


def _standing(text: str, said: str) -> int:
    """How many characters of the text have been said; white space may have been lost where it was cut.

    0 when something else was said.
    """
    place = 0
    for char in said:
        if char.isspace():
            place += place < len(text) and text[place].isspace()
            continue
        while place < len(text) and text[place].isspace():
            place += 1
        if place == len(text) or text[place] != char:
            return 0
        place += 1
    return place


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _size(request: ModelRequest) -> int:
    """Characters that the model reads."""
    tools = sum(len(tool.name) + len(tool.description) + len(tool.schema_json) for tool in request.tools)
    parts = sum(_part_size(part) for message in request.messages for part in message.parts)
    return len(request.system) + tools + parts


def _part_size(part: Part) -> int:
    if isinstance(part, ToolCall):
        return len(part.name) + len(part.arguments)
    return 4000 if isinstance(part, Image) else len(part.text)
