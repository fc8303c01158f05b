"""What a run in the background writes into memory files is marked, and nothing else is changed."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.message import ToolSpec
from agent.prompt.build import build
from agent.tools.files import MARK, WriteTool, is_memory, marked
from agent.tools.schema import parse_arguments
from agent.tools.workspace import Workspace
from tests.agent.tools.calls import Notes

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
