"""Transcripts from files: ours, OpenClaw's, nanobot's, and what is broken or hostile in them."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from agent.context import INTERRUPTED, Context
from agent.message import Entry, Image, Mark, Message, Provenance, Text, Thinking, ToolCall, ToolResult, estimate
from bot.persistence.sessions import Imported, Line
from bot.sessions.foreign import BEGINS, NotImported, read
from bot.sessions.formats import written

KEY = "agent:main:telegram:direct:1"
NOW = 2_000_000_000_000


def given(*rows: object, session: str = KEY, keys: dict[str, str] | None = None) -> Imported:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return read(text, "old.jsonl", session, NOW, lambda line: line.replace("hunter2", "[secret]"), keys or {})


def told(found: Imported) -> list[tuple[str, str]]:
    """The kinds of lines and what they say."""
    said = []
    for kind, message in found.lines:
        words = [part.text for part in message.parts if isinstance(part, Text | ToolResult)]
        words += [f"{part.name} {part.arguments}" for part in message.parts if isinstance(part, ToolCall)]
        said.append((str(kind), " | ".join(words)))
    return said


def as_sent(lines: Sequence[tuple[Any, Message]]) -> Sequence[Message]:
    entries = [Entry(seq=n, kind=kind, message=one, tokens=estimate(one)) for n, (kind, one) in enumerate(lines, 1)]
    return Context(entries).messages()


def claw(name: str, parent: str | None, role: str, content: object, **more: object) -> dict[str, object]:
    return {"type": "message", "id": name, "parentId": parent, "message": {"role": role, "content": content, **more}}


OPENCLAW = (
    {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/home/u"},
    {"type": "model_change", "id": "m", "parentId": None, "provider": "p", "modelId": "x"},
    claw("a", "m", "user", [{"type": "text", "text": "what is in a.txt?"}]),
    claw(
        *("b", "a", "assistant"),
        [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "forged"},
            {"type": "text", "text": "I look."},
            {"type": "toolCall", "id": "call_1|fc_2", "name": "read", "arguments": {"path": "a.txt"}},
        ],
        model="claude",
    ),
    claw("c", "b", "toolResult", [{"type": "text", "text": "ten apples"}], toolCallId="call_1|fc_2", toolName="read"),
    claw("d", "c", "assistant", [{"type": "text", "text": "an abandoned branch"}]),
    claw("e", "c", "assistant", [{"type": "text", "text": "Ten apples."}]),
)


def test_openclaw_s_are_read_along_the_last_branch() -> None:
    found = given(*OPENCLAW)
    assert told(found) == [
        ("user", "what is in a.txt?"),
        ("assistant", 'I look. | read {"path": "a.txt"}'),
        ("tool_result", "ten apples"),
        ("assistant", "Ten apples."),
    ]
    assert found.skipped == 0
    assert found.created_at == 1_767_323_045_000
    (call,) = found.lines[1][1].tool_calls
    assert call.call_id == found.lines[2][1].tool_results[0].call_id == "imported_0"


def test_openclaw_s_key_is_in_the_file_beside_it() -> None:
    keys = {"s-1": "agent:main:discord:channel:5"}
    assert given(*OPENCLAW, session="", keys=keys).session == "agent:main:discord:channel:5"
    with pytest.raises(NotImported, match="--session"):
        given(*OPENCLAW, session="")


def test_nanobot_s_are_read() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "exec", "arguments": '{"command": "ls"}'}}]
    rows = (
        {"_type": "metadata", "key": "telegram:77", "created_at": "2026-01-02T03:04:05", "metadata": {}},
        {"role": "user", "content": "list", "timestamp": "2026-01-02T03:04:05"},
        {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "name": "exec", "content": "a b"},
        {"role": "assistant", "content": "There are a and b."},
    )
    found = given(*rows, session="")
    assert found.session == "agent:main:telegram:direct:77"
    assert told(found) == [
        ("user", "list"),
        ("assistant", 'exec {"command": "ls"}'),
        ("tool_result", "a b"),
        ("assistant", "There are a and b."),
    ]
    assert given({**rows[0], "key": "telegram:-5"}, *rows[1:], session="").session == "agent:main:telegram:group:-5"
    assert given({**rows[0], "key": "cli:direct"}, *rows[1:], session="").session == "agent:main:console:direct:local"


def test_bad_lines_are_skipped_and_counted() -> None:
    rows = (OPENCLAW[0], "{", "[1]", "null", '{"type": "message"}', "[" * 100_000, claw("x", "gone", "wizard", "a"))
    found = given(*rows, *OPENCLAW[2:4], "garbage", *OPENCLAW[4:])
    assert found.skipped == 7
    assert [words for _, words in told(found)][-1] == "Ten apples."
    with pytest.raises(NotImported, match="no message"):
        given("{", "[")


def test_a_line_that_cannot_be_read_does_not_cut_off_what_was_before() -> None:
    found = given(*OPENCLAW[:4], "{ broken: this was c", claw("e", "c", "assistant", "and on"))
    assert [words for _, words in told(found)] == [
        "what is in a.txt?", 'I look. | read {"path": "a.txt"}', INTERRUPTED, "and on",
    ]  # fmt: skip


def test_what_is_imported_can_be_sent_to_every_provider() -> None:
    same = {"type": "toolCall", "id": "same", "name": "not a name!", "arguments": {}}
    rows = (
        claw("a", None, "assistant", [same, same]),
        claw("b", "a", "toolResult", "one", toolCallId="same"),
        claw("c", "b", "toolResult", "of nobody", toolCallId="other"),
        claw("d", "c", "user", "and?"),
        claw("e", "d", "assistant", []),
        claw("f", "e", "assistant", [same]),
    )
    found = given(*rows)
    assert found.lines[0] == (found.lines[0][0], found.lines[0][1])
    sent = as_sent(found.lines)
    assert (sent[0].role, sent[0].text) == ("user", BEGINS)
    ids = [call.call_id for message in sent for call in message.tool_calls]
    assert len(ids) == len(set(ids)) == 3
    assert {call.name for message in sent for call in message.tool_calls} == {"tool"}
    for before, message in pairwise(sent):
        if message.role == "tool":
            assert [one.call_id for one in message.tool_results] == [one.call_id for one in before.tool_calls]
    assert [one.text for message in sent for one in message.tool_results] == ["one", INTERRUPTED, INTERRUPTED]
    assert all(message.parts for message in sent)


def test_nothing_in_it_is_trusted() -> None:
    trusted = Provenance("person", "the owner", "telegram", "1")
    said = Message(
        "user",
        (Text("the key is hunter2"), Image("image/png", "", "people/telegram-2/private.png")),
        mark=Mark.FILES,
        origins=(trusted,),
    )
    call = ToolCall("c1", "exec", "{}")
    thought = Message("assistant", (Thinking("hm", signature="forged", redacted="x"), call), model="a/b")
    result = Message("tool", (ToolResult("c1", "exec", "done", mark=Mark.CUT, origins=(trusted,)),))
    lines = [
        Line(seq=n, kind=kind, message=one, at=5)  # type: ignore[arg-type]
        for n, (kind, one) in enumerate((("user", said), ("assistant", thought), ("tool_result", result)), 1)
    ]
    found = read(
        written("agent:main:main", "ab" * 16, 7, lines, "jsonl"),
        "x\n.jsonl",
        "",
        NOW,
        lambda t: t.replace("hunter2", "*"),
        {},
    )
    origin = (Provenance("file", "the transcript x.jsonl"),)
    assert found.lines == (
        ("user", Message("user", (Text("the key is *"), Text("(an image)")), origins=origin)),
        ("assistant", Message("assistant", (Thinking("hm"), call), model="a/b", origins=origin)),
        ("tool_result", Message("tool", (ToolResult("c1", "exec", "done", origins=origin),), origins=origin)),
    )
    assert (found.session, found.created_at) == ("agent:main:main", 7)


def test_the_same_content_is_the_same_transcript() -> None:
    assert given(*OPENCLAW).transcript == given(*OPENCLAW).transcript
    assert given(*OPENCLAW).transcript != given(*OPENCLAW, session="agent:main:main").transcript
    assert given(*OPENCLAW).transcript != given(*OPENCLAW[:-1]).transcript


def test_html_escapes_everything() -> None:
    evil = "<script>alert('x')</script>&\"</pre>"
    parts = (Text(evil), Thinking(evil), ToolCall("c", evil, evil))
    lines = [
        Line(seq=1, kind="assistant", message=Message("assistant", parts), at=0),
        Line(seq=2, kind="tool_result", message=Message("tool", (ToolResult("c", evil, evil),)), at=0),
    ]
    page = written(evil, evil, 0, lines, "html")
    assert "<script" not in page
    assert page.count("</pre>") == page.count("<pre>") == 4
    assert "&lt;script&gt;" in page


def test_markdown_keeps_code_inside_of_its_fence() -> None:
    result = Message("tool", (ToolResult("c", "read", "a\n````\n# not a heading"),))
    page = written("s", "t", 0, [Line(seq=1, kind="tool_result", message=result, at=0)], "markdown")
    assert "`````\na\n````\n# not a heading\n`````" in page
