"""The built-in model that needs no network: a small deterministic program with the interface of a model.

Its first answer says what it is and how to configure a real model. It lets people try a fresh installation, and serves
tests. `offline_request.HELP` says what it can be asked.
"""

import asyncio
import itertools
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from agent.message import (
    Image,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    estimate,
    estimate_text,
    estimate_tools,
)
from agent.models.base import Answer, ArgumentsDelta, ModelClient, ModelRequest, ModelSpec, StreamPart, TextDelta
from agent.models.offline_request import HELP, Asked, Call, spoken, understand

INTRODUCTION = (
    "I am Hark's built-in offline model: a small deterministic program, not a language model. To talk to a real one,"
    " set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama, and start Hark again. Say `help` to see what I can do."
)
Sleep = Callable[[float], Awaitable[None]]
SLOW_SECONDS = 0.2
_SHOWN_RESULT = 500
_LINES, *_SPECIALS = Path(__file__).with_name("offline.md").read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")
# A paragraph. _SPECIALS are a list, code, a table and a quotation: all that rendering and cutting must handle.
_STORY = " ".join(_LINES.split())


def _new_id() -> str:
    return "offline_" + secrets.token_hex(8)


class OfflineClient(ModelClient):
    """The client of the offline model."""

    def __init__(self, spec: ModelSpec, sleep: Sleep = asyncio.sleep, new_id: Callable[[], str] = _new_id) -> None:
        """sleep: awaited before each word when the person asked for a slow answer."""
        super().__init__(spec)
        self._sleep = sleep
        self._new_id = new_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Answer the last message of a person; see `ModelClient.stream`."""
        start = _question(request)
        asked = understand(spoken(request.messages[start].text))
        text, calls = _answer(request, start, asked)
        for word in re.findall(r"\S+\s*|\s+", text):
            if asked.slow:
                await self._sleep(SLOW_SECONDS)
            yield TextDelta(word)
        parts: list[Part] = [Text(text)] if text else []
        for call in calls:
            made = ToolCall(self._new_id(), call.tool, call.arguments)
            yield ArgumentsDelta(made.call_id, made.name, made.arguments)
            parts.append(made)
        message = Message("assistant", tuple(parts), self.name)
        read = estimate_text(request.system) + estimate_tools(request.tools) + sum(map(estimate, request.messages))
        yield Answer(message, "tool_use" if calls else "end", Usage(read, estimate(message)))


def _question(request: ModelRequest) -> int:
    """Return the index of the message to answer: the last one of a person that the service did not write."""
    own = (at for at, found in enumerate(request.messages) if found.role == "user" and found.mark is None)
    return max(own, default=0)


def _answer(request: ModelRequest, start: int, asked: Asked) -> tuple[str, Sequence[Call]]:
    """Return the text and the calls of the next step, without the text that a cut answer has said already."""
    since = request.messages[start + 1 :]
    done = sum(bool(message.tool_calls) for message in since)
    there = {tool.name for tool in request.tools} if request.allow_calls else set()
    step = asked.steps[done] if there and done < len(asked.steps) else ()
    calls = [call for call in step if call.named or call.tool in there]
    text = "\n\n".join(_paragraphs(request, start, asked, done, not calls))
    return text.removeprefix(_said(since)), calls


def _paragraphs(request: ModelRequest, start: int, asked: Asked, done: int, last: bool) -> Iterator[str]:
    """Yield the paragraphs of a step: before any call what the person asked to be said, and last the results.

    done: the number of steps with calls so far. last: whether this step has no calls.
    """
    question, since = request.messages[start], request.messages[start + 1 :]
    if not done:
        if not (asked.unasked or any(message.role == "assistant" for message in request.messages[:start])):
            yield INTRODUCTION
        if asked.help:
            yield HELP
        yield from asked.say
        if asked.long:
            yield markdown(asked.long)
    if not last:
        return
    yield from (_report(result) for message in since for result in message.tool_results)
    there = {tool.name for tool in request.tools}
    for call in (call for step in asked.steps[done:] for call in step):
        if not (there and request.allow_calls):
            yield f"`{call.tool}` is still open: I may not call tools any more."
        elif call.tool not in there and not call.named:
            yield f"I have no tool named `{call.tool}` here, only {', '.join(sorted(there))}."
    if not (asked.help or asked.say or asked.long or asked.steps):
        images = sum(isinstance(part, Image) for message in (question, *since) for part in message.parts)
        yield f"You said: {asked.words or '(nothing)'}" + (f" (and sent images: {images})" if images else "")


def markdown(words: int) -> str:
    """Return a Markdown document of about as many words, separated by white space."""
    blocks: list[str] = []
    count = 0
    for block in _endless_story():
        if count >= max(words, 1):
            break
        blocks.append(block)
        count += len(block.split())
    return "\n\n".join(blocks)


def _endless_story() -> Iterator[str]:
    for number, special in enumerate(itertools.cycle(_SPECIALS), 1):
        yield from (f"{'#' if number == 1 else '##'} Part {number}: the harbour 🚢", _STORY, special)


def _report(result: ToolResult) -> str:
    text = result.text.strip() or "(nothing)"
    text = text if len(text) <= _SHOWN_RESULT else text[:_SHOWN_RESULT] + "…"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    quoted = f"\n\n{fence}\n{text}\n{fence}" if "\n" in text else f" {text}"
    return f"`{result.name}` {'failed' if result.is_error else 'said'}:{quoted}"


def _said(since: Sequence[Message]) -> str:
    """Return what the assistant has said in this step: after the last results, or after the question."""
    texts: list[str] = []
    for message in since:
        if message.role == "assistant" and not message.tool_calls:
            texts.append(message.text)
        elif message.role != "user":
            texts.clear()
    return "".join(texts)
