"""One model call over HTTP: a request is posted through the provider's SDK, the events of the answer are read.

The SDKs serve as connection pool, authentication and error classes, and are imported in a thread when first needed. A
request is sent as finished bytes, so that no transform of an SDK walks through it. The answer is decoded here, from
server-sent events to parts, within a bound for its size. Every failure is a ModelError.
"""

import asyncio
import codecs
import contextlib
import io
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, ClassVar, Protocol, cast

from agent.errors import ModelError
from agent.models import failures
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    ModelClient,
    ModelSpec,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from agent.models.compat import BASE_URL, takes

_CONNECT_SECONDS = 10.0
_DRAIN_SECONDS = 0.25
# Bytes that are kept of an answer without events, because an error may be in them.
_MOST_HEAD = 64 * 1024

# Both SDKs offer a client over aiohttp, which nothing here uses, and import it (8 MiB) wherever it is installed.
_UNUSED = ("anthropic._vendor.httpx_aiohttp", "openai._vendor.httpx_aiohttp")


class Sdk(Protocol):
    """The methods of an SDK's client that are used; `anthropic.AsyncAnthropic` and `openai.AsyncOpenAI` have them."""

    @property
    def post(self) -> Callable[..., Any]:
        """Send a request."""

    @property
    def get(self) -> Callable[..., Any]:
        """Ask for something."""

    async def close(self) -> None:
        """Close the connections."""


class AnswerReader(Protocol):
    """Turns the events of one answer into neutral parts."""

    ended: bool  # whether the provider said that the answer is complete

    def feed(self, name: str, data: str) -> Iterable[StreamPart]:
        """Read one event; returns the parts it completes. Raises ModelError for an error event."""

    def answer(self) -> Answer | None:
        """Return the complete answer; None if the provider has not finished it."""

    def cut(self) -> None:
        """End the answer here, as if the provider had ended it at the model's limit of output."""


