"""The language in which a test writes what a model answers.

An answer is a row of parts: `Say`, `Think`, `Call`, how it ends (`Stop`) and what goes wrong on the way
(`Fail`, `Break`, `Hang`). The Anthropic and the OpenAI stand-in play the same script in their own protocols.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.standins.inspection import made
from tests.standins.request_log import Request
from tests.watch import PATIENCE


class Gate:
    """Holds a stream back: each delta of a part with this gate waits until the test lets it pass.

    Closed at first. `let(n)` lets n deltas pass, `open()` all that follow.
    """

    def __init__(self) -> None:
        self._permits = asyncio.Semaphore(0)
        self._opened = asyncio.Event()
        self._waiting = asyncio.Event()

    def let(self, count: int = 1) -> None:
        """Let `count` more deltas pass."""
        self._waiting.clear()
        for _ in range(count):
            self._permits.release()

    def open(self) -> None:
        """Let everything pass from here on."""
        self._opened.set()
        self._permits.release()

    async def reached(self, timeout: float = PATIENCE) -> None:
        """Return when a stream stands before the gate (everything let through so far has been sent)."""
        async with asyncio.timeout(timeout):
            await self._waiting.wait()

    async def wait(self) -> None:
        """The server's side: return when one delta may pass."""
        if self._opened.is_set():
            return
        if self._permits.locked():
            self._waiting.set()
        await self._permits.acquire()
        if self._opened.is_set():
            self._permits.release()


@dataclass(frozen=True, slots=True)
class Say:
    """Visible text. `chunks`: how many deltas, or the deltas themselves; by default one per word."""

    text: str
    chunks: int | Sequence[str] | None = None
    gate: Gate | None = None

    def pieces(self) -> Sequence[str]:
        return split(self.text, self.chunks)


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning. Anthropic signs it, `redacted` encrypts it; OpenAI hides it and counts its tokens."""

    text: str
    chunks: int | Sequence[str] | None = None
    redacted: bool = False
    gate: Gate | None = None

    def pieces(self) -> Sequence[str]:
        return [] if self.redacted else split(self.text, self.chunks)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` as a string is sent as it stands: it may be malformed or unfinished JSON."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    id: str | None = None
    chunks: int | Sequence[str] | None = 3
    gate: Gate | None = None

    @property
    def raw(self) -> str:
        """The argument text as the model wrote it."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)

    def pieces(self) -> Sequence[str]:
        return split(self.raw, self.chunks)


