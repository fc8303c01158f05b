"""Models without secrets: none is sent to one, and none that one writes is stored, shown or executed.

What people wrote and what tools returned has none already (`bot/inbound/pipeline.py`, `agent/calls/pipeline.py`); this
is for files of the workspace that stand in the prompt, for older transcripts, and for what a model decodes or repeats.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from agent.errors import ModelError
from agent.message import Message, Part, Text, Thinking, ToolCall, ToolResult
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    LeftOut,
    ModelClient,
    ModelRequest,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from agent.models.refusals import Mending, without
from bot.telemetry.redact import Redactor

_Delta = TextDelta | ThinkingDelta | ArgumentsDelta


class Wrapped(ModelClient):
    """A client that passes everything on to another one."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        for name in ("name", "key", "limits", "takes", "thinks", "level_for", "output_limit", "preload", "close"):
            if hasattr(client, name):  # what it says of itself; the rest is as of every client
                setattr(self, name, getattr(client, name))
        self._measure()

    def _measure(self) -> None:
        """Take over what a server may have said only with its first answer."""
        self.context_window, self.max_output = self._client.context_window, self._client.max_output


class MaskedClient(Wrapped):
    """A client whose requests, answers and errors hold no secret.

    What the provider refuses a request for is left out of it (`agent/models/refusals.py`).
    """

    def __init__(self, client: ModelClient, redactor: Redactor) -> None:
        super().__init__(client)
        self._redactor = redactor

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        clean, pieces = self._redactor.clean, _Pieces(self._redactor)
        if self._holds_secret(request):
            messages = tuple([masked(one, self._redactor) for one in request.messages])
            request = replace(request, system=clean(request.system), messages=messages)
        if self.refused is not None and self.refused.parts:
            request = without(request, self.refused.parts)
        mending: Mending | None = None
        while True:
            has_begun = False
            try:
                async with aclosing(self._client.stream(request)) as parts:
                    async for part in parts:
                        if isinstance(part, Alive | LeftOut):
                            yield part
                            continue
                        if mending is not None and not has_begun:
                            yield await mending.worked()
                        has_begun = True
                        if isinstance(part, Answer):
                            for rest in pieces.end():
                                yield rest
                            message = masked(part.message, self._redactor)
                            yield part if message is part.message else replace(part, message=message)
                        else:
                            if pieces.held is not None and not _goes_on(pieces.held, part):
                                for rest in pieces.end():
                                    yield rest
                            yield pieces.add(part)
                return
            except ModelError as error:
                bare = ModelError(error.kind, clean(error.detail), error.retry_after, error.status, error.named)
                if self.refused is None or has_begun:
                    raise bare from None
                mending = mending or Mending(request, self.refused)
                if (found := await asyncio.to_thread(mending.next, bare)) is None:
                    raise bare from None
                request = found
            finally:
                self._measure()

    def _holds_secret(self, request: ModelRequest) -> bool:
        """Whether there is any in it, which is seldom: all its texts are looked at as one."""
        texts = [request.system]
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, Text | Thinking | ToolResult):
                    texts.append(part.text)
                elif isinstance(part, ToolCall):
                    texts.append(part.arguments)
        whole = "\n".join(texts)
        return self._redactor.clean(whole) != whole


class _Pieces:
    """The stream of an answer; the end of a piece that may be the beginning of a secret waits for the next one."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.held: _Delta | None = None

    def add(self, part: _Delta) -> StreamPart:
        """Take a piece that continues what is held; returns what is certain by now, a sign of life where nothing is."""
        text = self.held.text + part.text if self.held else part.text
        begun = self._redactor.withheld(text)
        self.held = replace(part, text=text[-begun:]) if begun else None
        clean = self._redactor.clean(text[: len(text) - begun])
        if clean == part.text:
            return part
        return replace(part, text=clean) if clean else Alive()

    def end(self) -> Sequence[StreamPart]:
        """Return what waits; nothing of its kind follows."""
        held, self.held = self.held, None
        return (replace(held, text=self._redactor.clean(held.text)),) if held else ()


def _goes_on(one: _Delta, other: _Delta) -> bool:
    return replace(one, text="") == replace(other, text="")


def masked(message: Message, redactor: Redactor) -> Message:
    """The message without secrets; the same object where it has none."""
    parts = tuple([_masked(part, redactor) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _masked(part: Part, redactor: Redactor) -> Part:
    match part:
        case Text(text=text) | ToolResult(text=text):
            return part if (clean := redactor.clean(text)) == text else replace(part, text=clean)
        case Thinking(text=text):  # its signature would not fit any more, and without one it is not sent back
            return part if (clean := redactor.clean(text)) == text else Thinking(clean)
        case ToolCall(arguments=text):
            return part if (clean := redactor.clean(text)) == text else replace(part, arguments=clean)
    return part
