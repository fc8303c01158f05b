"""The workspace is made once and never overwritten; the prompt gets its files within a budget."""

import os
import stat
from pathlib import Path

import pytest

from agent.file_names import KEPT, NAMES, ORDER
from agent.tools.workspace import MAX_FILE_BYTES, Workspace, WorkspaceError
from agent.workspace_files import (
    PER_FILE_CHARACTERS,
    TOTAL_CHARACTERS,
    WorkspaceFile,
    create,
    create_room,
    is_empty,
    load,
    load_script,
)


def test_makes_short_files_for_the_owner_only(tmp_path: Path) -> None:
    root = tmp_path / "new" / "workspace"
    create(root)
    assert sorted(os.listdir(root)) == sorted(NAMES)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    for name in NAMES:
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o600
        assert 0 < (root / name).stat().st_size < 1000
    assert is_empty((root / "HEARTBEAT.md").read_text())


def test_what_a_person_wrote_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("mine")
    (tmp_path / "USER.md").symlink_to("nowhere")
    (tmp_path / "TOOLS.md").touch()
    tmp_path.chmod(0o755)
    create(tmp_path)
    create(tmp_path)
    assert (tmp_path / "SOUL.md").read_text() == "mine"
    assert (tmp_path / "USER.md").is_symlink()
    assert (tmp_path / "TOOLS.md").read_text() == ""
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert (tmp_path / "AGENTS.md").exists()


def test_a_new_workspace_costs_the_prompt_only_what_says_something(tmp_path: Path) -> None:
    create(tmp_path)
    assert [file.name for file in load(tmp_path)] == ["AGENTS.md", "SOUL.md"]


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("", True),
        ("# A\n\n## B\n<!-- one\ntwo -->\n  \n", True),
        ("# A\n<!-- x --> word", False),
        ("<!-- open", False),
        ("- task", False),
    ],
)
def test_empty_is_headings_and_comments(text: str, empty: bool) -> None:
    assert is_empty(text) is empty


