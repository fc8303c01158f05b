"""What the model gets to read of a file or folder, and what it is told about what it wrote."""

import os
from pathlib import Path

import pytest

from agent.message import Provenance, ToolOutput
from agent.tools.files import MAX_BYTES, MAX_LINE_BYTES, MAX_LINES, ReadTool, WriteTool
from agent.tools.schema import parse_arguments
from agent.tools.workspace import Workspace
from tests.agent.tools.calls import outcome


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
