"""The provider-neutral transcript: messages made of parts, as stored and as handed to every model client.

Model clients translate messages when they call the provider, and nothing else does. The JSON form (see `bot/store`) is
stored once and never rewritten, so fields are only ever added, with defaults. The text in messages is well-formed:
JSON from outside can hold half a surrogate pair, which no UTF-8 store takes.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast

# Estimates, because each provider has its own count: tokens of an image, and of what surrounds each message.
_IMAGE_TOKENS = 1500
_OVERHEAD = 4
# Origins of each kind that a line bears at most; more of one kind are one that says so.
_MOST_ORIGINS = 8


class Mark(StrEnum):
    """Marks a note, result or message that the service wrote, so that code recognises it whatever its words are."""

    CUT = "cut"  # A note: the reply was cut. A result: the outcome of the call is unknown.
    LIMIT = "limit"  # A note: the reply reached the limit of output and goes on.
    STEPS = "steps"  # A note: the turn has reached its limit of steps.
    CIRCLES = "circles"  # A note: the turn repeats itself and must end.
    CLAIM = "claim"  # A note: the reply claims an act that no call did.
    REPEATED = "repeated"  # A result: the call was refused because it had been made again and again.
    SKIPPED = "skipped"  # A result: the call had not begun when a person wrote something new.
    FILES = "files"  # A message: it holds the files of the messages before it.
    RECALLED = "recalled"  # A message: what is remembered about the one before it. It is never stored.


ProvenanceKind = Literal["person", "web", "file", "command", "skill", "mcp", "memory", "background"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where text came from that is not an owner's or the operator's."""

    kind: ProvenanceKind
    # In words: the host of a page, the path of a file, a command, a person's name.
    what: str
    # Of a person: the channel and the id there. Of what a command has read: how it was allowed, and its digest.
    channel: str = ""
    sender: str = ""


def merged(origins: Iterable[Provenance]) -> tuple[Provenance, ...]:
    """Return origins without doubles, a bounded number of each kind, in order."""
    found: dict[Provenance, None] = {}
    counts: dict[ProvenanceKind, int] = {}
    for one in origins:
        if one in found:
            continue
        counts[one.kind] = counts.get(one.kind, 0) + 1
        found[one if counts[one.kind] <= _MOST_ORIGINS else Provenance(one.kind, "others")] = None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Thinking:
    """The reasoning of a model."""

    text: str
    # The provider needs it to accept the reasoning back: a signature, or the id of an item. Reasoning that has neither
    # this nor an encrypted form is never sent back.
    signature: str = ""
    # The encrypted form in which some providers return reasoning; the text is empty then, or a summary.
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
    # The bytes in base64; empty where `path` names a file.
    data: str
    # A file of the workspace, which is read again for each request.
    path: str = ""
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call."""

    call_id: str
    # The name of the tool, which some providers want repeated.
    name: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    # Why the call did not run to its end, if code must know.
    mark: Mark | None = None
    # Where its text came from.
    origins: tuple[Provenance, ...] = ()
    type: Literal["tool_result"] = "tool_result"


Part = Text | Thinking | ToolCall | ToolResult | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One message. The role `tool` carries tool results only; clients fold it into what their provider expects."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]
    # The model that wrote an assistant message ("provider/model"). Reasoning is sent back to that model only.
    model: str = ""
    schema: int = 1
    # Set for messages that the service wrote; None for words of people and models.
    mark: Mark | None = None
    # Where its text came from, results apart; of an answer or a summary, all that stood in its request.
    origins: tuple[Provenance, ...] = ()

    @property
    def text(self) -> str:
        """The text of all text parts, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of an assistant message, in the model's order; empty for other roles."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)]) if self.role == "assistant" else ()

    @property
    def all_origins(self) -> Sequence[Provenance]:
        """Where the text of the message and of the results in it came from."""
        return [*self.origins, *(origin for result in self.tool_results for origin in result.origins)]

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results of a message of the role `tool`, in the order of their calls; empty for other roles."""
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
    # Of a summary: the seq of the first line that it does not stand for.
    covers: int = 0
    # Whether long results in it are sent shortened, because they are old.
    pruned: bool = False
    # Of the first line that is shown: the position from which on nothing is left out but hidden lines; 0: its own.
    since: int = 0


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

    # What the model reads.
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    # Whether the process that the call started runs on in the background.
    goes_on: bool = False
    # Where the text came from, if not from the service itself.
    origins: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    # The JSON schema of its parameters, as canonical JSON text.
    schema_json: str


def estimate(message: Message) -> int:
    """Estimate the tokens of one message, at least 1."""
    quarters = 0
    images = 0
    for part in message.parts:
        match part:
            case Text(text=text) | Thinking(text=text):
                quarters += len(text) if text.isascii() else _quarters(text)
            case ToolCall(name=name, arguments=arguments):
                quarters += len(name) + (len(arguments) if arguments.isascii() else _quarters(arguments))
            case ToolResult(text=text, images=pictures):
                quarters += len(text) if text.isascii() else _quarters(text)
                images += len(pictures)
            case Image():
                images += 1
    return _OVERHEAD + quarters // 4 + images * _IMAGE_TOKENS


@lru_cache(maxsize=64)
def estimate_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Estimate the tokens of the descriptions of tools."""
    return sum(estimate_text(tool.description + tool.schema_json) for tool in tools)


def estimate_text(text: str) -> int:
    """Estimate the tokens of plain text."""
    return (len(text) if text.isascii() else _quarters(text)) // 4 + 1


def _quarters(text: str) -> int:
    """Return the estimated tokens of a text, times four.

    Tokenizers work on UTF-8: a letter of ASCII is about a quarter of a token, one with three bytes (Chinese) about one.
    """
    return len(text) + 3 * (len(text.encode(errors="replace")) - len(text)) // 2


T = TypeVar("T")


def well_formed(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cleaned(value: T) -> T:
    """Return a frozen value with all texts in it well-formed; the same object if they are already."""
    texts, left = [], [cast(Any, value)]
    while left:
        one = left.pop()
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, tuple):
            left += one
        elif is_dataclass(one):
            left += [getattr(one, field.name) for field in fields(one)]
    whole = "\n".join(texts)
    return value if whole.isascii() or well_formed(whole) == whole else _mended(value)


def _mended(value: T) -> T:
    found: Any = value
    if isinstance(found, str):
        found = well_formed(found)
    elif isinstance(found, tuple):
        found = tuple(map(_mended, found))
    elif is_dataclass(found):
        found = replace(found, **{field.name: _mended(getattr(found, field.name)) for field in fields(found)})  # type: ignore[type-var]
    return cast(T, found)


def visible(text: str) -> bool:
    """Whether a text holds anything but white space, control characters and invisible format characters."""
    return any(not char.isspace() and unicodedata.category(char) not in ("Cc", "Cf") for char in text)