def test_the_order_is_fixed_and_the_heartbeat_left_out(tmp_path: Path) -> None:
    for name in reversed((*NAMES, "CLAUDE.md", "BOOTSTRAP.md", "OTHER.md")):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + name.encode() + b"\r\n")
    order = ["AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "MEMORY.md"]
    assert list(load(tmp_path)) == [WorkspaceFile(name, name) for name in order]


def test_claude_stands_in_for_agents_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")
    create(tmp_path)
    assert not (tmp_path / "AGENTS.md").exists()
    assert load(tmp_path)[0] == WorkspaceFile("CLAUDE.md", "Use tabs.")
    (tmp_path / "AGENTS.md").touch()  # as commands leave it, see `kept_of`
    assert load(tmp_path)[0].name == "CLAUDE.md"
    (tmp_path / "AGENTS.md").write_text("Use spaces.")
    assert [file.name for file in load(tmp_path)][:2] == ["AGENTS.md", "SOUL.md"]


def test_an_empty_file_stands_in_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").touch()
    create(tmp_path)
    assert load(tmp_path)[0].name == "AGENTS.md"
    assert {"AGENTS.md", "CLAUDE.md", "BOOTSTRAP.md"} < set(KEPT)


def test_instructions_are_read_from_the_workspace_down_to_above_the_room(tmp_path: Path) -> None:
    room, above = Workspace(tmp_path, ("people", "x")), Workspace(tmp_path, ("people",))
    create_room(room, above)
    (tmp_path / "AGENTS.md").write_text("for all")
    (above.root / "CLAUDE.md").write_text("for guests")
    (room.root / "AGENTS.md").write_text("what a guest had written")
    assert [(file.name, file.text) for file in load(tmp_path, room)] == [
        ("AGENTS.md", "for all"),
        ("people/CLAUDE.md", "for guests"),
    ]
    assert [file.name for file in load(tmp_path)] == ["AGENTS.md"]


def test_a_file_and_all_files_together_have_a_budget(tmp_path: Path) -> None:
    assert (PER_FILE_CHARACTERS, TOTAL_CHARACTERS) == (20_000, 150_000)
    (tmp_path / "SOUL.md").write_text("a" * 20_000)
    (tmp_path / "USER.md").write_text("b" * 20_001)
    soul, user = load(tmp_path)
    assert (len(soul.text), "left out" in user.text, user.text.count("b")) == (20_000, True, 18_000)


def test_the_script_of_the_first_meeting_is_read_by_itself_and_never_made(tmp_path: Path) -> None:
    create(tmp_path)
    assert load_script(tmp_path) is None
    (tmp_path / "BOOTSTRAP.md").write_text("# Title\n")
    assert load_script(tmp_path) is None
    (tmp_path / "BOOTSTRAP.md").write_text("Ask." + "x" * 20_000)
    found = load_script(tmp_path)
    assert found is not None
    assert (found.name, found.text.startswith("Ask."), len(found.text) < 20_000) == ("BOOTSTRAP.md", True, True)


def test_a_room_has_what_is_shared_and_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(f"the workspace's {name}")
    room, above = Workspace(tmp_path, ("people", "x")), Workspace(tmp_path, ("people",))
    for _ in range(2):
        create_room(room, above)
    assert sorted(os.listdir(room.root)) == ["MEMORY.md", "USER.md"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (above.root, room.root)] == [0o700, 0o700]
    shared = ["AGENTS.md", "SOUL.md", "IDENTITY.md"]
    assert [(file.name, file.text) for file in load(tmp_path, room)] == [(n, f"the workspace's {n}") for n in shared]
    (room.root / "MEMORY.md").write_text("its own")
    create_room(room, above)
    assert [file.text for file in load(tmp_path, room)][3:] == ["its own"]
    (room.root / "USER.md").unlink()
    (room.root / "USER.md").symlink_to(tmp_path / "USER.md")
    assert [file.text for file in load(tmp_path, room)][3] == (
        "[Not loaded. USER.md: is a symbolic link; links are not followed here.]"
    )
    monkeypatch.setattr("agent.workspace_files.PER_FILE_CHARACTERS", 5)
    cut = [file.text for file in load(tmp_path, room)]
    assert ["the whole is in" in text for text in cut] == [False, False, False, False, True]


def test_no_link_leads_to_a_room(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    for folder in (root, elsewhere / "x"):
        folder.mkdir(parents=True)
    room, above = Workspace(root, ("people", "x")), Workspace(root, ("people",))
    above.root.symlink_to(elsewhere)
    for act in (
        lambda: create_room(room, above),
        lambda: room.write_now("a", b"", "create"),
        lambda: room.extend("a", b"x"),
        lambda: room.listing("."),
        lambda: room.folder("."),
    ):
        with pytest.raises(WorkspaceError, match="the folder of this conversation"):
            act()
    assert list((elsewhere / "x").iterdir()) == []


def test_long_files_keep_head_and_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.workspace_files.PER_FILE_CHARACTERS", 1000)
    (tmp_path / "SOUL.md").write_text("a" * 700 + "b" * 800 + "c" * 200)
    (loaded,) = load(tmp_path)
    mark = "[… 800 characters left out here; the whole is in SOUL.md …]"
    assert loaded.text == "\n".join(("a" * 700, mark, "c" * 200))


def test_the_total_is_kept_by_cutting_the_later_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.workspace_files.TOTAL_CHARACTERS", 250)
    for name in ORDER:
        (tmp_path / name).write_text("x" * 100)
    loaded = load(tmp_path)
    assert [file.text.count("x") for file in loaded] == [100, 100, 45, 0, 0, 0]
    assert loaded[-1].text == "[… 100 characters left out here; the whole is in MEMORY.md …]"


def test_what_cannot_be_read_is_said_in_its_place(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "AGENTS.md").symlink_to(outside)
    os.mkfifo(root / "SOUL.md")
    (root / "USER.md").mkdir()
    with (root / "TOOLS.md").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    (root / "MEMORY.md").write_bytes(b"gr\xfc\x00")
    texts = {file.name: file.text for file in load(root)}
    assert texts.pop("MEMORY.md") == "gr��"
    assert sorted(texts) == ["AGENTS.md", "SOUL.md", "TOOLS.md", "USER.md"]
    assert all(text.startswith("[Not loaded. ") for text in texts.values())
    assert "secret" not in str(texts)
