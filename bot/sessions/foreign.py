"""Reads transcripts from files of JSON lines: our own, OpenClaw's and nanobot's.

Nothing in such a file is believed. What it calls a line of the service is text like any other; signatures of reasoning,
images, marks and origins are dropped; every line bears that it came from the file. Calls get the ids that all providers
take, and each has exactly one result, so that the transcript can be sent to any of them.

| file | its first line | its messages |
| --- | --- | --- |
| ours | `{"type": "hark", "session"}` | `{"type": "line", "kind", "message"}` |
| OpenClaw's | `{"type": "session", "id"}` | `{"type": "message", "id", "parentId", "message"}`, which are a tree |
| nanobot's | `{"_type": "metadata", "key"}` | `{"role", "content", "tool_calls", "tool_call_id"}` |
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from agent.context import INTERRUPTED
from agent.message import EntryKind, Image, Message, Part, Provenance, Text, Thinking, ToolCall, ToolResult, cleaned
from bot.persistence.sessions import Imported
from bot.sessions.formats import HEAD, LINE, MESSAGE
from channels.session_key import SessionKey, console_key, escaped, parse

_Json = dict[str, Any]
_Line = tuple[EntryKind, Message]

BEGINS = "(The beginning of this conversation is not in the file that it was imported from.)"
_SEEN = "(an image)"
# Lines of OpenClaw that are no messages.
_BOOKKEEPING = frozenset(
    {"model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "label", "session_info"}
)
_KINDS: dict[str, EntryKind] = {"user": "user", "assistant": "assistant", "tool": "tool_result"}
_OURS = frozenset({"user", "assistant", "assistant_cut", "tool_result", "note"})
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NotImported(ValueError):
    """Nothing was imported; the text says why."""


def read(
    text: str, name: str, session: str, now: int, clean: Callable[[str], str], keys: Mapping[str, str]
) -> Imported:
    """Read a file. name: what its lines say that they came from. session: the key of the session; empty: by the file.

    clean: takes secrets out. keys: OpenClaw's session keys by the ids in its files. Raises NotImported.
    """
    head: _Json = {}
    read_lines: list[tuple[_Json, _Line | None]] = []
    skipped = 0
    for line in filter(str.strip, text.split("\n")):  # a text in JSON may hold other separators
        try:
            row = json.loads(clean(line))
            if row.get("type") in (HEAD, "session") or row.get("_type") == "metadata":
                head = head or row
            else:
                read_lines.append((row, _read(row)))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, ValidationError):
            skipped += 1
    lines = [line for line in _branch(read_lines) if line is not None]
    if not lines:
        raise NotImported(f"There is no message in {name}; {skipped} lines could not be read.")
    session = session or _session(head, keys)
    found = tuple(_from(name, cleaned(message), kind) for kind, message in _closed(lines))
    content = "\n".join((session, *(MESSAGE.dump_json(message).decode() for _, message in found)))
    transcript = sha256(content.encode()).hexdigest()[:32]
    stamp = _moment(head.get("created_at") or head.get("timestamp"), now)
    return Imported(transcript=transcript, session=session, created_at=stamp, lines=found, skipped=skipped)


def _session(head: _Json, keys: Mapping[str, str]) -> SessionKey:
    """Return the key of the session that a file names. Raises NotImported."""
    named = head.get("session") or keys.get(str(head.get("id"))) or head.get("key")
    if not isinstance(named, str):
        raise NotImported("The file does not say which session it is of; name one with --session.")
    try:
        return parse(named).base
    except ValueError:
        channel, _, chat = named.partition(":")  # as nanobot names conversations
    if channel == "cli":
        return console_key()
    if not channel or not chat:
        raise NotImported(f"{named[:100]!r} is no session key; name one with --session.")
    kind = "group" if chat.startswith("-") else "direct"  # ids of groups are negative where they are numbers
    return SessionKey(f"agent:main:{escaped(channel)}:{kind}:{escaped(chat)}")


def _read(row: _Json) -> _Line | None:
    """Return the line that a row is; None for a row that is no message. Raises any of several errors."""
    if row.get("type") == LINE:
        kind = row["kind"] if row["kind"] in _OURS else None
        return (kind, MESSAGE.validate_python(row["message"])) if kind else None
    if row.get("type") in _BOOKKEEPING:
        return None
    if row.get("type") == "custom_message":
        return "user", Message("user", tuple(_parts(row["content"])))
    message = row["message"] if row.get("type") == "message" else row
    role = message["role"]
    if role in ("toolResult", "tool"):
        call_id = str(message.get("toolCallId") or message["tool_call_id"])
        name = str(message.get("toolName") or message.get("name") or "tool")
        words = "".join(part.text for part in _parts(message["content"]) if isinstance(part, Text))
        result = ToolResult(call_id, name, words, is_error=message.get("isError") is True)
        return "tool_result", Message("tool", (result,))
    if role == "bashExecution":
        return "user", Message("user", (Text(f"$ {message['command']}\n{message.get('output', '')}"),))
    if role not in ("user", "assistant", "custom"):
        raise ValueError(role)
    parts = list(_parts(message.get("content")))
    for call in message.get("tool_calls") or ():
        parts.append(_call(call["id"], call["function"]["name"], call["function"].get("arguments")))
    if role != "assistant":
        return "user", Message("user", tuple(part for part in parts if isinstance(part, Text)))
    if thought := message.get("reasoning_content"):
        parts.insert(0, Thinking(str(thought)))
    return "assistant", Message("assistant", tuple(parts), model=str(message.get("model") or ""))


def _parts(content: object) -> Iterator[Part]:
    """Yield the parts of the content of a message of OpenClaw or nanobot. Raises any of several errors."""
    if content is None:
        return
    if isinstance(content, str):
        yield Text(content)
        return
    if not isinstance(content, list):
        raise TypeError(type(content))
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                yield Text(text)
            case {"type": "thinking", "thinking": str(text)}:
                yield Thinking(text)
            case {"type": "toolCall" | "tool_use", "id": call_id, "name": name}:
                yield _call(call_id, name, block.get("arguments", block.get("input")))
            case {"type": "image" | "image_url"}:
                yield Text(_SEEN)
            case _:
                pass


def _call(call_id: object, name: object, arguments: object) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(str(call_id), str(name), text)


def _branch(found: Sequence[tuple[_Json, _Line | None]]) -> Iterator[_Line | None]:
    """Yield the lines of the branch of a tree that was written last; all lines of what is no tree.

    Behind a row that could not be read, the branch goes on with the row before it in the file.
    """
    places = {row["id"]: at for at, (row, _) in enumerate(found) if isinstance(row.get("id"), str)}
    kept: list[int] = []
    at = len(found) - 1
    while at >= 0:
        kept.append(at)
        row = found[at][0]
        if "id" in row and row.get("parentId", "") is None:
            break
        above = places.get(str(row.get("parentId")), at - 1)
        at = above if above < at else at - 1
    return (found[at][1] for at in reversed(kept))


def _closed(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the lines so that they begin with a person, and each call has one result, directly behind its answer."""
    results = defaultdict[str, list[ToolResult]](list)
    for _, message in lines:
        for result in message.tool_results:
            results[result.call_id].append(result)
    used = set[str]()
    first = True
    for kind, message in lines:
        if message.role not in _KINDS or message.role == "tool":
            continue
        parts, answers = list[Part](), list[ToolResult]()
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "assistant":
                good = _ID.fullmatch(part.call_id) and part.call_id not in used
                call_id = part.call_id if good else f"imported_{len(used)}"
                used.add(call_id)
                name = part.name if _ID.fullmatch(part.name) else "tool"
                parts.append(ToolCall(call_id, name, part.arguments))
                given = results[part.call_id]
                result = given.pop(0) if given else ToolResult(part.call_id, name, INTERRUPTED, is_error=True)
                answers.append(ToolResult(call_id, name, result.text, is_error=result.is_error))
            elif isinstance(part, Thinking) and message.role == "assistant":
                parts.append(Thinking(part.text))
            elif isinstance(part, Text | Image):
                parts.append(part if isinstance(part, Text) else Text(_SEEN))
        if not any(part.text.strip() if isinstance(part, Text) else isinstance(part, ToolCall) for part in parts):
            continue
        if first and message.role != "user":
            yield "user", Message("user", (Text(BEGINS),))
        first = False
        fits = kind in _OURS and (kind.startswith("assistant") if message.role == "assistant" else kind == "note")
        yield kind if fits else _KINDS[message.role], Message(message.role, tuple(parts), model=message.model[:200])
        if answers:
            yield "tool_result", Message("tool", tuple(answers))


def _from(name: str, message: Message, kind: EntryKind) -> _Line:
    """Return a line that bears where it came from."""
    origins = (Provenance("file", f"the transcript {''.join(filter(str.isprintable, name))[:80]}"),)
    parts = tuple(replace(part, origins=origins) if isinstance(part, ToolResult) else part for part in message.parts)
    return kind, replace(message, parts=parts, origins=origins)


def _moment(text: object, now: int) -> int:
    """Return a moment of ISO 8601 in milliseconds; now, if it is none or lies in the future."""
    try:
        at = int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return now
    return at if 0 <= at <= now else now
