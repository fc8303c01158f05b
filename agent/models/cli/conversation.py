"""Writes a request as the text that a program reads, and finds the session of the program that it goes on from.

Each answer carries the id of the session that it was given in, and a digest of what had been sent there until then. So
the id is stored with the answer, and a session goes on only from exactly what it has seen.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.message import Mark, Message, Text, Thinking, ToolCall, ToolResult
from agent.models.base import ModelRequest
from agent.models.protocol import without_images

_MARK = '{"cli": '
_HEAD = (
    "Each of the following lines is JSON: first your instructions, then the conversation, oldest first. Answer what "
    "was said last, with plain words and nothing else; write no JSON around them."
)
_GOES_ON = "What was said meanwhile, each line as JSON. Answer what was said last, with plain words and nothing else."
_NO_TOOLS = "No tool can be called in this conversation, whatever else is said of tools. If one is needed, say so."


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a program, after one of its answers."""

    session_id: str
    # Of everything that was sent there before the answer.
    digest: str

    def part(self) -> Thinking:
        """Return the part of the answer that carries this."""
        return Thinking("", signature=json.dumps({"cli": self.session_id, "digest": self.digest}))


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a program is sent."""

    text: str
    # The session that it goes on; None: a new one.
    session: Session | None


def whole(request: ModelRequest) -> Prompt:
    """Return the request from its beginning."""
    return Prompt("\n".join((_HEAD, *_lines(request, request.messages))), None)


def going_on(request: ModelRequest, name: str) -> Prompt | None:
    """Return what is new since the last answer of this model; None when its session has seen something else."""
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        session = _session_of(message) if message.model == name else None
        if session is None:
            continue
        new = request.messages[index + 1 :]
        if not new or session.digest != digest(request, request.messages[:index]):
            return None
        return Prompt("\n".join((_GOES_ON, *map(_line, _said(new)))), session)
    return None


def digest(request: ModelRequest, messages: Sequence[Message]) -> str:
    """Return a digest of the instructions and of these messages, but what was recalled, which is not sent again."""
    found = hashlib.sha256()
    for line in _lines(request, (one for one in messages if one.mark is not Mark.RECALLED)):
        found.update(f"{line}\n".encode(errors="replace"))
    return found.hexdigest()[:32]


def _session_of(message: Message) -> Session | None:
    for part in message.parts:
        if isinstance(part, Thinking) and part.signature.startswith(_MARK):
            held = json.loads(part.signature)
            return Session(held["cli"], held["digest"])
    return None


def _lines(request: ModelRequest, messages: Iterable[Message]) -> Iterator[str]:
    yield _line(("instructions", f"{request.system}\n\n{_NO_TOOLS}".strip()))
    yield from map(_line, _said(messages))


def _line(said: tuple[str, str]) -> str:
    return json.dumps(dict([said]), ensure_ascii=False)


def _said(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Yield who said what; reasoning is left out."""
    for message in messages:
        for part in without_images(message.parts):
            if isinstance(part, Text) and part.text.strip():
                yield ("you" if message.role == "assistant" else "person"), part.text
            elif isinstance(part, ToolCall):
                yield f"you called {part.name}", part.arguments
            elif isinstance(part, ToolResult):
                yield f"result of {part.name}", part.text
