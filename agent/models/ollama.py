"""The client of Ollama: chat completions, within a context whose size is set and known.

Ollama loads a model with a context of its own choice, 4,096 tokens on most machines, and leaves out in silence the
oldest messages that do not fit. Chat completions have no field for that, so a variant of the model is made on the
server that says it, and takes no room there: https://docs.ollama.com/api/openai-compatibility
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

import structlog

from agent.errors import ErrorKind, ModelError
from agent.message import estimate, estimate_text, estimate_tools
from agent.models import failures, openai_chat
from agent.models.base import ModelRequest, ModelSpec, StreamPart
from agent.models.compat import VARIANT
from agent.models.protocol import Block, items, number, record, text

log = structlog.get_logger()

# Of calls of the API: a model must be loaded in so many seconds.
_OPTIONS: Block = {"timeout": 600.0}
# Tokens that an answer needs at least.
_LEAST_ANSWER = 256


class Client(openai_chat.Client):
    """A client of one model; `context_window` is what the server has loaded it with, at most what was wanted.

    The server is asked once, in the background after the start or before the first call, and again if that failed.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._asking: asyncio.Task[ModelError | None] | None = None
        # Cloud models have their whole context.
        self._is_set = spec.model.endswith(("-cloud", ":cloud"))

    async def preload(self) -> None:
        """Import the SDK, and begin to load the model."""
        await super().preload()
        self._ask()

    async def close(self) -> None:
        """Close the HTTP client."""
        if self._asking is not None:
            self._asking.cancel()
        await super().close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """See ModelClient. A request that the server would cut is refused as one that is too large."""
        if not self._is_set and (error := await asyncio.shield(self._ask())) is not None:
            raise error
        sent = estimate_text(request.system) + estimate_tools(request.tools) + sum(map(estimate, request.messages))
        room = self.context_window - sent
        if room < _LEAST_ANSWER:
            what = f"about {sent:,} tokens do not fit into the {self.context_window:,} that Ollama has for {self.name}"
            raise ModelError(ErrorKind.CONTEXT_OVERFLOW, f"{what}; `context_window` of the model asks for more")
        # Where prompt and answer do not fit together, the server gives up the beginning; an eighth, as it is estimated.
        request = replace(request, max_output=min(request.max_output, max(room - sent // 8, _LEAST_ANSWER)))
        try:
            async with aclosing(super().stream(request)) as parts:
                async for part in parts:
                    yield part
        except ModelError as error:
            if error.kind is ErrorKind.MODEL_NOT_FOUND:  # somebody has removed the variant
                self._is_set = False
            raise

    def _ask(self) -> asyncio.Task[ModelError | None]:
        """Return what sets the context, begun anew where it has failed."""
        if self._asking is None or (self._asking.done() and not self._is_set):
            self._asking = asyncio.create_task(self._set_context(), name="set-context")
        return self._asking

    async def _set_context(self) -> ModelError | None:
        """Set the context and read it; returns why the server cannot be asked at all."""
        model, wanted = self._spec.model, self.context_window
        variant = f"{_tagged(model)}{VARIANT}{wanted}"
        told = {"model": variant, "from": model, "parameters": {"num_ctx": wanted}, "stream": False}
        try:
            await self._call("show", {"model": model})  # else the next call would download a model that is not there
            await self._call("create", told)
        except ModelError as error:
            if error.kind in (ErrorKind.NETWORK, ErrorKind.TIMEOUT):
                return error
            log.warning("the context of a model cannot be set", model=self.name, said=error.detail)
            variant = model
        # Not as `spec.model`, which also says whose thinking goes back.
        params = tuple(one for one in self._spec.params if one[0] != "model")
        self._spec = replace(self._spec, params=(*params, ("model", variant)))
        try:
            real = await self._loaded(variant)
        except ModelError as error:  # the call itself says more
            log.warning("the context of a model is not known", model=self.name, said=error.detail)
            return None
        if real:
            self.context_window = min(real, wanted)
            self.max_output = min(self.max_output, self.context_window // 4)
        self._is_set = True
        if real >= wanted:
            log.info("the context of a model is set", model=self.name, context=real)
        else:
            log.warning("Ollama gives a model less context than wanted", model=self.name, context=real, wanted=wanted)
        return None

    async def _loaded(self, model: str) -> int:
        """Load a model; returns the tokens of its context, 0 where the server does not say them."""
        await self._call("generate", {"model": model, "stream": False})
        running = [record(one) for one in items((await self._call("ps")).get("models"))]
        return next(
            (number(one.get("context_length")) for one in running if text(one.get("name")) == _tagged(model)), 0
        )

    async def _call(self, name: str, body: Block | None = None) -> Block:
        """Call a method of Ollama's own API, with a body by POST. Raises ModelError."""
        try:
            import httpx2

            sdk, url = await self._opened(), f"{self._spec.base_url.rstrip('/').removesuffix('/v1')}/api/{name}"
            send = sdk.get if body is None else partial(sdk.post, body=body)
            return record((await send(url, cast_to=httpx2.Response, options=_OPTIONS)).json())
        except Exception as error:
            raise failures.of_exception(error, (self._key,)) from None


def _tagged(model: str) -> str:
    """Return the name of a model as the server writes it."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"
