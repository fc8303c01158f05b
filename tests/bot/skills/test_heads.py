"""Heads of SKILL.md as they are published and as they go wrong, and folders that are no skill; none stops a look."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.skills import folder as folders
from agent.skills.manifest import SkillError, parse
from bot.skills.shelf import scan

HEAD = "---\nname: x\ndescription: Does it.\n"
# What OpenClaw's skills have below `metadata`, as its formatter writes it.
SPREAD = """metadata:
  {
    "openclaw":
      {
        "emoji": "🐙",
        "os": ["linux"],
        "requires": { "bins": ["gh"], "anyBins": ["a", "b"] },
        "install":
          [
            { "id": "brew", "kind": "brew", "bins": ["gh"], },
          ],
      },
  }
"""
NEEDS = {"bins": ("gh",), "any_bins": ("a", "b"), "os": ("linux",)}
NEEDED: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": ("", {}),
    "left empty": ("requires:\nmetadata:\n", {}),
    "ours": (
        "requires: {bins: git, env: 'A, B', os: [linux]}\n",
        {"bins": ("git",), "env": ("A", "B"), "os": ("linux",)},
    ),
    "theirs": (SPREAD, NEEDS),
    "theirs as YAML": ("metadata:\n  openclaw:\n    os: linux\n    requires: {bins: [gh], anyBins: [a, b]}\n", NEEDS),
    "theirs as text": ('metadata: \'{"openclaw": {"requires": {"bins": ["gh"]}}}\'\n', {"bins": ("gh",)}),
    "of a former name": ('metadata: {"clawdbot": {"requires": {"env": ["K"]}}}\n', {"env": ("K",)}),
    "of others": ("metadata: {author: me, version: 1.0}\nlicense: [MIT]\nversion: 2\n", {}),
}


@pytest.mark.parametrize("case", NEEDED)
def test_what_a_skill_needs(case: str) -> None:
    head, needs = NEEDED[case]
    assert parse(f"{HEAD}{head}---\nText.\n").requires.model_dump(exclude_defaults=True) == needs


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("Read Write", ("Read", "Write")),
        ("Read, Bash(git add:*), Bash(python -c (x):*), Grep", ("Read", "exec", "exec", "Grep")),
        ("[Read, WebFetch, LS]", ("Read", "web_fetch", "read")),
        ("mcp__github__create_issue mcp__linear", ("github_create_issue", "linear_*")),
        ('""', ()),
        ("", None),
    ],
)
def test_tools_it_names(written: str, tools: tuple[str, ...] | None) -> None:
    assert parse(f"{HEAD}allowed-tools: {written}\n---\n").tools == tools


@pytest.mark.parametrize(
    "head",
    [
        "---\nname: x\ndescription: Reads it: all of it.\n---\n",
        "---\nname: x\ndescription: 'Reads it: all of it.'\n---\n",
        "---\nname: x\ndescription: >-\n  Reads it:\n  all of it.\n---\n",
        '\ufeff---\r\nname: x\r\ndescription: "Reads it: all of it."\r\n---\r\n',
        "---\nname: x\ndescription: |\n  Reads it:\u200b\n\n  all of it.\n---",
    ],
)
def test_a_description(head: str) -> None:
    assert parse(head).line == "Reads it: all of it."


WRONG = {
    "no head": ("Text.", "begins with no head"),
    "no end": (HEAD, "begins with no head"),
    "no name": ("---\ndescription: x\n---\n", "`name` in the head of SKILL.md: field required"),
    "a wrong name": ("---\nname: My Skill\ndescription: x\n---\n", "small letters, digits and single hyphens"),
    "no mapping": ("---\n- x\n---\n", "is no mapping"),
    "no YAML": (f"{HEAD}k: [\n---\n", "is no YAML in line 4"),
    "an unknown need": (f"{HEAD}requires: {{config: [x]}}\n---\n", "it needs `config`, of which this version knows"),
    "no needs": (f"{HEAD}metadata: {{openclaw: {{requires: [git]}}}}\n---\n", "`requires` in the head"),
    "too long": (f"{HEAD}k: {'x' * 9000}\n---\n", "more than 8 KB"),
    "too deep": (f"{HEAD}k: {'[' * 4000}\n---\n", "200 brackets"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_head_is_said(case: str) -> None:
    text, why = WRONG[case]
    with pytest.raises(SkillError, match=why.replace("[", r"\[")):
        parse(text)


def test_what_is_no_skill_keeps_no_other_from_being_found(tmp_path: Path) -> None:
    for name in ("good", "odd", "pipe", "signs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(HEAD.replace(" x", f" {name}") + "---\n")
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    (Path(os.fsdecode(bytes(tmp_path / "odd") + b"/\xff"))).touch()
    os.mkfifo(tmp_path / "pipe" / "in")
    (tmp_path / "signs" / "\x1b[2J").symlink_to("/")
    found = scan(tmp_path, {})
    assert {name: one.problem for name, one in found.items()} == {
        "good": "",
        "odd": "� has signs in its name that cannot be shown",
        "pipe": "in is a link or no regular file",
        "signs": "�[2J has signs in its name that cannot be shown",
        "�": "there is no SKILL.md in it",
    }


def test_a_folder_that_cannot_be_read_is_a_problem_of_that_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut").mkdir()
    real = os.open

    def refused(path: Any, *args: Any, **more: Any) -> int:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **more)

    monkeypatch.setattr(os, "open", refused)
    assert scan(tmp_path, {})["shut"].problem == "it cannot be read: Permission denied"


def test_a_skill_that_cannot_be_used_is_read_again_only_once_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("Text.")
    found, count = scan(tmp_path, {}), [0]
    real = folders.read

    def counted(folder: Path) -> folders.Files:
        count[0] += 1
        return real(folder)

    monkeypatch.setattr(folders, "read", counted)
    assert scan(tmp_path, found) == found
    assert count == [0]
    (tmp_path / "bad" / "SKILL.md").write_text(HEAD.replace(" x", " bad") + "---\n")
    assert scan(tmp_path, found)["bad"].problem == ""
    assert count == [1]
