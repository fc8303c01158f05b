"""What is used of an SDK: its client is made in a thread when first needed, posts, and gives raw events to read.

The SDKs serve as connection pool, authentication and error classes. A request travels as finished bytes (`content`),
so that no transform of theirs walks through it; an answer is read as raw events. Every failure is a ModelError.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from types import ModuleType
from typing import Any, Protocol, cast

from agent.errors import ErrorKind, ModelError
from agent.models import failures, sse
from agent.models.base import Alive, Answer, ModelClient, StreamPart
from agent.models.bounds import Measure
from agent.models.spec import ModelSpec

_CONNECT_SECONDS = 10.0
_DRAIN_SECONDS = 0.25

# Both SDKs offer a client over aiohttp, which nothing here uses, and import it (8 MiB) wherever it is installed.
_UNUSED = ("anthropic._vendor.httpx_aiohttp", "openai._vendor.httpx_aiohttp")


class Sdk(Protocol):
    """What is used of an SDK's client; `anthropic.AsyncAnthropic` and `openai.AsyncOpenAI` have it."""

    @property
    def post(self) -> Callable[..., Any]:
        """Send a request."""

    async def close(self) -> None:
        """Close the connections."""


class AnswerReader(Protocol):
    """Makes neutral parts of a provider's events; one per answer."""

    ended: bool  # the provider said that this was all

    def feed(self, name: str, data: str) -> Iterable[StreamPart]:
        """Take in one event by name and data; raises ModelError for an error event."""

    def answer(self) -> Answer | None:
        """The whole answer; None if the provider has not finished it."""

    def cut(self) -> None:
        """Take what came as the answer, as if the provider had ended it at the model's limit of output."""


class SdkClient(ModelClient):
    """What the model clients of all providers have in common; each of them adds `stream` and `_make_sdk`."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._spec = spec
        self._key = spec.api_keys[0] if spec.api_keys else ""
        self._opening = asyncio.Lock()
        self._sdk: Sdk | None = None

    def _make_sdk(self, **options: Any) -> Sdk:
        """Import the SDK and make its client with options that all of them take; runs in a thread (2 s for some)."""
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

    async def _post(
        self, path: str, body: dict[str, object], reader: AnswerReader, options: dict[str, object] | None = None
    ) -> AsyncGenerator[StreamPart, None]:
        """Post the body and yield what the reader makes of the events; the Answer comes last.

        Bytes that complete no event are a sign of life. An answer that holds too much is cut there. Raises ModelError:
        also for a stream that ends before the provider has said that the answer is complete.
        """
        try:
            import httpx2

            async with self._sent(path, body, options or {}) as chunks:
                measure, decoder = Measure(), sse.Decoder()
                events: list[sse.Event] = []
                try:
                    async for chunk in chunks:
                        measure.add_bytes(len(chunk), anew=bool(events))
                        events = [] if measure.is_over else decoder.feed(chunk)
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
                    raise ModelError(ErrorKind.NETWORK, "the stream ended before the answer was complete")
                if not measure.is_over:  # else there may be no end of it
                    await _drain(chunks)
                yield answer
        except ModelError as error:
            raise ModelError(error.kind, failures.masked(error.detail, (self._key,)), error.retry_after) from None
        except Exception as error:
            raise failures.of_exception(error, (self._key,)) from None

    @contextlib.asynccontextmanager
    async def _sent(
        self, path: str, body: dict[str, object], options: dict[str, object]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request; gives the bytes of the answer as they come."""
        import httpx2

        sdk = await self._opened()
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        response = await sdk.post(path, cast_to=httpx2.Response, content=content, stream=True, options=options)
        try:
            async with contextlib.aclosing(response.aiter_bytes()) as chunks:
                yield chunks
        finally:
            await response.aclose()


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows the last event (mostly there already), so that the connection can be used again."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass
