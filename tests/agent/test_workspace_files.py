"""The workspace is made once and never overwritten; the prompt gets its files within a budget."""

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.file_names import KEPT, NAMES, ORDER
from agent.message import Message, Text, ToolSpec, Usage
from agent.models.base import ModelRequest
from agent.prompt import requests
from agent.prompt.build import Prompt, Section, build
from agent.prompt.requests import CACHED_FOR, Requests
from agent.tools.registry import tools_for
from agent.tools.schema import spec
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
from bot.config.web import Web
from bot.furniture import web_tools
from tests.agent.tools.commands import commands
from tests.scripted_model import ScriptedModel


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


# The system prompt is short, the same bytes every time, and says what holds for this conversation.


def all_specs(root: Path) -> tuple[ToolSpec, ...]:
    made = commands(root)
    return tuple(
        spec(tool) for tool in tools_for(Workspace(root), commands=(made.exec, made.process, *web_tools(Web())))
    )


def tokens(text: str) -> float:
    """As the project estimates them."""
    return len(text) / 4


def test_a_default_install_stays_within_its_budget(tmp_path: Path) -> None:
    specs = all_specs(tmp_path)
    fixed = build(name="Hark", tools=specs).text
    assert tokens(fixed) <= 800
    assert tokens("".join(f"{tool.name}{tool.description}{tool.schema_json}" for tool in specs)) <= 1800
    create(tmp_path)
    assert tokens(build(name="Hark", tools=specs, files=load(tmp_path)).text) <= 1300


def test_names_the_bot_its_tools_and_the_place_in_a_fixed_order(tmp_path: Path) -> None:
    made = build(
        name="Ada $1",
        tools=all_specs(tmp_path),
        place="on Telegram",
        rules="Write Markdown.\n",
        added="Be brief.",
        files=(WorkspaceFile("SOUL.md", "Costs ${name} $5."), WorkspaceFile("USER.md", "Grace")),
        script=WorkspaceFile("BOOTSTRAP.md", "Ask for a name."),
    )
    assert [section.name for section in made.sections] == [
        "identity",
        "about files",
        "SOUL.md",
        "USER.md",
        "tools",
        "safety",
        "messaging",
        "operator",
        "about the first meeting",
        "BOOTSTRAP.md",
    ]
    assert [section.name for section in made.sections if section.is_file] == ["SOUL.md", "USER.md", "BOOTSTRAP.md"]
    assert made.first_meeting
    prompt = made.text
    assert prompt.startswith("You are Ada $1, ")
    assert "This conversation is on Telegram.\n\n" in prompt
    assert "`exec`, `process`, " in prompt
    shown = '<file name="SOUL.md">\nCosts ${name} $5.\n</file>\n\n<file name="USER.md">\nGrace\n</file>\n'
    assert f"next one.\n\n{shown}\n## Tools\n" in prompt
    assert "\n\nWrite Markdown.\n\n## From your operator, for this conversation\nBe brief.\n\n" in prompt
    assert prompt.endswith('\n\n<file name="BOOTSTRAP.md">\nAsk for a name.\n</file>\n')


def test_says_nothing_of_what_is_not_there() -> None:
    made = build(name="Hark", tools=())
    assert "You have none in this conversation" in made.text
    for absent in ("operator,", "Your files", "First meeting", "`read`", "$", "\n\n\n"):
        assert absent not in made.text
    assert not made.first_meeting


def test_is_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    create(tmp_path)
    program = (
        "import sys, pathlib; from tests.agent.test_workspace_files import *\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "sys.stdout.buffer.write(build(name='Hark', tools=all_specs(root), rules='x', files=load(root)).text.encode())"
    )
    here = build(name="Hark", tools=all_specs(tmp_path), rules="x", files=load(tmp_path)).text.encode()
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={"PYTHONHASHSEED": seed, "LC_ALL": "C"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        )
        assert told.stdout == here


# The last request of each transcript is remembered, and what spoiled the provider's cache is found and logged once.

PROMPT = Prompt((Section("identity", "You are."), Section("SOUL.md", "Kind.", is_file=True)))
TOOLS = (ToolSpec("read", "Reads.", "{}"), ToolSpec("write", "Writes.", "{}"))
TALK = tuple(Message("user", (Text(f"number {number}"),)) for number in range(4))
FIRST = ModelRequest(system=PROMPT.text, messages=TALK[:2], tools=TOOLS, max_output=10)
NEXT = replace(FIRST, messages=TALK)
WRITTEN, MISSED = Usage(1000, 1, 0, 1000), Usage(1200, 1, 0, 1200)


