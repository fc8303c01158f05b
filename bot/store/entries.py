"""The lines of transcripts, as a model is shown them and as people read them later."""

import sqlite3
from collections.abc import Sequence

import structlog

from agent.message import Entry, Message, ToolCall, ToolResult
from bot.store import codec
from bot.store.subject import Subject, query

log = structlog.get_logger()

UNREADABLE = "(The result was damaged in the store and cannot be read.)"

_LINES = "SELECT seq, kind, body, tokens, turn_id, step FROM entry WHERE transcript_id=?1"

_Line = tuple[int, str, str, int, str | None, int]


class Entries(Subject):
    """Reads lines by their place, and none before it."""

    @query
    def context(self, db: sqlite3.Connection, transcript_id: str) -> tuple[Entry, ...]:
        since = "(SELECT context_start FROM transcript WHERE transcript_id=?1)"
        found = db.execute(f"{_LINES} AND seq >= {since} ORDER BY seq", (transcript_id,)).fetchall()
        return _entries(transcript_id, found)


def _entries(transcript_id: str, found: Sequence[_Line]) -> tuple[Entry, ...]:
    """Lines as values. Damaged ones are left out; but a result gets a stand-in, so that its call is not run again."""
    messages = [codec.MESSAGE.load(row[2], None) for row in found]
    lost = [row[0] for row, message in zip(found, messages, strict=True) if message is None]
    if lost:
        log.error("lines of a transcript cannot be read", transcript=transcript_id, lines=lost)
    results = {part.call_id for m in messages if m for part in m.parts if isinstance(part, ToolResult)}
    unanswered: list[ToolCall] = []
    entries = []
    for (seq, kind, _, tokens, turn_id, step), read in zip(found, messages, strict=True):
        message = read
        if read is not None and read.tool_calls:
            unanswered = [call for call in read.tool_calls if call.call_id not in results]
        elif read is None and kind == "tool_result" and unanswered:  # results are written in call order
            call = unanswered.pop(0)
            message = Message("tool", (ToolResult(call.call_id, call.name, UNREADABLE, is_error=True),))
        if message is not None:
            entries.append(
                Entry(seq=seq, kind=kind, message=message, tokens=tokens, turn_id=turn_id, step=step)  # type: ignore[arg-type]
            )
    return tuple(entries)
