"""Writes a transcript as a file: JSON lines that can be imported again, Markdown, or one page of HTML.

The JSON lines are `{"type": "hark", "version", "session", "transcript", "created_at"}` and then for each line of the
transcript `{"type": "line", "kind", "at", "message"}`.
"""

import html
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from pydantic import TypeAdapter

from agent.message import Image, Message, Text, Thinking, ToolCall, ToolResult
from bot.clock import moment
from bot.persistence.sessions import Line

Format = Literal["jsonl", "markdown", "html"]
ENDINGS: dict[Format, str] = {"jsonl": ".jsonl", "markdown": ".md", "html": ".html"}
MIMES: dict[Format, str] = {"jsonl": "application/jsonl", "markdown": "text/markdown", "html": "text/html"}
HEAD, LINE, VERSION = "hark", "line", 1
MESSAGE = TypeAdapter(Message)

_NAMES = {"assistant": "Assistant", "assistant_cut": "Assistant (cut)", "user": "User", "note": "Note"}
_STYLE = "body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto}pre{white-space:pre-wrap;background:#f4f4f4}"


def written(session: str, transcript: str, created_at: int, lines: Sequence[Line], form: Format) -> str:
    """Return a transcript as the text of a file."""
    if form == "jsonl":
        head = {"type": HEAD, "version": VERSION, "session": session, "transcript": transcript}
        rows = [head | {"created_at": moment(created_at)}]
        for line in lines:
            at = {"at": moment(line.at)} if line.at else {}
            message = MESSAGE.dump_python(line.message, mode="json")
            rows.append({"type": LINE, "kind": line.kind} | at | {"message": message})
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    title = f"Transcript {transcript} of {session}, begun {moment(created_at)}"
    return "".join((_markdown if form == "markdown" else _html)(title, lines))


def _markdown(title: str, lines: Sequence[Line]) -> Iterator[str]:
    yield f"# {title}\n"
    for line in lines:
        yield f"\n## {_head(line)}\n"
        for kind, text in _pieces(line.message):
            if kind == "words":
                yield f"\n{text}\n"
            else:
                fence = "`" * max(3, 1 + _longest(text))
                yield f"\n{kind}\n\n{fence}\n{text}\n{fence}\n"


def _html(title: str, lines: Sequence[Line]) -> Iterator[str]:
    safe: Callable[[str], str] = html.escape
    yield f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{safe(title)}</title>'
    yield f"<style>{_STYLE}</style></head>\n<body><h1>{safe(title)}</h1>\n"
    for line in lines:
        yield f"<h2>{safe(_head(line))}</h2>\n"
        for kind, text in _pieces(line.message):
            yield "" if kind == "words" else f"<p>{safe(kind)}</p>\n"
            yield f"<pre>{safe(text)}</pre>\n"
    yield "</body></html>\n"


def _head(line: Line) -> str:
    name = _NAMES.get(line.kind, "Tools" if line.kind == "tool_result" else "Summary")
    return f"{name}, {moment(line.at)}" if line.at else name


def _pieces(message: Message) -> Iterator[tuple[str, str]]:
    """Yield what a message holds, each with what it is: `words` of who wrote it, or something else in words."""
    for part in message.parts:
        match part:
            case Text(text=text):
                yield "words", text
            case Thinking(text=text) if text:
                yield "Thinking", text
            case ToolCall(name=name, arguments=arguments):
                yield f"Call of {name}", arguments
            case ToolResult(name=name, text=text, is_error=is_error):
                yield f"Error of {name}" if is_error else f"Result of {name}", text
            case Image(path=path):
                yield "Image", path or "(not in this file)"
            case _:
                pass


def _longest(text: str) -> int:
    """Return the length of the longest run of backticks in a text."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
