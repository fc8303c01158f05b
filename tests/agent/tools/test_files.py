"""What the model gets to read of a file or folder, and what it is told about what it wrote."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.message import Provenance, ToolOutput, ToolSpec
from agent.prompt.build import build
from agent.tools.edit import EditTool
from agent.tools.files import MARK, MAX_BYTES, MAX_LINE_BYTES, MAX_LINES, ReadTool, WriteTool, is_memory, marked
from agent.tools.schema import parse_arguments
from agent.tools.workspace import Workspace
from tests.agent.tools.calls import Notes, outcome


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty one."""
    return Workspace(tmp_path)


async def read(workspace: Workspace, arguments: str) -> ToolOutput:
    tool = ReadTool(workspace)
    return await outcome(tool, parse_arguments(tool, arguments))


async def write(workspace: Workspace, arguments: str) -> ToolOutput:
    tool = WriteTool(workspace)
    return await outcome(tool, parse_arguments(tool, arguments))


async def test_reads_a_whole_short_file_as_it_is(workspace: Workspace) -> None:
    (workspace.root / "note").write_text("\ufeffone\r\n  zwei – drei\n\nend", "utf-8")
    output = ToolOutput(text="one\n  zwei – drei\n\nend", origins=(Provenance("file", "note"),))
    assert await read(workspace, '{"path": "note"}') == output


async def test_long_files_come_in_pieces_that_join(workspace: Workspace) -> None:
    lines = [f"line {number}" for number in range(1, MAX_LINES + 11)]
    (workspace.root / "long").write_text("\n".join(lines) + "\n")
    first = (await read(workspace, '{"path": "long"}')).text.split("\n")
    assert first[-1] == f"[Lines 1 to 2,000. The file goes on: read with offset {MAX_LINES + 1}.]"
    second = (await read(workspace, f'{{"path": "long", "offset": {MAX_LINES + 1}}}')).text.split("\n")
    assert first[:-1] + second == lines
    assert (await read(workspace, '{"path": "long", "offset": 5, "limit": 2}')).text.startswith("line 5\nline 6\n[")


async def test_an_answer_is_bounded_in_bytes_and_so_is_a_line(workspace: Workspace) -> None:
    (workspace.root / "wide").write_bytes((b"x" * 1000 + b"\n") * 100)
    answer = (await read(workspace, '{"path": "wide"}')).text
    assert len(answer) < MAX_BYTES + 200
    assert answer.endswith(f"goes on: read with offset {answer.count(chr(10)) + 1}.]")
    (workspace.root / "one-line").write_bytes(b"y" * (3 * MAX_BYTES) + b"\nlast")
    first, last = (await read(workspace, '{"path": "one-line"}')).text.split("\n")
    assert first.startswith("y" * MAX_LINE_BYTES)
    left_out = 3 * MAX_BYTES - first.count("y", 0, MAX_LINE_BYTES + 1)
    assert first.endswith(f"[… {left_out:,} bytes of this line left out]")
    assert last == "last"


async def test_an_offset_past_the_end_says_where_the_end_is(workspace: Workspace) -> None:
    (workspace.root / "short").write_text("a\nb\n")
    assert await read(workspace, '{"path": "short", "offset": 9}') == ToolOutput(
        text="offset 9: the file has 2 lines only.", is_error=True
    )
    (workspace.root / "empty").touch()
    assert (await read(workspace, '{"path": "empty"}')).text == "[The file is empty.]"


async def test_binary_files_are_told_as_such_and_stray_bytes_replaced(workspace: Workspace) -> None:
    (workspace.root / "image").write_bytes(b"\x89PNG\r\n\x00" + b"z" * 10_000)
    answer = await read(workspace, '{"path": "image"}')
    assert (answer.text, answer.is_error) == ("image: a binary file of 10,007 bytes, not text.", True)
    (workspace.root / "latin").write_bytes(b"gr\xfc\xdfe")
    assert (await read(workspace, '{"path": "latin"}')).text == "gr��e"


async def test_lists_folders_within_the_same_limits(workspace: Workspace) -> None:
    (workspace.root / "sub").mkdir()
    (workspace.root / "b").write_text("123")
    (workspace.root / "link").symlink_to("/etc")
    os.mkfifo(workspace.root / "pipe")
    assert (await read(workspace, '{"path": "."}')).text.split("\n") == [
        "b (3 bytes)",
        "link (symbolic link, not followed)",
        "pipe (not a regular file)",
        "sub/",
    ]
    assert (await read(workspace, '{"path": "sub"}')).text == "[The folder is empty.]"
    assert "read with offset 3" in (await read(workspace, '{"path": ".", "limit": 2}')).text


async def test_says_what_it_wrote(workspace: Workspace) -> None:
    made = await write(workspace, '{"path": "a/b.md", "content": "grün"}')
    assert made == ToolOutput(text="Created a/b.md (5 bytes).")
    again = await write(workspace, '{"path": "a/b.md", "content": "x"}')
    assert again.is_error
    assert again.text == "a/b.md: exists already. Use mode overwrite or append to change it."
    more = await write(workspace, '{"path": "a/b.md", "content": "er", "mode": "append"}')
    assert more.text == "Appended 2 bytes to a/b.md (7 bytes in all)."
    new = await write(workspace, '{"path": "a/b.md", "content": "", "mode": "overwrite"}')
    assert new.text == "Replaced a/b.md (0 bytes)."