@dataclass(frozen=True, slots=True)
class Ping:
    """A keep-alive without content: Anthropic's `ping` event, an SSE comment for OpenAI."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the answer ends, in the provider's word or Anthropic's (`max_tokens`, `refusal`, …)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """An error of the API: as the first part an HTTP status, after content an error event in the stream.

    `kind` is Anthropic's `error.type` or OpenAI's `error.code`; without it the usual one of the status.
    `retry_after` is in seconds; no request with the same key may come before it has passed.
    `body` replaces the JSON (a proxy's HTML page).
    """

    status: int
    kind: str | None = None
    message: str | None = None
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """The connection breaks where this part stands, or once `after_chunks` deltas of the answer are sent.

    As the first part without `after_chunks` no byte of an answer is sent. `how`: `cut` closes the connection
    in the middle of the chunked body, `reset` sends a TCP reset, `end` ends the body without the last events.
    """

    after_chunks: int | None = None
    how: Literal["cut", "reset", "end"] = "cut"


class Hang:
    """Silence on an open connection until `release()` or until the client leaves."""

    def __init__(self) -> None:
        self._released = asyncio.Event()
        self._entered = asyncio.Event()

    def release(self) -> None:
        """Let the answer go on."""
        self._released.set()

    async def entered(self, timeout: float = PATIENCE) -> None:
        """Return when the server has fallen silent."""
        async with asyncio.timeout(timeout):
            await self._entered.wait()

    async def wait(self) -> None:
        """The server's side: be silent."""
        self._entered.set()
        await self._released.wait()


Part = Say | Think | Call | Ping | Stop | Fail | Break | Hang
Answer = tuple[Part, ...]
Written = str | Part | Sequence[Part]
Reply = Callable[[Request], Written]


def answer_of(written: Written) -> Answer:
    """The parts of an answer however it was written; a string is one `Say`."""
    if isinstance(written, str):
        return (Say(written),)
    if isinstance(written, Say | Think | Call | Ping | Stop | Fail | Break | Hang):
        return (written,)
    return tuple(written)


def split(text: str, chunks: int | Sequence[str] | None) -> Sequence[str]:
    """The deltas of a text: at words, in `chunks` pieces of nearly equal length, or as given.

    >>> split("one two", None), split("abcde", 2), split("", None)
    (['one ', 'two'], ['abc', 'de'], [])
    """
    if chunks is None:
        return re.findall(r"\s*\S+\s?|\s+", text)
    if isinstance(chunks, int):
        size = -(-len(text) // max(1, chunks))
        return [text[i : i + size] for i in range(0, len(text), size or 1)]
    if "".join(chunks) != text:
        raise ValueError("the chunks of a script do not add up to its text")
    return chunks


def echo(request: Request) -> Written:
    """The default answer: the last thing the user said."""
    return f"echo: {request.last_user_text}"


class Continuer:
    """A faithful model for the rule of the cut answer: says `whole`, going on from what the transcript holds.

    It looks at the assistant texts after the last user message that contains `asked`. Request by request the
    connection is cut after so many deltas as the next number of `cuts` says (at most all of them); with no
    number left it finishes, with nothing left to say it ends its turn with an empty answer, as models do.
    A transcript that holds something `whole` does not begin with is answered with `LOST` and that text.
    """

    LOST = "<the transcript does not hold the beginning of this answer> "

    def __init__(self, whole: str, asked: str, cuts: Iterable[int] = (), chunks: int | None = None) -> None:
        self.whole = whole
        self._asked = asked
        self._cuts = list(cuts)
        self._chunks = chunks

    def __call__(self, request: Request) -> Written:
        said = request.assistant_texts_after(self._asked)
        rest = remainder(self.whole, said)
        if rest is None:
            return self.LOST + repr(said)
        if not rest.strip():
            return []
        say = Say(rest, self._chunks)
        if not self._cuts:
            return say
        return [say, Break(after_chunks=min(self._cuts.pop(0), len(say.pieces())))]


def remainder(whole: str, said: Sequence[str]) -> str | None:
    """What of `whole` is missing after `said`, or None if `said` is not its beginning.

    White space at the edges of a piece may be lost in the transcript (Anthropic refuses it at the end).

    >>> remainder("one two three", ["one ", "two"]), remainder("one two", ["one", "two"])
    (' three', '')
    """
    at = 0
    for piece in said:
        if whole.startswith(piece, at):
            at += len(piece)
            continue
        core = piece.strip()
        while at < len(whole) and whole[at].isspace():
            at += 1
        if not whole.startswith(core, at):
            return None
        at += len(core)
    return whole[at:]


class Script:
    """The answers a test has written: queued, kept for certain words, or the default.

    `violations` are what the server that plays it holds against its client; `check` raises them at the end of a test.
    """

    def __init__(self) -> None:
        self.default: Reply = echo
        self.violations: list[str] = []
        self._tolerated: list[str] = []
        self._queue: deque[Written | Reply] = deque()
        self._routes: list[tuple[str, Written | Reply]] = []
        self._always: list[tuple[str, Written | Reply]] = []
        made(self)

    def tolerate(self, part: str) -> None:
        """This test provokes complaints that contain `part` on purpose."""
        self._tolerated.append(part)

    def complaints(self) -> list[str]:
        """All that was wrong: a malformed or early request, a fault that did not happen, an unused answer."""
        return self.violations + [f"unused: {one}" for one in (*self._queue, *self._routes)]

    def check(self) -> None:
        """Raise AssertionError for the complaints that the test does not tolerate."""
        wrong = [one for one in self.complaints() if not any(part in one for part in self._tolerated)]
        assert not wrong, "\n".join(wrong)

    def add(self, *answer: Part | str | Reply) -> None:
        """Queue one answer: its parts, one string, or one function of the request."""
        self._queue.append(_reply(answer))

    def on(self, words: str, *answer: Part | str | Reply) -> None:
        """Keep one answer for the first request whose last user text contains `words`."""
        self._routes.append((words, _reply(answer)))

    def whenever(self, words: str, *answer: Part | str | Reply) -> None:
        """Keep an answer for all requests whose last user text contains `words`; it need not be used."""
        self._always.append((words, _reply(answer)))

    @property
    def unused(self) -> int:
        """How many answers have not been asked for."""
        return len(self._queue) + len(self._routes)

    def answer(self, request: Request) -> Answer:
        """The next answer: the first unused one kept for words of the request, the queue, the default."""
        reply: Written | Reply
        for index, (words, routed) in enumerate(self._routes):
            if words in request.last_user_text:
                reply = routed
                del self._routes[index]
                break
        else:
            found = [routed for words, routed in self._always if words in request.last_user_text]
            reply = found[-1] if found else self._queue.popleft() if self._queue else self.default
        return answer_of(reply(request) if callable(reply) else reply)


def _reply(answer: Sequence[Part | str | Reply]) -> Written | Reply:
    if len(answer) == 1 and (isinstance(answer[0], str) or callable(answer[0])):
        return answer[0]
    return [_part(part) for part in answer]


def _part(part: Part | str | Reply) -> Part:
    if callable(part):
        raise TypeError("a function answers alone")
    return Say(part) if isinstance(part, str) else part
