"""A model that continues faithfully: one right answer per message, and after a cut it goes on where the text ends.

It refuses, as strict providers do, requests with unpaired calls, empty answers or a changed prefix; what it finds is
kept as a violation, since the service must never send such a thing.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

from agent.context import CUT_NOTE
from agent.errors import ErrorKind, ModelError
from agent.message import Mark, Message, Part, Text, ToolCall, ToolResult, Usage
from agent.models.base import Answer, ModelRequest, StopReason, StreamPart, TextDelta
from agent.tools.conversation import STAY_SILENT
from tests.crash.platform import Life
from tests.crash.script import TASK, WORDS, Script, Step, alone, is_beat, is_job, parse, words_of
from tests.serving import PlainModel

_numbers = count(1)
_DIGITS = {code: None for code in range(128) if not chr(code).isdigit()}
_STARTED = re.compile(r"was started as (\S+)\. ")
BESIDE = "agent:main:telegram:direct:B"
"""The session to which something is relayed."""
SUMS_UP = "Write a summary"
"""These words are in a request for a summary."""
ASKED_AGAIN = "Ask again"
"""With these words begins what a turn is about that asks what had expired."""


class Outside(Protocol):
    """What outlives the service."""

    violations: list[str]
    prefixes: dict[str, tuple[Message, ...]]
    tries: dict[str, set[int]]
    broken: set[str]
    failed: Counter[str]
    failure: ErrorKind
    answered: int
    held: Counter[str]
    active: set[tuple[int, str]]
    most_active: int

    def changed(self) -> None:
        """Something happened."""

    def kept_beats(self) -> Counter[str]:
        """User messages of beats that are not hidden."""

    async def gate(self, token: str) -> None:
        """Wait until a held answer may go on."""


class FaithfulModel(PlainModel):
    """life_number: which start of the service it belongs to."""

    context_window = 1_000_000

    def __init__(self, outside: Outside, life: Life, life_number: int) -> None:
        self._outside = outside
        self._life = life
        self._number = life_number

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        if self._life.dead:
            await asyncio.Event().wait()
        outside = self._outside
        outside.violations.extend(invalid(request))
        if SUMS_UP in request.messages[-1].text:
            await self._life.effect()
            yield Answer(Message("assistant", (Text("They counted."),)), "end", Usage(10, 5))
            return
        script, step, text, prior = next_answer(request.messages, outside.has_ended)
        session = (self._number, script.token if script.token[0] == "S" else script.token[0])
        if session in outside.active:
            outside.violations.append(f"two runs at once in the session of {script.token}")
        self._same_prefix(request, script.token)
        if any(isinstance(part, ToolResult) and part.name == STAY_SILENT for part in request.messages[-1].parts):
            outside.violations.append(f"{script.token}: asked for an answer behind {STAY_SILENT}")
        outside.tries.setdefault(script.token, set()).add(self._number)
        outside.active.add(session)
        outside.most_active = max(outside.most_active, sum(life == self._number for life, _ in outside.active))
        outside.changed()
        try:
            if outside.failed[script.token] < step.fails:
                outside.failed[script.token] += 1
                raise ModelError(outside.failure, "it does not work")
            outside.answered += 1
            if not text.startswith(prior):
                outside.violations.append(f"{script.token}: the cut answer is not the beginning: {prior!r}")
            rest = text[len(prior) :]
            limited = step.limited and len(words_of(rest)) > WORDS + 2
            rest = rest[: rest.rindex(" ", 0, len(rest) // 2) + 1] if limited else rest
            half = len(rest) // 2
            at = 0
            for piece in rest.split(" "):
                delta = piece if at + len(piece) >= len(rest) else piece + " "
                at += len(delta)
                if step.breaks and at > half and script.token not in outside.broken:
                    outside.broken.add(script.token)
                    raise ModelError(ErrorKind.NETWORK, "the stream broke")
                yield TextDelta(delta)
                if step.holds and at > half:
                    outside.held[script.token] += 1
                    outside.changed()
                    await outside.gate(script.token)
                await asyncio.sleep(0.0005 if step.slow else 0)
            await self._life.effect()
            parts: list[Part] = [Text(rest)] if rest else []
            following = script.steps[script.steps.index(step) + 1].text if "first" in step.calls else ""
            parts += [_call(request, script.token, n, name, following) for n, name in enumerate(step.calls)]
            stop: StopReason = "max_output" if limited else "tool_use" if step.calls else "end"
            yield Answer(Message("assistant", tuple(parts)), stop, Usage(10, 5))
        finally:
            outside.active.discard(session)

    def _same_prefix(self, request: ModelRequest, token: str) -> None:
        """Promise 7: a request begins with the one before of the same transcript.

        A beat may be hidden when it has ended: a later request has its message exactly where it is not. A job that has
        given way is hidden meanwhile. What is recalled stands behind all of these, in its turn alone.
        """
        sent = request.messages[:-1] if request.messages[-1].mark is Mark.RECALLED else request.messages
        asked = [message for message in request.messages if _script(message) is not None]
        if alone(asked[-1].text):
            if len(asked) != 1:
                self._outside.violations.append(f"{token} has a history: {asked}")
            return
        beats = Counter(message.text for message in asked[:-1] if is_beat(message.text))
        kept = self._outside.kept_beats() - Counter([asked[-1].text])
        if beats != kept:
            self._outside.violations.append(f"{token} is told of the beats {beats}, kept are {kept}")
        key = request.messages[0].text
        before = self._outside.prefixes.get(key, ())
        if sent[: len(before)] != before:
            self._outside.violations.append(f"the prefix changed: {before} -> {sent}")
        if not (is_beat(asked[-1].text) or is_job(asked[-1].text)):
            self._outside.prefixes[key] = sent


def _call(request: ModelRequest, token: str, n: int, name: str, following: str) -> ToolCall:
    # in sessions that begin anew the messages do not tell how many calls there were before
    before = next(_numbers) if alone(request.messages[0].text) else sum(len(m.tool_calls) for m in request.messages)
    call_id = f"{token}-{before}-{n}"
    if name == "bad":
        return ToolCall(call_id, "count", '{"key": ')
    if name == STAY_SILENT:
        return ToolCall(call_id, name, "{}")
    if name in ("tell", "mail"):
        to = ', "to": "B"' if name == "mail" else ""
        return ToolCall(call_id, "message", f'{{"action": "send", "text": "sent {call_id}"{to}}}')
    if name == "spawn":
        child = f"S{call_id.translate(_DIGITS)}"
        return ToolCall(call_id, "sessions_spawn", json.dumps({"task": f"{child} {TASK}", "label": child}))
    if name in ("again", "relay"):
        token, started = call_id.translate(_DIGITS), (_STARTED.search(_text(one)) for one in request.messages)
        child = next((found[1] for found in started if found), "none")
        to, text = (BESIDE, f"B{token} 1p") if name == "relay" else (child, f"S{token} 1p+count | 1p")
        return ToolCall(call_id, "sessions_send", json.dumps({"session": to, "message": text}))
    if name == "letter":
        return ToolCall(call_id, "read", '{"path": "letter.txt"}')
    if name == "remember":
        return ToolCall(call_id, "memory_write", json.dumps({"text": f"remembered by {call_id}"}))
    if name == "query":
        return ToolCall(
            call_id, "ask_person", json.dumps({"question": f"What of {call_id}?", "options": ["yes", "no"]})
        )
    if name == "first":
        return ToolCall(call_id, "message", json.dumps({"action": "send", "text": following}))
    return ToolCall(call_id, name, f'{{"key": "{call_id}"}}')


def _text(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, ToolResult))


def next_answer(
    messages: Sequence[Message], has_ended: Callable[[str], bool] = lambda token: False
) -> tuple[Script, Step, str, str]:
    """What is to be said next: script, its step, the whole text of this answer, and what of it was said already.

    has_ended: whether the turn of a token is over, so that what steered it in vain is answered by itself.
    """
    start = max(n for n, m in enumerate(messages) if _script(m) is not None and not _steers(m))
    script = _script(messages[start])
    assert script is not None
    done, prior, said = 0, "", ""
    also: list[Script] = []
    for n in range(start + 1, len(messages)):
        message = messages[n]
        if message.role == "assistant":
            if n + 1 < len(messages) and messages[n + 1].text == CUT_NOTE:
                prior += message.text
            else:
                said += prior + message.text
                done, prior = done + 1, ""
        elif _steers(message):
            steering = _script(message)
            assert steering is not None
            also.append(steering)
    known = {token for token, _ in words_of(said)}
    step = script.steps[done] if done < len(script.steps) else Step("", (), False, False, False)
    if also and has_ended(script.token):
        script, step, prior = also[-1], Step("", (), False, False, False), ""
    if any(message.role == "user" and ASKED_AGAIN in message.text for message in messages[start:]):
        step = replace(step, text=step.text or "So it is.")
    additions = [steering.steps[0].text for steering in also if steering.token not in known]
    return script, step, "\n\n".join(text for text in (step.text, *additions) if text), prior


def _script(message: Message) -> Script | None:
    return parse(message.text) if message.role == "user" else None


def _steers(message: Message) -> bool:
    script = _script(message)
    return script is not None and script.steering


def invalid(request: ModelRequest) -> list[str]:
    """What a strict provider would refuse."""
    wrong: list[str] = []
    messages = request.messages
    if not messages or messages[0].role != "user" or messages[-1].role == "assistant":
        wrong.append("the request must begin with a user message and not end with the assistant's")
    seen: set[str] = set()
    for n, message in enumerate(messages):
        calls = [call.call_id for call in message.tool_calls]
        if message.role == "assistant" and not calls and not message.text.strip():
            wrong.append(f"empty assistant message {n}")
        if seen & set(calls):
            wrong.append(f"call ids used twice: {seen & set(calls)}")
        seen |= set(calls)
        follow = messages[n + 1] if n + 1 < len(messages) else None
        if calls and (follow is None or follow.role != "tool" or _results(follow) != calls):
            wrong.append(f"calls {calls} of message {n} are not answered at once")
        if message.role == "tool" and (n == 0 or [c.call_id for c in messages[n - 1].tool_calls] != _results(message)):
            wrong.append(f"results without calls in message {n}")
    return [f"invalid request: {text}" for text in wrong]


def _results(message: Message) -> list[str]:
    return [part.call_id for part in message.parts if isinstance(part, ToolResult)]