@pytest.mark.parametrize("path", ["../x", "/etc/hostname", "missing"])
async def test_refusals_are_results_the_model_can_read(workspace: Workspace, path: str) -> None:
    answer = await read(workspace, f'{{"path": "{path}"}}')
    assert answer.is_error
    assert path in answer.text
    assert str(workspace.root) not in answer.text


# A passage is replaced exactly where it stands, or nothing is changed and the model learns why.


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


# What a run in the background writes into memory files is marked, and nothing else is changed.

LINES = st.lists(
    st.sampled_from(
        ["- a", "- b", "  - a", "", "  ", "---", "```", "```py", "````", "~~~", "# x", "x = 1", "`a`", "é", "\r"]
    )
    | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n"), max_size=8),
    max_size=12,
)


def lines(text: str) -> str:
    """`!` for the mark and `/` for the end of a line."""
    return text.replace("!", f" {MARK}").replace("/", "\n")


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("", "", ""),
        ("", "- a", "- a!"),
        ("", "# x//- a/- b/", "# x!//- a!/- b!/"),
        # What was there stays a person's, also when it moves; what changes is new.
        ("- a/- b/", "- a/- c/- b/", "- a/- c!/- b/"),
        ("- a/- b/", "- b/- a/", "- b/- a/"),
        ("- a/", "- a, or not/", "- a, or not!/"),
        ("- a/", "  - a/- a/", "  - a/- a!/"),
        ("- a", "- a- b/", "- a- b!/"),
        # A mark is kept, and one that was taken away comes back.
        ("- a!/- b/", "- a!/- b/", "- a!/- b/"),
        ("- a!/- b/", "- a/- b/", "- a!/- b/"),
        ("- b/", "- a! /- b!/", "- a! /- b!/"),
        # Nothing stands in blank lines, rules and borders of tables.
        ("", "a//  /---/***/===/|:--|--:|/| b |", "a!//  /---/***/===/|:--|--:|/| b |!"),
        # Ends of lines are as they were: spaces, and those of Windows.
        ("- a/", "- a\r/- b  \r/", "- a\r/- b!  \r/"),
        # Code says it at its first line, so that it stays what it was, and so does that of a person which changes.
        ("", "```/- a//- b/```/- c", "```!/- a//- b/```/- c!"),
        ("", "~~~py/- a/```/~~~ x/~~~~/- c", "~~~py!/- a/```/~~~ x/~~~~/- c!"),
        ("```py/- a/```/- c", "```py/- a/- b/```/- c", "```py!/- a/- b/```/- c"),
        ("```/- a/```/", "```/- b/```/```/- a/```/", "```!/- b/```/```/- a/```/"),
        ("```!/- a/```/", "```!/- a/- b/```/", "```!/- a/- b/```/"),
        ("", "```/- a", "```!/- a"),
        ("", "```a`b/- c", "```a`b!/- c!"),
    ],
)
def test_lines_that_are_new_are_marked(old: str, new: str, written: str) -> None:
    assert marked(lines(old).encode(), lines(new).encode()).decode() == lines(written)


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    assert marked(b"\xff\n", b"\xff\n\xfe\n") == b"\xff\n\xfe " + MARK.encode() + b"\n"


@given(LINES, LINES)
def test_nothing_but_marks_is_added(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old).encode(), "\n".join(new).encode()
    once = marked(before, after)
    assert once.replace(f" {MARK}".encode(), b"") == after
    assert marked(once, once) == once
    assert marked(after, after) == after
    assert not re.search(r"\w", "".join(new)) or MARK.encode() in marked(b"", after)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("MEMORY.md", True),
        ("./memory/../memory.MD", True),
        ("memory/2026/11-22.md", True),
        ("Memory/notes.md", True),
        ("memory/state.json", False),  # a mark would break it
        ("memory", False),
        ("notes/MEMORY.md", False),
        ("USER.md", False),
        (".", False),
    ],
)
def test_what_counts_as_memory(tmp_path: Path, path: str, expected: bool) -> None:
    assert is_memory(Workspace(tmp_path).relative(path)) is expected


@pytest.mark.parametrize("background", [True, False])
async def test_all_ways_of_writing_are_marked_in_the_background_alone(tmp_path: Path, background: bool) -> None:
    memory, mark = tmp_path / "MEMORY.md", f" {MARK}" if background else ""

    async def write(content: str, mode: str) -> str:
        tool = WriteTool(Workspace(tmp_path))
        arguments = f'{{"path": "MEMORY.md", "content": "{content}", "mode": "{mode}"}}'
        return (await tool.run(parse_arguments(tool, arguments), Notes().context(background=background))).text

    assert await write("- a", "create") == f"Created MEMORY.md ({3 + len(mark)} bytes)."
    assert memory.read_text() == f"- a{mark}"
    memory.write_text("- of a person\n")
    assert await write("- b", "append") == f"Appended 3 bytes to MEMORY.md ({17 + len(mark)} bytes in all)."
    assert memory.read_text() == f"- of a person\n- b{mark}"
    assert await write("- of a person\\n- c\\n", "overwrite") == f"Replaced MEMORY.md ({18 + len(mark)} bytes)."
    assert memory.read_text() == f"- of a person\n- c{mark}\n"
    memory.unlink()
    assert await write("- d\\n", "overwrite") == f"Created MEMORY.md ({4 + len(mark)} bytes)."
    assert memory.read_text() == f"- d{mark}\n"


@pytest.mark.parametrize("tools", [(), (ToolSpec("read", "Read.", "{}"),)])
def test_the_model_is_told_what_the_mark_means(tools: tuple[ToolSpec, ...]) -> None:
    assert f"marked `{MARK}`" in build(name="Hark", tools=tools).text
