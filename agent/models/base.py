"""A model client and its values: the model's configuration, a request, and the neutral parts that are streamed back.

A client makes exactly one attempt per call (the SDK's own retries are off). Waiting and retrying are the runner's job,
because only the runner knows what has been said already. Errors are one closed set, `agent/errors.py`.
"""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent.message import Message, ToolSpec, Usage
from agent.pictures import MAX_IMAGE_BYTES, MAX_IMAGES

if TYPE_CHECKING:  # clients are built without pydantic
    from agent.models.price import Price
    from agent.sandbox.proof import Setting

# How long a model thinks; auto leaves it to the model.
ThinkingLevel = Literal["auto", "off", "low", "medium", "high", "x-high"]
# The protocol of a provider: one of `agent.models.BUILT_IN`, or one of an extension.
ModelApi = str


StopReason = Literal["end", "tool_use", "max_output", "refusal", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A program of the command line that is asked like a model."""

    # Its path, or its name on PATH.
    program: str
    # The folder with its login, settings and sessions, the only one that it may change.
    home: Path
    # A folder, made when it is needed, in which each call gets a folder of its own.
    temporary: Path
    # Which sandbox holds it, as `tools.exec.sandbox` has it.
    sandbox: "Setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model of one provider, as the configuration has it."""

    provider: str
    api: ModelApi
    model: str
    # The API root as the provider's own library takes it; empty: the provider's public one.
    base_url: str = ""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    # In tokens.
    context_window: int = 200_000
    max_output: int = 8192
    # Whether it takes a level of thinking.
    thinks: bool = False
    vision: bool = True
    # Further fields of the request as (name, JSON value), sent unchanged.
    params: tuple[tuple[str, object], ...] = ()
    # Of the api `cli` alone.
    command: CommandLine | None = None
    # None where it is not known.
    price: "Price | None" = None
    # Why this model was chosen, in a few words, for `hark status`.
    why: str = ""

    @property
    def name(self) -> str:
        """`provider/model`, as configuration and transcripts write it."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a model."""

    system: str
    # The last message has the role user or tool.
    messages: tuple[Message, ...]
    # Empty: the model can only answer with words.
    tools: tuple[ToolSpec, ...]
    # In tokens.
    max_output: int
    thinking: ThinkingLevel = "auto"
    # False: the tools stay in the request, so that its prefix is stable, but the provider is told not to use them.
    allow_calls: bool = True
    # Whether owners alone, or nobody, wrote what is to be answered. Some models answer nothing else.
    for_owners: bool = False
    # Forms that the provider wants, besides those of `Takes`.
    forms: frozenset[str] = frozenset()


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
    """A sign of life from the provider, such as a ping, without content."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole answer; the last part of every stream that did not fail."""

    message: Message
    stop_reason: StopReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Parts of the request that the provider has refused, and without which it answers (`agent/models/refusals.py`)."""

    parts: tuple[str, ...]


StreamPart = TextDelta | ThinkingDelta | ArgumentsDelta | Alive | LeftOut | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """What a provider takes, which is looked at before a request is sent; `agent/models/compat.py` has the table."""

    # The most tools, 0: any number.
    tools: int = 0
    # The most images, their pixels on each side (0: any number), and their bytes.
    images: int = MAX_IMAGES
    pixels: int = 0
    image_bytes: int = MAX_IMAGE_BYTES
    # ids: of calls are nine letters or digits. turns: people's messages and answers alternate, and an answer stands
    # behind results. signatures: calls of other models bear a mark in place of a signature. plain: schemas of tools
    # have few keywords. reasoning: that before a call comes back with it. unthought: the present calls have none.
    forms: frozenset[str] = frozenset()


# Persists what a model refuses: its name, and the reasons by the parts.
Keep = Callable[[str, Mapping[str, str]], Awaitable[None]]


class Refused:
    """What one model refuses, as parts of requests (`agent/models/refusals.py`)."""

    def __init__(self, model: str, keep: Keep) -> None:
        self._model, self._keep = model, keep
        # The provider's words about each part.
        self.parts: dict[str, str] = {}
        # Refusals that no try has helped against since a request was answered last.
        self.helpless: set[str] = set()

    async def learn(self, parts: Mapping[str, str]) -> None:
        """Note parts without which a request was answered."""
        self.helpless.clear()
        self.parts |= parts
        await self._keep(self._model, parts)


class ModelClient:
    """Base class of the clients, each for one model of one provider. `name` is "provider/model"."""

    # A digest of the key, by which its rests are stored; empty without a key.
    key = ""
    # What people are told of what it does not do, as a sentence; empty where there is nothing of the kind.
    limits = ""
    takes = Takes()
    # What the model is known to refuse, see `Fleet`; None: nothing is remembered.
    refused: Refused | None = None

    def __init__(self, spec: ModelSpec) -> None:
        self.name = spec.name
        if spec.api_keys:
            self.key = hashlib.sha256(spec.api_keys[0].encode()).hexdigest()[:16]
        self.context_window = spec.context_window
        self.max_output = spec.max_output
        self.thinks = spec.thinks

    def level_for(self, wanted: ThinkingLevel) -> ThinkingLevel:
        """Return the level with which the model answers where one is wanted: that, or the nearest lower one it has.

        auto where it takes none, so that none is sent.
        """
        return wanted if self.thinks else "auto"

    def output_limit(self, level: ThinkingLevel) -> int:
        """Return the most tokens of an answer where a level of thinking is wanted, thinking included."""
        return self.max_output

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """Call the model once. Raises ModelError; closing the iterator closes the connection."""
        raise NotImplementedError

    async def preload(self) -> None:
        """Import heavy libraries and prepare connections, without a call. Runs after the channels are up."""

    async def close(self) -> None:
        """Release connections."""
