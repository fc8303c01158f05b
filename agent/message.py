"""The provider-neutral transcript: messages made of parts, as stored and as handed to every model client.

Clients translate these at the call boundary and nowhere else. The JSON form (see `bot/store`) is stored once and is
never rewritten, so fields are only ever added, with defaults.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal

# For estimates: providers count images their own way, and so what stands around each message.
_IMAGE_TOKENS = 1500
_OVERHEAD = 4


class Mark(StrEnum):
    """What the service has put into a transcript itself, where code must know it again, whatever its words are."""

    CUT = "cut"  # A note: the reply broke off. A result: the outcome of the call is unknown.
    LIMIT = "limit"  # A note: the reply reached the limit of output, and goes on.
    STEPS = "steps"  # A note: the turn has reached its limit of steps.
    CIRCLES = "circles"  # A note: the turn goes round in circles, and is to end.
    REPEATED = "repeated"  # A result: the call was refused because it had been made again and again.
    FILES = "files"  # A message: it holds the files of the messages before it.


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Thinking:
    """The reasoning of a model."""

    text: str
    # What the provider needs to accept the reasoning back; without one it is never sent back.
    signature: str = ""
    # The opaque form in which some providers hand reasoning over; the text is empty then.
    redacted: str = ""
    type: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that the model asked for."""

    call_id: str
    name: str
    # The JSON text as the model wrote it, which may be malformed.
    arguments: str
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class Image:
    """An image."""

    mime: str
    # Its bytes in base64; empty where `path` names a file.
    data: str
    # A file of the workspace, which is read for each request.
    path: str = ""
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave back."""

    call_id: str
    # Of the tool, for providers that want it repeated.
    name: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    # Why the call did not run to its end, where code must know that.
    mark: Mark | None = None
    type: Literal["tool_result"] = "tool_result"


Part = Text | Thinking | ToolCall | ToolResult | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One message. The role `tool` carries tool results only; clients fold it into what their provider expects."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]
    # Which model wrote an assistant message ("provider/model"); reasoning is sent back to that model only.
    model: str = ""
    schema: int = 1
    # Which line of the service it is; None for words of people and models.
    mark: Mark | None = None

    @property
    def text(self) -> str:
        """The words of all text parts, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in the model's order: only assistant messages have any."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)]) if self.role == "assistant" else ()

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results in it, in the order of their calls: only messages of the role `tool` have any."""
        return tuple([part for part in self.parts if isinstance(part, ToolResult)]) if self.role == "tool" else ()


EntryKind = Literal["user", "assistant", "assistant_cut", "tool_result", "summary", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a transcript."""

    # Its position in the transcript, from 1, without gaps.
    seq: int
    kind: EntryKind
    message: Message
    # An estimate, made when the line was written.
    tokens: int
    turn_id: str | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls. input counts all input tokens, those read from and written to a cache too."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool returns."""

    # For the model.
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    # The process that the call began runs on.
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    # The JSON schema of its parameters, as canonical JSON text.
    schema_json: str


def estimate(message: Message) -> int:
    """Tokens of one message, at least 1."""
    characters = 0
    images = 0
    for part in message.parts:
        match part:
            case Text(text=text) | Thinking(text=text):
                characters += len(text)
            case ToolCall(name=name, arguments=arguments):
                characters += len(name) + len(arguments)
            case ToolResult(text=text, images=pictures):
                characters += len(text)
                images += len(pictures)
            case Image():
                images += 1
    return _OVERHEAD + characters // 4 + images * _IMAGE_TOKENS


@lru_cache(maxsize=64)
def estimate_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Tokens of what a model is told of its tools."""
    return sum(estimate_text(tool.description + tool.schema_json) for tool in tools)


def estimate_text(text: str) -> int:
    """Tokens of plain text."""
    return len(text) // 4 + 1
