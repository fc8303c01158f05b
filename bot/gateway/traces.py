"""Traces: OpenTelemetry spans of turns, model calls and calls of tools, by the conventions for generative AI.

They are made from persisted events, as every surface reads them, so no turn waits for them, and they hold no words: no
text of people or models, no arguments, no results. A run is a span, `invoke_agent`; each of its model calls (`chat`)
and calls of tools (`execute_tool`) is a span below it. The attributes are those of
https://opentelemetry.io/docs/specs/semconv/gen-ai/ and a few that begin with `hark.`.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from agent import events
from agent.events import Outcome
from bot.bus import EventBus
from bot.config.telemetry import Otlp
from bot.store.reads import Reads

log = structlog.get_logger()

# Spans that wait at most, milliseconds between batches, and spans of one.
_BATCHES = 2048, 5000, 512
# Runs whose end has not come that are remembered, the newest ones, and events that are read at once.
_RUNS, _PAGE = 1000, 500
# Seconds that one request to the collector may take, and that the last spans have when the service stops.
_TIMEOUT, _LAST = 10.0, 3.0
_About = Mapping[str, str | bool | int]
_FAILED = (Outcome.FAILED, Outcome.TIMEOUT)


@dataclass
class _Run:
    """The spans of a run that have not ended."""

    span: Span
    # The model that answers, "provider/model".
    model: str
    chat: Span | None = None
    # By the id of the call.
    tools: dict[str, Span] = field(default_factory=dict)


class Traces:
    """Reads the events of all runs and exports their spans."""

    def __init__(self, otlp: Otlp, bus: EventBus, reads: Reads) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what fails is told once, by `_Told`
        self._bus, self._reads = bus, reads
        resource = Resource.create({"service.name": "hark", "service.version": version("hark-bot")})
        # the configuration alone decides, and no variable of the environment
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_Told(otlp), *_BATCHES))
        self._tracer = self._provider.get_tracer("hark")
        self._runs: dict[str, _Run] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read events."""
        self._task = asyncio.create_task(self._serve(), name="traces")

    async def close(self) -> None:
        """Export what is left, within a few seconds, once the bus is closed."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=_LAST)
            self._task.cancel()
        # in a thread that the end of the process does not wait for: the collector may not answer
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        await asyncio.to_thread(last.join, _LAST)

    async def _serve(self) -> None:
        subscription = self._bus.subscribe()
        while batch := await subscription.batch():
            for told in batch:
                if isinstance(told, range):
                    try:
                        await self._read(told)
                    except Exception as error:
                        log.warning("spans are missing", reason=f"{type(error).__name__}: {error}")

    async def _read(self, positions: range) -> None:
        seq = positions.start - 1
        while found := await self._reads.events_after(seq, positions.stop - 1, None, None, _PAGE):
            seq = found[-1].seq
            for one in found:
                self.hear(events.load(one.body))

    def hear(self, event: events.AgentEvent) -> None:
        """Begin or end the span that an event is about."""
        ref, at = event.run, event.at * 1_000_000
        if isinstance(event, events.AgentStart):
            self._begin(event, at)
            return
        run = self._runs.get(ref.run_id)
        if run is None:
            return
        match event:
            case events.MessageStart():
                _end(run.chat, at, "cut")
                about: _About = {**_asked(run.model), "gen_ai.request.stream": True}
                run.chat = self._span(f"chat {about['gen_ai.request.model']}", "chat", run, at, about, SpanKind.CLIENT)
            case events.MessageEnd():
                if run.chat is not None:
                    _answered(run, run.chat, event)
                _end(run.chat, at, "cut" if event.cut and event.stop_reason == "other" else "")
                run.chat = None
            case events.ToolExecutionStart(name=name, call_id=call):
                about = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call, "gen_ai.tool.type": "function"}
                run.tools[call] = self._span(f"execute_tool {name}", "execute_tool", run, at, about)
            case events.ToolExecutionEnd(call_id=call, state=state):
                _end(run.tools.pop(call, None), at, "" if state == "done" else state)
            case events.Notice(kind=kind):
                run.span.add_event(kind, timestamp=at)
            case events.AgentEnd():
                self._finish(ref.run_id, event, at)

    def _begin(self, event: events.AgentStart, at: int) -> None:
        self._drop(event.run.run_id, at)
        while len(self._runs) >= _RUNS:
            self._drop(next(iter(self._runs)), at)
        about: _About = {
            "gen_ai.agent.name": "hark",
            "gen_ai.conversation.id": event.run.session_key,
            **_asked(event.model),
            "hark.turn": event.run.turn_id,
            "hark.attempt": event.run.attempt,
        }
        span = self._span("invoke_agent hark", "invoke_agent", None, at, about)
        self._runs[event.run.run_id] = _Run(span, event.model)

    def _finish(self, run_id: str, event: events.AgentEnd, at: int) -> None:
        run = self._runs.pop(run_id)
        for span in (run.chat, *run.tools.values()):
            _end(span, at, event.error_kind or event.outcome.value)
        run.span.set_attributes(
            {
                "hark.outcome": event.outcome.value,
                "gen_ai.response.model": event.model.partition("/")[2],
                "gen_ai.usage.input_tokens": event.usage.input,
                "gen_ai.usage.output_tokens": event.usage.output,
            }
        )
        _end(run.span, at, (event.error_kind or event.outcome.value) if event.outcome in _FAILED else "")

    def _drop(self, run_id: str, at: int) -> None:
        """End the spans of a run whose end never came."""
        if (run := self._runs.pop(run_id, None)) is not None:
            for span in (run.chat, *run.tools.values(), run.span):
                _end(span, at, "lost")

    def _span(
        self, name: str, operation: str, below: _Run | None, at: int, about: _About, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        context = None if below is None else set_span_in_context(below.span)
        attributes = {"gen_ai.operation.name": operation, **about}
        return self._tracer.start_span(name, context, kind, attributes, start_time=at)


class _Told(SpanExporter):
    """Exports to the collector, and logs once when that fails, and once when it works again."""

    def __init__(self, otlp: Otlp) -> None:
        self._endpoint = f"{otlp.endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/traces"
        headers = {name: value.get_secret_value() for name, value in otlp.headers.items()}
        self._exporter = OTLPSpanExporter(self._endpoint, headers=headers, timeout=_TIMEOUT)
        self._fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if (fails := result is not SpanExportResult.SUCCESS) != self._fails:
            self._fails = fails
            log.warning("the collector of spans fails" if fails else "the collector of spans works again")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _asked(name: str) -> dict[str, str]:
    """Return what a span says of the model that is asked, "provider/model"."""
    provider, _, model = name.partition("/")
    return {"gen_ai.provider.name": provider, "gen_ai.request.model": model}


def _answered(run: _Run, chat: Span, event: events.MessageEnd) -> None:
    """Write into the span of a model call what came of it; another model than the one before may have answered."""
    run.model = event.model or run.model
    asked = _asked(run.model)
    model = asked["gen_ai.request.model"]
    chat.update_name(f"chat {model}")
    chat.set_attributes(
        {
            **asked,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": (event.stop_reason,),
            "gen_ai.usage.input_tokens": event.usage.input,
            "gen_ai.usage.output_tokens": event.usage.output,
            "gen_ai.usage.cache_read.input_tokens": event.usage.cache_read,
            "gen_ai.usage.cache_creation.input_tokens": event.usage.cache_write,
        }
    )


def _end(span: Span | None, at: int, error: str) -> None:
    """End a span, if there is one. error: its kind; empty: it was none."""
    if span is None:
        return
    if error:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(at)