class Told:
    """The requests of one transcript, and what the log says of them."""

    def __init__(self) -> None:
        self.now = 0
        self.requests = Requests(lambda: self.now)

    def send(self, request: ModelRequest, usage: Usage | None, prompt: Prompt = PROMPT, **given: Any) -> list[str]:
        """Send a request and have it answered; returns what is logged as changed."""
        kept = {"transcript_id": "t", "background": False, "model": ScriptedModel(), "start": 1, "tokens": 10} | given
        with capture_logs() as lines:
            answered = self.requests.sent(session_key="s", prompt=prompt, request=request, **kept)
            if usage is not None:
                answered(usage)
        return [line["changed"] for line in lines]


OTHER = Prompt((Section("identity", "You are."), Section("SOUL.md", "Stern.", is_file=True)))


@pytest.mark.parametrize(
    ("request_", "prompt", "changed"),
    [
        (NEXT, PROMPT, "nothing: the provider has dropped it"),
        (replace(NEXT, system=OTHER.text), OTHER, "file SOUL.md"),
        (replace(NEXT, tools=TOOLS[:1]), PROMPT, "tool write"),
        (replace(NEXT, tools=TOOLS[::-1], system=OTHER.text), OTHER, "tool read"),
        (replace(NEXT, messages=(TALK[0], *TALK[2:])), PROMPT, "message 2"),
        (replace(NEXT, messages=TALK[:1]), PROMPT, "message 2"),
        (replace(NEXT, thinking="high", messages=TALK[1:]), PROMPT, "setting thinking"),
        (replace(NEXT, allow_calls=False), PROMPT, "setting whether calls are allowed"),
    ],
)
def test_the_log_says_which_part_changed_first(request_: ModelRequest, prompt: Prompt, changed: str) -> None:
    told = Told()
    assert told.send(FIRST, WRITTEN) == []
    assert told.send(request_, MISSED, prompt) == [changed]
    assert told.send(request_, Usage(1300, 1, 1200, 100), prompt) == [], "once"


def test_nothing_is_said_of_what_is_as_expected() -> None:
    changed: dict[str, Any] = {"request": replace(NEXT, messages=TALK[1:])}
    for name, after in {
        "the provider caches nothing": {"before": Usage(1000, 1), "usage": Usage(1200, 1)},
        "it was read": {"usage": Usage(1200, 1, 1000, 200)},
        "it was read but for what rounding leaves": {"usage": Usage(1200, 1, 896)},
        "the one before was never answered": {"before": None},
        "another model": {"model": named("other/model")},
        "a beat in between": {"background": True},
        "another transcript": {"transcript_id": "u"},
        "the conversation was shortened": changed | {"start": 2},
        "it was too long ago": {"later": CACHED_FOR + 1},
    }.items():
        told, given = Told(), dict(after)
        told.send(FIRST, given.pop("before", WRITTEN))
        told.now += given.pop("later", 0)
        request = given.pop("request", replace(NEXT, messages=TALK[1:]))
        assert told.send(request, given.pop("usage", MISSED), **given) == [], name
    told = Told()
    told.send(FIRST, WRITTEN)
    told.now = CACHED_FOR
    assert told.send(replace(NEXT, tools=()), MISSED, start=2) == ["tool read"], "shortening changes messages alone"


def named(name: str) -> ScriptedModel:
    model = ScriptedModel()
    model.name = name
    return model


def test_the_last_request_is_known_before_it_is_answered_and_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    told.send(FIRST, None)
    last = told.requests.last("t")
    assert last is not None
    assert (last.request, last.usage, last.at) == (FIRST, None, 0)
    told.send(FIRST, WRITTEN, background=True)
    assert told.requests.last("t") is last
    assert told.requests.last("u") is None
    monkeypatch.setattr(requests, "MAX_TOKENS", 100)
    for number in range(30):
        told.send(FIRST, WRITTEN, transcript_id=str(number), tokens=20)
    assert [number for number in range(30) if told.requests.last(str(number))] == [25, 26, 27, 28, 29]
    told.send(FIRST, WRITTEN, transcript_id="large", tokens=1000)
    assert told.requests.last("29") is None
    assert told.requests.last("large") is not None


def test_a_prompt_that_is_not_the_one_of_the_request_is_one_part() -> None:
    told = Told()
    told.send(replace(FIRST, system="Something else."), None)
    last = told.requests.last("t")
    assert last is not None
    assert [part.name for part in last.parts][2:3] == ["whole"]
