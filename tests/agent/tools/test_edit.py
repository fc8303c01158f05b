"""A passage is replaced exactly where it stands, or nothing is changed and the model learns why."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.message import ToolOutput
from agent.tools.edit import EditTool
from agent.tools.files import MARK
from agent.tools.schema import parse_arguments
from agent.tools.workspace import Workspace
from tests.agent.tools.calls import Notes, outcome


async def edit(root: Path, old: str, new: str, path: str = "file", **more: Any) -> ToolOutput:
    tool = EditTool(Workspace(root))
    arguments = {"path": path, "old_string": old, "new_string": new, **more}
    return await outcome(tool, parse_arguments(tool, json.dumps(arguments)))


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\nb\nc\n", "b", "x\ny", b"a\nx\ny\nc\n"),
        (b"a\nb", "a\nb", "", b""),
        (b"gr\xfc\xdfe a \xff\n", "a", "\u00fc", b"gr\xfc\xdfe \xc3\xbc \xff\n"),  # bytes that are no UTF-8 stay
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "a\nc\nd", b"\xef\xbb\xbfa\r\nc\r\nd\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c\r\nd", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "a", "c\nd", b"c\r\nd\r\nb\r\n"),
        (b"a\nb\r\nc\n", "a", "x\ny", b"x\ny\nb\r\nc\n"),  # mixed: as it is written
        (b"a\nb\r\nc\r\nd\n", "b\nc", "x\ny", b"a\nx\r\ny\r\nd\n"),
        (b"a b", "a  b", "x", None),
        (b"a\x00b", "a", "x", None),
        (b"aaa", "aa", "x", None),  # twice, one within the other
        (b"a-a", "a", "x", None),
        (b"a", "a", "a", None),
    ],
)
async def test_what_is_replaced(tmp_path: Path, before: bytes, old: str, new: str, after: bytes | None) -> None:
    (tmp_path / "file").write_bytes(before)
    (tmp_path / "file").chmod(0o640)
    answer = await edit(tmp_path, old, new)
    assert answer.is_error is (after is None), answer.text
    assert (tmp_path / "file").read_bytes() == (before if after is None else after)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("before", "old", "said"),
    [
        ("a\n\tif x:\n", "    if x:", r"White space differs: line 2 is '\tif x:', old_string has '    if x:'."),
        ("a \nb\n", "a\nb", "White space differs: line 1 is 'a ', old_string has 'a'."),
        ("def one():\n  pass\n", "def one(x):", "Most like it is line 1, 'def one():', for 'def one(x):'"),
        ("one\n", "quite different", "Nothing there is like it: read the file again."),
        ("x\n" * 20, "x", "is there 20 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and others. Add lines"),
        ("\0", "x", "a binary file, not text"),
    ],
)
async def test_a_mistake_is_told_with_what_is_there(tmp_path: Path, before: str, old: str, said: str) -> None:
    (tmp_path / "file").write_text(before)
    answer = await edit(tmp_path, old, "new")
    assert answer.is_error
    assert said in answer.text
    assert (tmp_path / "file").read_text() == before


async def test_the_answer_shows_the_change_with_the_lines_around_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    assert (await edit(tmp_path, "line 50\n", "a\nb\n")).text == (
        "Changed 1 place:\n48: line 48\n49: line 49\n50: a\n51: b\n52: line 51\n53: line 52\n54: line 53"
    )
    many = await edit(tmp_path, "line 9", "LINE 9", replace_all=True)
    assert many.text.startswith("Changed 11 places, of which the first is:\n7: line 7\n8: line 8\n9: LINE 9\n")
    long = await edit(tmp_path, "a\nb\n", "x" * 10_000 + "\n" + "y\n" * 1000)
    assert len(long.text) < 1000
    assert long.text.endswith("\n[…]")


async def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    for path in ("missing", "new/file"):
        assert "no such file" in (await edit(tmp_path, "a", "b", path)).text
    assert os.listdir(tmp_path) == []


async def test_simultaneous_edits_all_arrive(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("".join(f"<{number}>" for number in range(20)))
    await asyncio.gather(*(edit(tmp_path, f"<{number}>", f"[{number}]") for number in range(20)))
    assert (tmp_path / "file").read_text() == "".join(f"[{number}]" for number in range(20))


@pytest.mark.parametrize("background", [True, False])
async def test_memory_is_marked_in_the_background_alone(tmp_path: Path, background: bool) -> None:
    (tmp_path / "MEMORY.md").write_text("- of a person\n")
    tool = EditTool(Workspace(tmp_path))
    arguments = {"path": "./memory.md", "old_string": "of a person", "new_string": "of nobody"}
    (tmp_path / "memory.md").write_text("- of a person\n")
    output = await tool.run(parse_arguments(tool, json.dumps(arguments)), Notes().context(background=background))
    words = f"- of nobody {MARK}" if background else "- of nobody"
    assert (tmp_path / "memory.md").read_text() == words + "\n"
    assert output.text == f"Changed 1 place:\n1: {words}\n2: "


@given(st.binary(max_size=30), st.text("ab\n\r", min_size=1, max_size=3), st.text("ab\n", max_size=3))
def test_bytes_outside_never_change(tmp_path_factory: pytest.TempPathFactory, rest: bytes, old: str, new: str) -> None:
    rest = rest.translate(None, b"ab\r\n\x00")
    root = tmp_path_factory.mktemp("edit")
    (root / "file").write_bytes(rest + old.encode() + rest)
    if not asyncio.run(edit(root, old, new)).is_error:
        changed = (root / "file").read_bytes()
        assert changed[: len(rest)] == rest
        assert changed[len(changed) - len(rest) :] == rest
