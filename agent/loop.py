"""The agent loop: assemble, stream, tool calls, results, again, until the model has nothing more to call.

It holds no state of its own beyond the context: a run that is resumed after a crash, a broken stream or a drain
enters here like one that begins. Model errors leave it as ModelError; what to do about them is `agent/runner.py`'s.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from agent.bridge import Bridge, bridged
from agent.context import Context
from agent.cut import CUT_NOTE, UNSAID_NOTE
from agent.errors import ErrorKind, ModelError
from agent.events import AgentEnd, MessageEnd, MessageUpdate, Outcome
from agent.journal import Cut, Journal, Step
from agent.message import Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    ModelClient,
    ModelRequest,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from agent.models.render import without_images
from agent.spec import RunSpec
from agent.text import cleaned, visible, well_formed
from agent.tokens import estimate_text
from agent.tool_batch import run_batch
from agent.tools.loop_guard import OVER_NOTE, REFUSAL, repeats

LIMIT_NOTE = (
    "You have reached the limit of steps for this turn. Call no tool. "
    "Say in a few sentences what is done and what is still open."
)
# How often the answers of a turn that reach the limit of output go on.
LIMIT_CUTS = 2


class Loop:
    """One run of one turn. model: asked before each step, for a run may go on with another one.

    step: answers of the turn, cut ones too; answers: whole ones of this run; said: something visible was said.
    """

    def __init__(self, spec: RunSpec, context: Context, journal: Journal, model: Callable[[], ModelClient]) -> None:
        self._spec = spec
        self._model = model
        self._context = context
        self._journal = journal
        self._specs_tokens = estimate_text(spec.system) + sum(
            estimate_text(tool.description + tool.schema_json) for tool in spec.tool_specs
        )
        self._call_ids = context.call_ids()
        self._images = False  # in the last request
        self._hidden = False
        self.step = spec.step
        self.answers = 0
        self.usage = spec.usage
        self._speaking = {tool.name for tool in spec.tools.values() if tool.speaks}
        self.said = context.said(spec.ref.turn_id, self._speaking)

    async def run(self) -> AgentEnd:
        """Work until the turn is finished, or parked. Raises ModelError, RunLost, or what the store raises."""
        while True:
            calls = self._context.open_calls()
            if calls or self._context.silenced():
                ended = await run_batch(self._spec, calls, self._context, self._journal, self.step)
                if ended is not None:
                    return ended
            note = self._last_words()
            if note and not self._is_noted(note):
                self._context.append([await self._journal.note(Message("user", (Text(note),)))])
            last = bool(note)
            end = await self._answer(Outcome.LIMIT if last else Outcome.COMPLETED, allow_calls=not last)
            if end is not None:
                return end

    def go_on(self, cut: Cut) -> None:
        """Continue behind an answer that broke off."""
        self.step = cut.step
        self.said = self.said or bool(cut.entries)

    async def _answer(self, outcome: Outcome, *, allow_calls: bool) -> AgentEnd | None:
        """One model call, stored; returns the end when the turn is finished, whose outcome is outcome or less."""
        spec, step, model = self._spec, self.step + 1, self._model()
        self._context.fit(model.context_window - model.max_output - self._specs_tokens)
        request = ModelRequest(
            system=spec.system,
            messages=await self._messages(),
            tools=spec.tool_specs,
            max_output=model.max_output,
            thinking=model.thinking,
            allow_calls=allow_calls,
        )
        after = self._context.cut_text()
        self._journal.begin(step, after)
        answer = await self._stream(model, request, step, Bridge(after))
        self.usage += answer.usage
        message = replace(self._checked(answer, allow_calls, after), model=model.name)
        note = None
        if answer.stop_reason == "max_output":
            outcome = Outcome.LIMIT
            if allow_calls and self._context.limit_cuts(spec.ref.turn_id) < LIMIT_CUTS:
                note = Message("user", (Text(CUT_NOTE if message.parts else UNSAID_NOTE),))
        ended = MessageEnd(
            run=spec.ref,
            at=spec.now(),
            step=step,
            text=message.text,
            calls=tuple(call.call_id for call in message.tool_calls),
            stop_reason=answer.stop_reason,
            usage=answer.usage,
            cut=note is not None,
        )
        kept = await self._journal.step(
            Step(
                message=message,
                ended=ended,
                usage=self.usage,
                context_start=self._context.start,
                outcome=outcome,
                note=note,
                failed=None if note or message.tool_calls else self._failed(),
            )
        )
        self.step = step
        self.answers += 1
        self.said = self.said or visible(message.text)
        self._context.append(kept.entries)
        return kept.end

    def _failed(self) -> ToolResult | None:
        """What the turn has tried to change and did not, unless somebody decided so, or it was the same once more."""
        tools = {tool.name for tool in self._spec.tools.values() if tool.changes}
        denied = {call_id for call_id, one in self._spec.decisions.items() if one.state in ("denied", "expired")}
        results = (result for entry in self._context.entries for result in entry.message.tool_results)
        denied |= {result.call_id for result in results if result.text == REFUSAL}
        return self._context.unmended(self._spec.ref.turn_id, tools, denied)

    def hide_images(self) -> bool:
        """Go on without images, because a provider has refused a request; False when it had none."""
        hidden, self._images, self._hidden = self._images and not self._hidden, False, True
        return hidden

    async def _messages(self) -> tuple[Message, ...]:
        messages = await self._spec.shown(self._context.messages())
        self._images = any(isinstance(part, Image) for message in messages for part in message.parts)
        if self._hidden:
            messages = tuple(replace(one, parts=tuple(without_images(one.parts))) for one in messages)
        return messages

    async def _stream(self, model: ModelClient, request: ModelRequest, step: int, bridge: Bridge) -> Answer:
        """Read one answer; raises ModelError(TIMEOUT) when the model is silent for too long.

        The clock of silence stands still while a piece is being handled.
        """
        loop = asyncio.get_running_loop()
        told: Counter[tuple[str, str]] = Counter()
        idle = self._spec.limits.idle_timeout
        async with aclosing(model.stream(request)) as parts:
            try:
                async with asyncio.timeout(None) as silence:
                    while True:
                        silence.reschedule(loop.time() + idle if idle else None)
                        part = await anext(parts, None)
                        silence.reschedule(None)
                        if part is None:
                            raise ModelError(ErrorKind.NETWORK, "the stream ended without an answer")
                        await self._tell(part, step, bridge, told)
                        if isinstance(part, Answer):
                            return part
            except TimeoutError:
                if not silence.expired():
                    raise
                raise ModelError(ErrorKind.TIMEOUT, f"the model was silent for {idle:g} s") from None

    async def _tell(self, part: StreamPart, step: int, bridge: Bridge, told: Counter[tuple[str, str]]) -> None:
        """told: how many characters of each part of the answer were told."""
        for kind, delta, of in _pieces(part, bridge):
            ref, now, offset = self._spec.ref, self._spec.now(), told[kind, of]
            told[kind, of] += len(delta)
            await self._journal.update(
                MessageUpdate(run=ref, at=now, step=step, part=kind, delta=delta, call_id=of, offset=offset)
            )

    def _checked(self, answer: Answer, allow_calls: bool, after: str) -> Message:
        """The answer as it is stored, with the words that were streamed (see `bridge`).

        Call ids are unique, no calls where none are allowed, never silently empty. Of one that the provider ended no
        call is executed: it may not be whole.
        """
        seen = self._call_ids
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
                continue  # of an answer that was cut, only the words stay
            parts.append(part)
        message = replace(answer.message, parts=tuple(parts))
        if message.tool_calls or visible(message.text):
            return message
        if answer.stop_reason == "refusal":
            raise ModelError(ErrorKind.CONTENT_FILTER, "the model declined to answer")
        said = self.said or self._context.said(self._spec.ref.turn_id, self._speaking)
        if not (said or answer.stop_reason == "max_output" or self._spec.may_be_empty):
            raise ModelError(ErrorKind.UNKNOWN, "the model gave an empty answer")
        # an empty ending behind words of an earlier step leaves no line
        return replace(message, parts=())

    def _last_words(self) -> str:
        """What the model is told before an answer that may call nothing; empty: it may."""
        spec = self._spec
        if self.step >= spec.limits.max_steps:
            return LIMIT_NOTE
        return OVER_NOTE if repeats(self._context.entries, spec.ref.turn_id, spec.tools).is_over else ""

    def _is_noted(self, note: str) -> bool:
        return any(
            entry.kind == "note" and entry.turn_id == self._spec.ref.turn_id and entry.message.text == note
            for entry in reversed(self._context.entries)
        )


def _pieces(part: StreamPart, bridge: Bridge) -> Sequence[tuple[Literal["text", "thinking", "arguments"], str, str]]:
    """What people are told of a part of the stream: kind, words, and whose arguments they are."""
    match part:
        case TextDelta(text=text):
            return [(*piece, "") for piece in bridge.feed(text)]
        case ThinkingDelta(text=text):
            return [("thinking", well_formed(text), "")]
        case ArgumentsDelta(call_id=call_id, text=text):
            return [("arguments", well_formed(text), well_formed(call_id))]
        case Answer():
            return [(*piece, "") for piece in bridge.end()]
        case Alive():
            return ()
