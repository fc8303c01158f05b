"""Reads what the programs print, one line of JSON after the other.

A tool that a program uses ends the call, because none of its tools may be on. Formats: for Claude Code
https://code.claude.com/docs/en/headless, for Codex `codex-rs/exec/src/exec_events.rs` of github.com/openai/codex, for
Gemini CLI `packages/core/src/output/types.ts` of github.com/google-gemini/gemini-cli.
"""

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Part, Text, Thinking, Usage
from agent.models import failures
from agent.models.base import Answer, StopReason, StreamPart, TextDelta, ThinkingDelta
from agent.models.protocol import items, number, record, stop_reason, text

Event = dict[str, Any]

_MILLISECONDS = 10**11  # a time above this is in milliseconds


class Reader:
    """Reads the events of one answer; each program has a reader of its own, which defines `feed`."""

    def __init__(self) -> None:
        # Whether the program said that the answer is complete.
        self.ended = False
        # The id of the session; empty until the program has named it.
        self.session_id = ""
        # What the program said of a failure that it may still overcome.
        self.trouble = ""
        self.text, self.thinking = "", ""
        self.stop: StopReason = "end"
        self.usage = Usage()

    def feed(self, event: Event) -> Iterable[StreamPart]:
        """Read one event; returns the parts that it holds. Raises ModelError for a failure, or a tool that is used."""
        raise NotImplementedError

    def answer(self, name: str, *more: Part) -> Answer:
        """Return the answer. name: of the model. more: parts that are added to it."""
        said = (Thinking(self.thinking) if self.thinking else None, Text(self.text) if self.text else None)
        parts = tuple(part for part in (*said, *more) if part is not None)
        return Answer(Message("assistant", parts, name), self.stop, self.usage)

    def _say(self, words: str) -> Iterator[StreamPart]:
        if words:
            self.text += words
            yield TextDelta(words)

    def _think(self, words: str) -> Iterator[StreamPart]:
        if words:
            self.thinking += words
            yield ThinkingDelta(words)


class ClaudeReader(Reader):
    """Reads `claude --output-format stream-json --include-partial-messages`, whose first event lists its tools."""

    def __init__(self) -> None:
        super().__init__()
        self._is_proved = False
        self._resets = 0  # when a limit of its account ends, in seconds since the epoch

    def feed(self, event: Event) -> Iterable[StreamPart]:
        kind = text(event.get("type"))
        if kind == "system" and event.get("subtype") == "init":
            if found := [*items(event.get("tools")), *items(event.get("mcp_servers"))]:
                raise used("offers its model", ", ".join(map(_named, found)))
            self._is_proved = isinstance(event.get("tools"), list)
            self.session_id = text(event.get("session_id"))
        elif kind in ("stream_event", "assistant", "result") and not (self._is_proved or event.get("is_error")):
            raise used("did not say which tools it offers", "its first event has no list of them")
        if kind == "stream_event":
            return self._delta(record(event.get("event")))
        if kind == "assistant":
            self._check(items(record(event.get("message")).get("content")))
        if kind == "rate_limit_event":
            limit = record(event.get("rate_limit_info"))
            ends = number(limit.get("resetsAt")) if limit.get("status") == "rejected" else 0
            self._resets = ends // 1000 if ends > _MILLISECONDS else ends
        if kind == "result":
            return self._result(event)
        return ()

    def _delta(self, event: Event) -> Iterable[StreamPart]:
        delta = record(event.get("delta"))
        match event.get("type"), delta.get("type"):
            case "content_block_delta", "text_delta":
                return self._say(text(delta.get("text")))
            case "content_block_delta", "thinking_delta":
                return self._think(text(delta.get("thinking")))
            case "message_delta", _:
                self.stop = stop_reason(text(delta.get("stop_reason")))
        return ()

    def _check(self, content: list[Any]) -> None:
        """Look for tools in a message as a whole, which repeats what was streamed, or is the program's own words."""
        for part in map(record, content):
            if "tool_use" in text(part.get("type")):
                raise used("used a tool", text(part.get("name")))

    def _result(self, event: Event) -> Iterable[StreamPart]:
        self.session_id = text(event.get("session_id")) or self.session_id
        if event.get("is_error") or event.get("subtype") != "success":
            errors = ", ".join(map(str, items(event.get("errors"))))
            words = text(event.get("result")) or errors or text(event.get("subtype"))
            raise failed(words, self._resets - time.time() if self._resets else 0)
        counts = record(event.get("usage"))
        read, written = number(counts.get("cache_read_input_tokens")), number(counts.get("cache_creation_input_tokens"))
        fresh = number(counts.get("input_tokens"))
        self.usage = Usage(fresh + read + written, number(counts.get("output_tokens")), read, written)
        self.ended = True
        return () if self.text else self._say(text(event.get("result")))