class SdkClient(ModelClient):
    """Base class of the clients that use an SDK; each of them adds `stream` and `_make_sdk`."""

    # What the SDK is told with each request.
    _options: ClassVar[Mapping[str, object]] = {}

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._spec = spec
        self.takes = takes(spec.api, spec.base_url, spec.model)
        self._key = spec.api_keys[0] if spec.api_keys else ""
        self._opening = asyncio.Lock()
        self._sdk: Sdk | None = None

    def _make_sdk(self, **options: Any) -> Sdk:
        """Import the SDK, which can take 2 s, and make its client. Called in a thread, with options all SDKs take."""
        raise NotImplementedError

    def _open_sdk(self) -> Sdk:
        import httpx2

        for name in _UNUSED:
            sys.modules.setdefault(name, cast(ModuleType, None))  # None stands for a module that is not there
        return self._make_sdk(max_retries=0, timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS))

    async def preload(self) -> None:
        """Import the SDK and make its client, once."""
        await self._opened()

    async def close(self) -> None:
        """Close the HTTP client."""
        if self._sdk is not None:
            sdk, self._sdk = self._sdk, None
            await sdk.close()

    async def _opened(self) -> Sdk:
        async with self._opening:
            if self._sdk is None:
                self._sdk = await asyncio.to_thread(self._open_sdk)
            return self._sdk

    async def _post(self, path: str, body: dict[str, object], reader: AnswerReader) -> AsyncGenerator[StreamPart, None]:
        """Post the body and yield what the reader makes of the events; the Answer comes last.

        Bytes that complete no event are a sign of life. An answer that becomes too large is cut off. Raises ModelError,
        also when the stream ends before the provider said that the answer is complete.
        """
        try:
            import httpx2

            async with self._sent(path, body) as chunks:
                measure, decoder = Measure(), Decoder()
                events: list[Event] = []
                head, has_begun = b"", False
                try:
                    async for chunk in chunks:
                        measure.add_bytes(len(chunk), anew=bool(events))
                        events = [] if measure.is_over else decoder.feed(chunk)
                        if events:
                            has_begun = True
                        elif not has_begun and len(head) < _MOST_HEAD:
                            head += chunk
                        for name, data in events:
                            for part in reader.feed(name, data):
                                measure.add(part)
                                yield part
                        if measure.is_over:
                            reader.cut()
                        if reader.ended:
                            break
                        if not events:
                            yield Alive()
                    else:
                        for name, data in decoder.end():
                            for part in reader.feed(name, data):
                                yield part
                except httpx2.TransportError:
                    if reader.answer() is None:  # else only the politeness after the last event is missing
                        raise
                answer = reader.answer()
                if answer is None:
                    raise failures.of_unfinished(b"" if has_begun else head, (self._key,))
                if not measure.is_over:  # else there may be no end of it
                    await _drain(chunks)
                yield answer
        except ModelError as error:
            raise ModelError(error.kind, failures.masked(error.detail, (self._key,)), error.retry_after) from None
        except Exception as error:
            raise failures.of_exception(error, (self._key,), body) from None

    @contextlib.asynccontextmanager
    async def _sent(self, path: str, body: dict[str, object]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and yield an iterator over the bytes of the answer."""
        import httpx2

        sdk = await self._opened()
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        response = await sdk.post(path, cast_to=httpx2.Response, content=content, stream=True, options=self._options)
        try:
            async with contextlib.aclosing(response.aiter_bytes()) as chunks:
                yield chunks
        finally:
            await response.aclose()


class OpenAiClient(SdkClient):
    """Base class of the clients that use the SDK of OpenAI."""

    _options: ClassVar = {"security": {"bearer_auth": True}}

    def _make_sdk(self, **options: Any) -> Sdk:
        """Make the SDK's client. It needs a key, and local servers take any."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key=self._key or "none", base_url=self._spec.base_url or BASE_URL, **options)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows the last event (mostly there already), so that the connection can be used again."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass


Event = tuple[str, str]  # its name ("" when it has none) and its data


class Decoder:
    """Decodes server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html

    Gives (name, data) pairs, because an answer is thousands of events; the time is linear in the number of bytes.
    Comments and fields other than `event` and `data` are ignored. Unlike the standard, `end` also returns an event that
    lacks its blank line at the end of the stream, because some servers do not send that line.
    """

    def __init__(self) -> None:
        characters = codecs.getincrementaldecoder("utf-8-sig")("replace")  # drops a byte order mark
        self._decoder = io.IncrementalNewlineDecoder(characters, translate=True)
        self._pieces: list[str] = []  # the beginning of a line that has not ended
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Read some bytes; returns the events that they complete."""
        text = self._decoder.decode(chunk)
        if "\n" not in text:
            self._pieces.append(text)
            return []
        *lines, rest = ("".join((*self._pieces, text)) if self._pieces else text).split("\n")
        self._pieces = [rest] if rest else []
        events: list[Event] = []
        for line in lines:
            if line:
                key, _, value = line.partition(":")
                if key == "data":
                    self._data.append(value.removeprefix(" "))
                elif key == "event":
                    self._name = value.removeprefix(" ")
            else:
                if self._data:
                    events.append((self._name, "\n".join(self._data)))
                self._name, self._data = "", []
        return events

    def end(self) -> list[Event]:
        """Return the last event of the stream if no blank line ended it."""
        return self.feed(b"\n\n")


# Answers are collected in memory, and not every provider keeps to the limit of output that a request names.
# Characters of the arguments of one call: a `write` of a large file stays below this.
MOST_ARGUMENTS = 1024 * 1024
# Characters of text, reasoning and calls together: several times the longest answer of any model.
MOST_CHARACTERS = 4 * 1024 * 1024
# Bytes as received, to bound signatures and endless lines too. An event of a hundred bytes often holds one token.
MOST_BYTES = 64 * 1024 * 1024
# Bytes of one event, which is read as a whole. Some servers send a call in one piece.
MOST_EVENT_BYTES = 8 * 1024 * 1024


class Measure:
    """Measures one answer; `is_over` becomes true once the answer is too large."""

    def __init__(self) -> None:
        self.is_over = False
        self._bytes = self._event_bytes = self._characters = 0
        self._calls: Counter[str] = Counter()

    def add_bytes(self, count: int, *, anew: bool) -> None:
        """Count bytes as received. anew: the bytes before these completed an event."""
        self._bytes += count
        self._event_bytes = count if anew else self._event_bytes + count
        self.is_over = self.is_over or self._bytes > MOST_BYTES or self._event_bytes > MOST_EVENT_BYTES

    def add(self, part: StreamPart) -> None:
        """Count the characters of a part; the id and name of a call count once."""
        match part:
            case TextDelta(text=text) | ThinkingDelta(text=text):
                self._characters += len(text)
            case ArgumentsDelta(call_id=call_id, name=name, text=text):
                held = len(text) if call_id in self._calls else len(text) + len(call_id) + len(name)
                self._characters += held
                self._calls[call_id] += held
                self.is_over = self.is_over or self._calls[call_id] > MOST_ARGUMENTS
        self.is_over = self.is_over or self._characters > MOST_CHARACTERS
