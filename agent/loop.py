"""The agent loop: send a request, stream the answer, run its tool calls, and repeat until there are no more calls.

All state is in the context, so a run that is resumed after a crash, a broken stream or a drain enters the loop like a
new one. Model errors leave the loop as ModelError; `agent/runner.py` decides what to do about them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from agent.bridge import Bridge, bridged
from agent.calls.batch import run_batch
from agent.calls.claims import ANY_TOOL, unfounded
from agent.calls.loop_guard import OVER_NOTE, repeats
from agent.compaction.engine import ContextEngine
from agent.context import CUT_NOTE, UNSAID_NOTE, Context
from agent.errors import HALTED, ErrorKind, ModelError, RunLost
from agent.events import AgentEnd, MessageEnd, MessageUpdate, Outcome
from agent.journal import Cut, Journal, Step
from agent.message import (
    Mark,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    cleaned,
    visible,
    well_formed,
)
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    LeftOut,
    ModelClient,
    ModelRequest,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from agent.origins import label
from agent.spec import RunSpec

LIMIT_NOTE = (
    "You have reached the limit of steps for this turn. Call no tool. "
    "Say in a few sentences what is done and what is still open."
)
CLAIM_NOTE = (
    "Your answer says that something was done, but no call in this turn did it successfully. "
    "Do it now with a call, or answer again and say plainly that it was not done. "
    "The answer above does not stand; do not mention this note."
)
# How many answers of a turn that reached the limit of output are continued.
LIMIT_CUTS = 2


class Loop:
    """One run of one turn."""

    def __init__(self, spec: RunSpec, context: Context, journal: Journal) -> None:
        self._spec = spec
        self._context = context
        self._journal = journal
        # Decides what of the conversation is sent.
        self.engine = ContextEngine(spec, context, journal)
        # Answers of the turn, cut ones included.
        self.step = spec.progress.step
        # Complete answers of this run.
        self.answers = 0
        self.usage = spec.progress.usage
        self._speaking = {tool.name for tool in spec.tools.by_name.values() if tool.speaks}
        self._steered = False  # whether a steering text waits behind the last answer
        # Whether people have been shown anything by this turn.
        self.said = context.said(spec.ref.turn_id, self._speaking)

    async def run(self) -> AgentEnd:
        """Work until the turn ends or is parked.

        Raises ModelError, BudgetReached, RunLost, or what the store raises.
        """
        while True:
            calls = self._context.open_calls()
            if calls or self._context.silenced():
                steered = self._steered
                ended = await run_batch(self._spec, calls, self._context, self._journal, self.step, steered=steered)
                if ended is not None:
                    return ended
            over = self._over()
            if over is not None and not self._context.marked(self._spec.ref.turn_id, over):
                words = LIMIT_NOTE if over is Mark.STEPS else OVER_NOTE
                self._context.append([await self._journal.note(_note(words, over))])
            end = await self._answer(Outcome.LIMIT if over else Outcome.COMPLETED, allow_calls=over is None)
            if end is not None:
                return end

    def go_on(self, cut: Cut) -> None:
        """Count an answer that broke off, so that the next `run` continues after it."""
        self.step = cut.step
        self.said = self.said or bool(cut.entries)

    async def _answer(self, outcome: Outcome, *, allow_calls: bool) -> AgentEnd | None:
        """Make one model call and persist the answer; returns the end of the run if the turn ends with it.

        outcome: of the turn, if it ends so; an answer that reaches the limit of output makes it `LIMIT`.
        """
        spec, step, model = self._spec, self.step + 1, self._spec.route.model
        await self.engine.assemble()
        messages = self._context.messages(recalled=True)
        if self._context.has_images:
            messages = await spec.images.loaded(messages, model.takes)
        request = ModelRequest(
            system=spec.system,
            messages=messages,
            tools=spec.tools.specs,
            max_output=model.max_output,
            thinking=spec.route.thinking,
            allow_calls=allow_calls,
            for_owners=spec.for_owners,
        )
        await self._journal.reserve(model.name, Usage(self.engine.tokens, model.output_limit(request.thinking)))
        after = self._context.cut_text()
        self._journal.begin(step, after)
        answered = self._noted(request, model)
        answer = await self._stream(model, request, step, Bridge(after))
        if spec.route.failed or spec.route.fleet.rests:
            await spec.route.works()
        answered(answer.usage)
        self.usage, origins = self.usage + answer.usage, label(self._context.newest_first(), spec.origins)
        message = replace(self._checked(answer, allow_calls, after), model=model.name, origins=origins)
        note = self._note_behind(answer, message) if allow_calls else None
        ended = MessageEnd(
            run=spec.ref,
            at=spec.now(),
            step=step,
            text=message.text,
            calls=tuple(call.call_id for call in message.tool_calls),
            stop_reason=answer.stop_reason,
            usage=answer.usage,
            cut=note is not None and note.mark is Mark.LIMIT,
            model=model.name,
        )
        kept = await self._journal.step(
            Step(
                message=message,
                ended=ended,
                usage=self.usage,
                context_start=self._context.start,
                pruned_below=self._context.pruned_below,
                outcome=Outcome.LIMIT if answer.stop_reason == "max_output" else outcome,
                note=note,
                failed=None if note or message.tool_calls else self._failed(),
                acts=() if note or message.tool_calls else self._context.acts(spec.ref.turn_id),
            )
        )
        self.step, self.answers, self._steered = step, self.answers + 1, kept.steered
        self.said = self.said or visible(message.text)
        self._context.append(kept.entries)
        if kept.halted:
            raise RunLost(HALTED)
        return kept.end

    def _noted(self, request: ModelRequest, model: ModelClient) -> Callable[[Usage], None]:
        """Note a request that is about to be sent; return what takes the usage of its answer."""
        light = (
            replace(request, messages=self._context.messages(recalled=True)) if self._context.has_images else request
        )
        noted = self._spec.sent(light, model, self._context.start, self._context.tokens)

        def answered(usage: Usage) -> None:
            noted(usage)
            self.engine.answered(usage)

        return answered

    def _claims(self, text: str) -> bool:
        """Whether an answer claims an act that no call did, and the model has not been told so in this turn."""
        spec, context = self._spec, self._context
        if spec.may_be_empty or not unfounded(text, ()):
            return False
        if context.marked(spec.ref.turn_id, Mark.CLAIM):
            return False
        before = context.succeeded() if context.is_whole else ANY_TOOL
        return unfounded(text, context.succeeded(spec.ref.turn_id), before)

    def _failed(self) -> ToolResult | None:
        """Return the last change that failed for good in this turn, not counting calls that people or Hark refused."""
        spec, own = self._spec, self._context.of_turn(self._spec.ref.turn_id)
        tools = {tool.name for tool in spec.tools.by_name.values() if tool.changes}
        denied = {call_id for call_id, one in spec.progress.decisions.items() if one.state in ("denied", "expired")}
        results = (result for entry in own for result in entry.message.tool_results)
        denied |= {result.call_id for result in results if result.mark in (Mark.REPEATED, Mark.SKIPPED)}
        return self._context.unmended(spec.ref.turn_id, tools, denied)

    async def _stream(self, model: ModelClient, request: ModelRequest, step: int, bridge: Bridge) -> Answer:
        """Stream one answer. Raises ModelError, of kind TIMEOUT when the model is silent for too long.

        The time that handling a piece takes does not count as silence.
        """
        published: Counter[tuple[str, str]] = Counter()
        idle = self._spec.limits.idle_timeout
        async with aclosing(model.stream(request)) as parts:
            try:
                async with asyncio.timeout(None) as timeout:
                    with _Silence(timeout, idle) as silence:
                        while True:
                            silence.begin()
                            part = await anext(parts, None)
                            silence.end()
                            if part is None:
                                raise ModelError(ErrorKind.NETWORK, "the stream ended without an answer")
                            await self._publish(part, step, bridge, published)
                            if isinstance(part, Answer):
                                return part
                            if isinstance(part, LeftOut) and not self._spec.background:
                                await self._journal.left_out(model.name, part.parts)
            except TimeoutError:
                if not timeout.expired():
                    raise
                raise ModelError(ErrorKind.TIMEOUT, f"the model was silent for {idle:g} s") from None

    async def _publish(self, part: StreamPart, step: int, bridge: Bridge, published: Counter[tuple[str, str]]) -> None:
        """Publish a part of the stream. published: the number of characters published so far, by kind and call."""
        for kind, delta, of in _pieces(part, bridge):
            if not published:
                await self._journal.answers(self._spec.route.model.name, self._spec.route.wanted)
            ref, now, offset = self._spec.ref, self._spec.now(), published[kind, of]
            published[kind, of] += len(delta)
            await self._journal.update(
                MessageUpdate(run=ref, at=now, step=step, part=kind, delta=delta, call_id=of, offset=offset)
            )

    def _note_behind(self, answer: Answer, message: Message) -> Message | None:
        """Return the note with which the model goes on behind an answer; None: it needs none."""
        if answer.stop_reason == "max_output":
            if self._context.marked(self._spec.ref.turn_id, Mark.LIMIT) < LIMIT_CUTS:
                return _note(CUT_NOTE if message.parts else UNSAID_NOTE, Mark.LIMIT)
        elif not message.tool_calls and self._claims(message.text):
            return _note(CLAIM_NOTE, Mark.CLAIM)
        return None

    def _checked(self, answer: Answer, allow_calls: bool, after: str) -> Message:
        """Return the answer as it is persisted, with the same words that were streamed (see `bridge`).

        Call ids are made unique. Calls are dropped where none are allowed, or where the provider cut the answer, since
        they may be incomplete. Raises ModelError for an empty answer, unless one is accepted here.
        """
        seen = self._context.call_ids
        allow_calls = allow_calls and answer.stop_reason not in ("max_output", "refusal")
        parts: list[Part] = []
        for part in bridged(cleaned(answer.message.parts), after):
            if isinstance(part, ToolCall):
                if not allow_calls:
                    continue
                if part.call_id in seen or not part.call_id:
                    part = replace(part, call_id=f"call_{self._spec.ref.turn_id[-12:]}_{self.step + 1}_{len(parts)}")
                seen.add(part.call_id)
            elif isinstance(part, Text) and not part.text:
                continue
            elif isinstance(part, Thinking) and answer.stop_reason == "max_output":
                continue  # only the text of a cut answer is kept
            parts.append(part)
        message = replace(answer.message, parts=tuple(parts))
        if message.tool_calls or visible(message.text):
            return message
        if answer.stop_reason == "refusal":
            raise ModelError(ErrorKind.CONTENT_FILTER, "the model declined to answer")
        said = self.said or self._context.said(self._spec.ref.turn_id, self._speaking)
        # What answers the note about a claim must say something, for the answer before it may not have been shown.
        said = said and not (self._context.entries and self._context.entries[-1].message.mark is Mark.CLAIM)
        if not (said or answer.stop_reason == "max_output" or self._spec.may_be_empty):
            raise ModelError(ErrorKind.UNKNOWN, "the model gave an empty answer")
        # An empty answer after words of an earlier step adds nothing to the transcript.
        return replace(message, parts=())

    def _over(self) -> Mark | None:
        """Return why the next answer must be the last and may call no tool; None as long as it may."""
        spec = self._spec
        if self.step >= spec.limits.max_steps:
            return Mark.STEPS
        return Mark.CIRCLES if repeats(self._context.of_turn(spec.ref.turn_id), spec.tools.by_name).is_over else None


class _Silence:
    """Lets a timeout expire when one wait for the model takes `seconds`; 0: never.

    One timer checks how long the present wait has lasted, because a timer for each of thousands of pieces is slow.
    """

    def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
        self._timeout, self._seconds = timeout, seconds
        self._now = asyncio.get_running_loop().time
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "_Silence":
        if self._seconds:
            self._look()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def begin(self) -> None:
        """Begin to wait for a piece."""
        self._since = self._now()

    def end(self) -> None:
        """The piece has arrived."""
        self._since = None
        if self._timeout.when() is not None:
            self._timeout.reschedule(None)
            self._look()

    def _look(self) -> None:
        now = self._now()
        due = (now if self._since is None else self._since) + self._seconds
        if due <= now:
            self._timeout.reschedule(due)
        else:
            self._timer = asyncio.get_running_loop().call_at(due, self._look)


def _note(words: str, mark: Mark) -> Message:
    return Message("user", (Text(words),), mark=mark)


def _pieces(part: StreamPart, bridge: Bridge) -> Sequence[tuple[Literal["text", "thinking", "arguments"], str, str]]:
    """Return what is published of a part of the stream: kind, text, and the call id of arguments."""
    match part:
        case TextDelta(text=text):
            return [(*piece, "") for piece in bridge.feed(text)]
        case ThinkingDelta(text=text):
            return [("thinking", well_formed(text), "")]
        case ArgumentsDelta(call_id=call_id, text=text):
            return [("arguments", well_formed(text), well_formed(call_id))]
        case Answer():
            return [(*piece, "") for piece in bridge.end()]
        case Alive() | LeftOut():
            return ()
