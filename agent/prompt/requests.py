"""What the last request of each transcript was made of: for /context, and to say why a provider's cache was missed.

A provider caches the beginning of a request (tools, then the system prompt, then messages) and tells how many tokens it
read from there. When a request should have found the one before it in the cache and did not, the log names the first
part of it that differs. The requests themselves are remembered, in memory and within a bound: their messages are those
of the context that is kept for the next turn anyway, and they are taken apart only when somebody asks.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import structlog

from agent.message import Mark, Usage, estimate, estimate_text
from agent.models.base import ModelClient, ModelRequest
from agent.prompt.build import Prompt, Section

log = structlog.get_logger()

# The most estimated tokens of all remembered requests; those of the transcripts used last are kept.
MAX_TOKENS = 500_000
# Milliseconds for which a provider keeps what it has cached, at least; Anthropic's cache lasts for five minutes.
CACHED_FOR = 4 * 60_000
# The fraction of what was cached that is at least read again unless something is wrong; providers round.
_EXPECTED = 0.8


class PartKind(StrEnum):
    """What a part of a request is."""

    TOOL = "tool"
    SECTION = "prompt"
    FILE = "file"
    SETTING = "setting"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a request, in the order in which providers cache them."""

    kind: PartKind
    # The name of a tool, section, file or setting; the number of a message, from 1.
    name: str
    characters: int
    # Estimated.
    tokens: int
    # The hash of its content, valid in this process.
    digest: int


@dataclass(slots=True, kw_only=True)
class Sent:
    """One request that was sent, or would be sent next."""

    # The images of messages are paths, as transcripts have them.
    request: ModelRequest
    # The system prompt in its sections.
    prompt: Prompt
    # "provider/model".
    model: str
    # The context window of the model, in tokens.
    window: int
    # When it was sent, in milliseconds since the epoch; None if it was not.
    at: int | None = None
    # The seq of the first line of the transcript in it; another one means that the conversation was shortened.
    start: int = 1
    # Of its messages, estimated.
    tokens: int = 0
    # What the provider counted; None until it has answered.
    usage: Usage | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the request; made anew at each call."""
        return tuple(_parts(self.request, self.prompt))


def first_change(before: tuple[Part, ...], after: tuple[Part, ...]) -> Part | None:
    """Return the first part of a request that the one after it has not in the same place; None if it has them all."""
    for index, part in enumerate(before):
        if index >= len(after) or after[index] != part:
            return part
    return None


@dataclass(eq=False)
class Requests:
    """Remembers the last request of each transcript, and holds each against the one before."""

    # Returns the time in milliseconds since the epoch.
    now: Callable[[], int]
    # By transcript the last request that people caused, and apart from it the last that they did not.
    _last: OrderedDict[tuple[str, bool], Sent] = field(default_factory=OrderedDict, init=False)
    _tokens: int = field(default=0, init=False)

    def last(self, transcript_id: str) -> Sent | None:
        """Return the last request of a transcript that people caused, also if it was not answered; None: not known."""
        return self._last.get((transcript_id, False))

    def sent(
        self,
        transcript_id: str,
        session_key: str,
        prompt: Prompt,
        background: bool,
        request: ModelRequest,
        model: ModelClient,
        start: int,
        tokens: int,
    ) -> Callable[[Usage], None]:
        """Remember a request that is about to be sent; return what takes the usage of its answer.

        background: whether nobody asked for the run. start, tokens: see `Sent`.
        """
        key = transcript_id, background
        before = self._last.pop(key, None)
        one = Sent(
            request=request,
            prompt=prompt,
            model=model.name,
            window=model.context_window,
            at=self.now(),
            start=start,
            tokens=tokens,
        )
        self._tokens += tokens - (before.tokens if before else 0)
        self._last[key] = one
        while self._tokens > MAX_TOKENS and len(self._last) > 1:
            self._tokens -= self._last.popitem(last=False)[1].tokens

        def answered(usage: Usage) -> None:
            one.usage = usage
            if before is not None:
                _compare(session_key, before, one, usage)

        return answered


def _compare(session_key: str, before: Sent, after: Sent, usage: Usage) -> None:
    """Write a line to the log if `after` should have been read from the cache as far as `before` reached, and was not.

    usage: of `after`. A conversation that was shortened, and another model, are expected to be cached anew.
    """
    if before.usage is None or before.at is None or after.at is None or before.model != after.model:
        return
    cached = before.usage.cache_read + before.usage.cache_write
    if after.at - before.at > CACHED_FOR or usage.cache_read >= cached * _EXPECTED:
        return
    changed = first_change(before.parts, after.parts)
    if changed is not None and changed.kind is PartKind.MESSAGE:
        recalled = before.request.messages[int(changed.name) - 1].mark is Mark.RECALLED
        if recalled or before.start != after.start:
            return
    write = log.info if changed is None else log.warning
    write(
        "less was read from the provider's cache than the request before had put there",
        session=session_key,
        model=after.model,
        changed=f"{changed.kind.value} {changed.name}" if changed else "nothing: the provider has dropped it",
        tokens_cached=cached,
        tokens_read=usage.cache_read,
        tokens_in=usage.input,
    )


def _parts(request: ModelRequest, prompt: Prompt) -> Iterator[Part]:
    for tool in request.tools:
        size = len(tool.name) + len(tool.description) + len(tool.schema_json)
        yield Part(PartKind.TOOL, tool.name, size, size // 4 + 1, hash(tool))
    sections = prompt.sections if prompt.text == request.system else (Section("whole", request.system),)
    for section in sections:
        kind = PartKind.FILE if section.is_file else PartKind.SECTION
        yield Part(kind, section.name, len(section.text), estimate_text(section.text), hash(section.text))
    # Changing these leaves tools and prompt in the cache, but not the messages.
    yield Part(PartKind.SETTING, "thinking", 0, 0, hash(request.thinking))
    yield Part(PartKind.SETTING, "whether calls are allowed", 0, 0, hash(request.allow_calls))
    for number, message in enumerate(request.messages, 1):
        yield Part(PartKind.MESSAGE, str(number), 0, estimate(message), hash(message))
