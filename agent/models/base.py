"""What a model client is: a request in, a stream of neutral parts out, errors from one closed set.

A client makes exactly one attempt per call (the SDK's own retries are off): waiting and trying again is the
runner's, which alone knows what has been said already.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

from agent.message import Message, ToolSpec, Usage
from agent.models.spec import ModelSpec, ThinkingLevel

StopReason = Literal["end", "tool_use", "max_output", "refusal", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a model."""

    system: str
    # They end with a message of the role user or tool.
    messages: tuple[Message, ...]
    # Without any the model is asked for words only.
    tools: tuple[ToolSpec, ...]
    # In tokens.
    max_output: int
    thinking: ThinkingLevel = "off"
    # False keeps the tools in the request, so that its prefix is stable, and forbids their use where the provider can.
    allow_calls: bool = True


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's words."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of the JSON arguments of a call; the first of a call may be empty."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Alive:
    """The provider said that it is still there (a ping): counts against silence, says nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole answer; the last part of every stream that did not fail."""

    message: Message
    stop_reason: StopReason
    usage: Usage


StreamPart = TextDelta | ThinkingDelta | ArgumentsDelta | Alive | Answer


class ModelClient:
    """One model of one provider; what calls it adds `stream`. name is "provider/model"."""

    def __init__(self, spec: ModelSpec) -> None:
        self.name = spec.name
        self.context_window = spec.context_window
        self.max_output = spec.max_output
        self.thinking = spec.thinking

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Call the model once. Raises ModelError; closing the iterator closes the connection."""
        raise NotImplementedError

    async def preload(self) -> None:
        """Import what is heavy and make ready, without a call. Runs after the channels are up."""

    async def close(self) -> None:
        """Release connections."""
