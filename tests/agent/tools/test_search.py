"""Files are found by path and by what stands in them: exactly, within bounds, and not what git passes over."""

import asyncio
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.message import ToolOutput
from agent.tools import search
from agent.tools.schema import parse_arguments
from agent.tools.search import MAX_BYTES, GlobTool, GrepTool
from agent.tools.workspace import Workspace
from tests.agent.tools.calls import Notes, outcome


async def glob(root: Path, pattern: str, **more: Any) -> ToolOutput:
    tool = GlobTool(Workspace(root))
    return await outcome(tool, parse_arguments(tool, json.dumps({"pattern": pattern, **more})))


async def grep(root: Path, pattern: str, **more: Any) -> ToolOutput:
    tool = GrepTool(Workspace(root))
    return await outcome(tool, parse_arguments(tool, json.dumps({"pattern": pattern, **more})))


def tree(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(
        tmp_path,
        {
            path: f"in {path}\n"
            for path in ("a.py", "b.md", ".hidden", "src/c.py", "src/x/d.ts", "src/x/e.tsx", "src/x1/f.ts", "!g", "#h")
        },
    )


@pytest.mark.parametrize(
    ("pattern", "more", "expected"),
    [
        ("*.py", {}, "a.py src/c.py"),
        ("./a.py", {}, "a.py"),
        ("/*.py", {}, "a.py"),
        ("src/*.py", {}, "src/c.py"),
        ("**/*.{ts,tsx}", {}, "src/x/d.ts src/x/e.tsx src/x1/f.ts"),
        ("src/**", {}, "src/c.py src/x/d.ts src/x/e.tsx src/x1/f.ts"),
        ("src/x*/*", {}, "src/x/d.ts src/x/e.tsx src/x1/f.ts"),
        ("{a,src/{c,x/d}}.{py,ts}", {}, "a.py src/c.py src/x/d.ts"),
        ("[ab].*", {}, "a.py b.md"),
        ("?.md", {}, "b.md"),
        (".h*", {}, ".hidden"),
        ("!g", {}, "!g"),
        ("#h", {}, "#h"),
        ("*.ts", {"path": "src/x"}, "src/x/d.ts"),
        ("x/*.ts", {"path": "src"}, "src/x/d.ts"),
        ("x*/", {}, "src/x/ src/x1/"),
        ("src", {}, "[Nothing found.]"),
    ],
)
async def test_glob(root: Path, pattern: str, more: dict[str, Any], expected: str) -> None:
    assert (await glob(root, pattern, **more)).text == "\n".join(
        [expected] if expected.startswith("[") else expected.split()
    )


@pytest.mark.parametrize("pattern", ["../*", "a/../../b", "/", " ", "{a,b}" * 10, "{" + "a," * 200 + "}"])
async def test_patterns_that_are_none_are_told_as_such(root: Path, pattern: str) -> None:
    assert (await glob(root, pattern)).is_error
    assert (await grep(root, "x", glob=pattern)).is_error


async def test_grep_shows_lines_with_numbers_below_their_file(root: Path) -> None:
    tree(root, {"src/c.py": "one\ntwo\nthree\nfour\nfive\nsix\nseven"})
    assert (await grep(root, "^t|.*x$", path="src", glob="/c.*")).text == "src/c.py\n2:two\n3:three\n6:six"
    around = await grep(root, "t|seven", path="src/c.py", context=1)
    assert around.text == "src/c.py\n1-one\n2:two\n3:three\n4-four\n--\n6-six\n7:seven"
    assert (await grep(root, "^IN", ignore_case=True, glob="*.{md,ts}", limit=2)).text == (
        "b.md\n1:in b.md\n\nsrc/x/d.ts\n1:in src/x/d.ts\n[There are more than 2; name a narrower path or pattern.]"
    )
    assert (await grep(root, "nowhere")).text == "[Nothing found.]"


async def test_grep_matches_line_by_line(tmp_path: Path) -> None:
    tree(tmp_path, {"crlf": "a;\r\n\r\nb\r\n", "lf": "a\n\nb\n", "no end": "x\ny", "empty": ""})
    assert (await grep(tmp_path, ";$", path="crlf")).text == "crlf\n1:a;"
    assert (await grep(tmp_path, "[^x]*", path="lf")).text == "lf\n1:a\n2:\n3:b"
    assert (await grep(tmp_path, r"a\sb|a\n", path="lf")).text == "[Nothing found.]"
    assert (await grep(tmp_path, "^", path="no end")).text == "no end\n1:x\n2:y"
    assert (await grep(tmp_path, "^", path="empty")).text == "[Nothing found.]"


@given(st.text("ab\n", max_size=60), st.sampled_from(["a", "^a", "b$", "^$", "a*", "ab|ba", "^", "[^a]+"]))
def test_grep_finds_what_each_line_by_itself_has(
    tmp_path_factory: pytest.TempPathFactory, text: str, pattern: str
) -> None:
    import re

    root = tmp_path_factory.mktemp("grep")
    (root / "file").write_text(text)
    lines = text.removesuffix("\n").split("\n") if text.removesuffix("\n") else []
    expected = [f"{number}:{line}" for number, line in enumerate(lines, 1) if re.search(pattern, line)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_WINDOW", 3)
        found = asyncio.run(grep(root, pattern)).text
    assert found == "\n".join(["file", *expected] if expected else ["[Nothing found.]"])


async def test_binary_files_are_passed_over_and_long_lines_cut_around_the_match(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"needle\0")
    (tmp_path / "min.js").write_text("é" * 1_000_000 + "needle" + "é" * 1_000_000 + "\nneedle\n")
    found = (await grep(tmp_path, "needle")).text.split("\n")
    assert (found[0], found[-1]) == ("min.js", "2:needle")
    assert found[1].startswith("1:…")
    assert "éneedleé" in found[1]
    assert len(found[1]) < 400


@pytest.mark.parametrize("pattern", ["(a", "[z-a]", "(?=a)b", r"(a)\1", "a{2000}", "*", "(" * 900])
async def test_wrong_expressions_are_told_as_such(root: Path, pattern: str) -> None:
    answer = await grep(root, pattern)
    assert answer.is_error
    assert "RE2" in answer.text


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(x+x+)+y", "(.*)*c", "(?i)" + "ss" * 400])
async def test_no_expression_holds_up_the_search(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "file").write_text("a" * 200_000 + "!")
    assert (await grep(tmp_path, pattern)).text == "[Nothing found.]"


async def test_no_rule_of_a_gitignore_holds_up_the_search(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "*a" * 50 + "b\n[\n\\\n", "a" * 250: "found"})
    assert (await grep(tmp_path, "found")).text == "a" * 250 + "\n1:found"


async def test_many_rules_count_and_the_last_wins(tmp_path: Path) -> None:
    rules = [
        "a",
        *(f"**/folder{number}/[Bb]in{number}/*.user{number}" for number in range(400)),
        "!b",
        "é" + "?" * 9000,
    ]
    tree(tmp_path, {".gitignore": "b\n" + "\n".join(rules), "a": "", "b": "", "x/folder7/Bin7/x.user7": ""})
    assert (await glob(tmp_path, "**")).text.split() == [".gitignore", "b"]


async def test_answers_are_bounded(tmp_path: Path) -> None:
    tree(tmp_path, {f"{'n' * 100}{number:04}": "hit " + "x" * 250 for number in range(400)})
    for answer in (await grep(tmp_path, "hit", limit=1000), await glob(tmp_path, "*", limit=1000)):
        assert len(answer.text.encode()) <= MAX_BYTES + 100
        assert answer.text.endswith("[Cut at 30 KB; name a narrower path or pattern.]")


@pytest.mark.parametrize("ended", ["time", "cancelled"])
async def test_a_search_ends_when_its_time_is_up_or_nobody_waits(
    tmp_path: Path, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, {f"{number:03}": "hit" for number in range(300)})
    reached, go_on, opened = threading.Event(), threading.Event(), list[str]()
    fdopen = os.fdopen

    def noted(fd: int, *more: Any, **others: Any) -> Any:
        opened.append("")
        if len(opened) == 3:
            reached.set()
            assert go_on.wait(10)
        return fdopen(fd, *more, **others)

    monkeypatch.setattr(os, "fdopen", noted)
    tool = GrepTool(Workspace(tmp_path))
    task = asyncio.create_task(tool.run(parse_arguments(tool, '{"pattern": "hit"}'), Notes().context()))
    await asyncio.to_thread(reached.wait, 10)
    if ended == "time":
        now = search.time.monotonic()
        monkeypatch.setattr(search.time, "monotonic", lambda: now + 60)
        go_on.set()
        assert "[Stopped after 10 s" in (await task).text
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # waits for the search
    assert len(opened) <= 4


async def test_git_is_not_searched_and_links_are_not_followed(root: Path, tmp_path_factory: Any) -> None:
    outside = tree(tmp_path_factory.mktemp("outside"), {"secret": "in secret"})
    tree(root, {".git/config": "in config", "src/.GIT/x": "in x"})
    (root / "link").symlink_to(outside)
    (root / "file-link").symlink_to(outside / "secret")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe")
    found = (await grep(root, "in ", ignored=True)).text + (await glob(root, "**", ignored=True)).text
    for word in ("secret", "config", "GIT", "link", "loop", "pipe"):
        assert word not in found
    assert "not searched" in (await grep(root, "in", path=".git")).text
    for path in ("link", "link/secret", "file-link"):
        assert "symbolic link" in (await grep(root, "in", path=path)).text
    assert "no such file" in (await glob(root, "*", path="missing")).text


async def test_what_git_ignores_is_left_out_unless_it_is_asked_for(root: Path) -> None:
    tree(root, {".gitignore": "*.py\n/src/x/\n", "src/x/.gitignore": "!d.ts", "src/.gitignore": "!c.py"})
    tree(root, {".git/info/exclude": "*.md\n", "inner/.git/info/exclude": "mine", "inner/mine": "", "inner/z.py": ""})
    assert (await glob(root, "*.{py,md,ts}")).text.split() == ["inner/z.py", "src/c.py", "src/x1/f.ts"]
    assert (await glob(root, "a.py", ignored=True)).text == "a.py"
    assert (await glob(root, "mine")).text == "[Nothing found.]"
    # What is named is searched, as is what lies below it.
    assert (await grep(root, "in", path="a.py")).text.startswith("a.py\n1:")
    assert (await glob(root, "*", path="src/x")).text.split() == ["src/x/.gitignore", "src/x/d.ts", "src/x/e.tsx"]


async def test_names_cannot_forge_lines(tmp_path: Path) -> None:
    tree(tmp_path, {"a\n1:forged": "hit"})
    (tmp_path / os.fsdecode(b"bad\xff")).write_text("hit")
    assert (await glob(tmp_path, "*")).text == "a�1:forged\nbad�"
    assert (await grep(tmp_path, "hit")).text == "a�1:forged\n1:hit\n\nbad�\n1:hit"


_NAMES = st.sampled_from(["a", "b", "ab", "a.py", "!a", "#b", "d"])
_PARTS = st.sampled_from(["a", "b", "d", "*", "**", "a*", "?", "*.py", "[ab]", "\\!a", "ab"])
_LINES = st.tuples(
    st.sampled_from(["", "!", "", ""]), st.sampled_from(["", "/"]), st.lists(_PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " "]),
).map(lambda line: line[0] + line[1] + "/".join(line[2]) + line[3])  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(_NAMES, min_size=1, max_size=3), max_size=8),
    st.lists(_LINES, max_size=4),
    st.lists(_LINES, max_size=3),
)
@example([["d", "a"], ["d", "a.py"], ["a"]], ["*", "!*/", "!*.py"], [])
@example([["a", "b"], ["d", "a", "b"]], ["a/**", "!a/b"], ["!a"])
def test_ignores_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]], rules: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    for path in paths:
        file = root.joinpath(*path)
        if not any(above.is_file() for above in (file, *file.parents)) and not file.exists():
            tree(root, {"/".join(path): ""})
    tree(root, {".gitignore": "\n".join(rules)})
    if (root / "d").is_dir():
        tree(root, {"d/.gitignore": "\r\n".join(inner)})
    git = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null"]
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    listed = subprocess.run([*git, "ls-files", "-z", "-o", "--exclude-standard"], check=True, capture_output=True)
    found = asyncio.run(glob(root, "**")).text
    assert sorted(found.split("\n")) == (sorted(listed.stdout.decode().split("\0")[:-1]) or ["[Nothing found.]"])
