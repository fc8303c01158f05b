"""The provider-neutral transcript: messages made of parts, as stored and as handed to every model client.

Clients translate these at the call boundary and nowhere else. The JSON form (see `bot/store`) is stored once and is
never rewritten, so fields are only ever added, with defaults.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of a model. signature: what the provider needs to accept it back; empty: it is never sent back.

    redacted: the provider's opaque form; text is empty then.
    """

    text: str
    signature: str = ""
    redacted: str = ""
    type: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for. arguments: the JSON text as the model wrote it, possibly malformed."""

    call_id: str
    name: str
    arguments: str
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class Image:
    """An image, base64. path: instead of data, of a file of the workspace, which is read for each request."""

    mime: str
    data: str
    path: str = ""
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave back. name: of the tool, for providers that want it repeated."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    type: Literal["tool_result"] = "tool_result"


Part = Text | Thinking | ToolCall | ToolResult | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Role `tool` carries tool results only; clients fold it into what their provider expects.

    model: which model wrote an assistant message ("provider/model"); thinking is sent back to that model only.
    """

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]
    model: str = ""
    schema: int = 1

    @property
    def text(self) -> str:
        """The words of all text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in the model's order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results in it, in the order of their calls."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


EntryKind = Literal["user", "assistant", "assistant_cut", "tool_result", "summary", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a transcript. seq: position, from 1, without gaps. tokens: estimate, made when it was written."""

    seq: int
    kind: EntryKind
    message: Message
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
    """What a tool returns: text for the model, and images. goes_on: the process that it began runs on."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    goes_on: bool = False