class CodexReader(Reader):
    """Reads `codex exec --json`, which gives messages as a whole."""

    def feed(self, event: Event) -> Iterable[StreamPart]:
        kind, item = text(event.get("type")), record(event.get("item"))
        if kind == "thread.started":
            self.session_id = text(event.get("thread_id"))
        elif kind.startswith("item."):
            return self._item(text(item.get("type")), text(item.get("text")), done=kind == "item.completed")
        elif kind == "error":  # it may connect again
            self.trouble = text(event.get("message"))
        elif kind == "turn.failed":
            raise failed(text(record(event.get("error")).get("message")) or self.trouble)
        elif kind == "turn.completed":
            counts = record(event.get("usage"))
            cached = number(counts.get("cached_input_tokens"))
            self.usage = Usage(number(counts.get("input_tokens")), number(counts.get("output_tokens")), cached)
            self.ended = True
        return ()

    def _item(self, kind: str, words: str, *, done: bool) -> Iterable[StreamPart]:
        if kind not in ("agent_message", "reasoning", "error", "todo_list", "plan"):
            raise used("used a tool", kind)
        if done and kind == "agent_message":
            return self._say(f"\n\n{words}" if self.text else words)
        return self._think(words) if done and kind == "reasoning" else ()


class GeminiReader(Reader):
    """Reads `gemini --output-format stream-json`."""

    def feed(self, event: Event) -> Iterable[StreamPart]:
        match text(event.get("type")):
            case "init":
                self.session_id = text(event.get("session_id"))
            case "message" if event.get("role") == "assistant":
                return self._say(text(event.get("content")))
            case "tool_use" | "tool_result":
                raise used("used a tool", text(event.get("tool_name")))
            case "error":
                self.trouble = text(event.get("message"))
            case "result":
                if event.get("status") != "success":
                    raise failed(text(record(event.get("error")).get("message")) or self.trouble)
                counts = record(event.get("stats"))
                cached = number(counts.get("cached"))
                self.usage = Usage(number(counts.get("input_tokens")), number(counts.get("output_tokens")), cached)
                self.ended = True
        return ()


def used(how: str, what: str) -> ModelError:
    """Return the error of a program whose tools are not off. how: what shows that. what: the tools."""
    return ModelError(ErrorKind.UNSAFE, f"it {how} ({what[:200]}), though its own tools must be off; it was ended")


_LOGIN = re.compile(
    r"not logged in|run /login|log ?in again|please (log|sign) ?in|token (has |is )?(expired|revoked|invalid)"
    r"|set an auth method|\bunauthorized\b|authentication|invalid api key",
    re.IGNORECASE,
)
# How long an account is left alone that has reached a limit, if the program does not say when it ends.
_LIMIT_SECONDS = 300.0
_LIMIT = re.compile(r"hit your .{0,20}limit|(usage|session|weekly) limit|limit reached|quota|too many requests", re.I)


def failed(words: str, wait: float = 0) -> ModelError:
    """Return the error for the words in which a program says that it failed. wait: seconds until a limit ends."""
    error = failures.of_payload({"error": {"message": words}}, ())
    if _LIMIT.search(words):
        wait = wait if wait > 0 else error.retry_after or _LIMIT_SECONDS
        return ModelError(ErrorKind.RATE_LIMIT, failures.masked(words, ()), wait)
    if _LOGIN.search(words):
        return ModelError(ErrorKind.AUTH, failures.masked(words, ()))
    return error


def _named(tool: Any) -> str:
    return text(record(tool).get("name")) or str(tool)
