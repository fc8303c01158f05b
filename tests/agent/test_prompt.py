"""The system prompt is short, the same bytes every time, and says what holds for this conversation."""

import subprocess
import sys
from pathlib import Path

from agent.message import ToolSpec
from agent.prompt.build import build
from agent.tools.registry import tools_for
from agent.tools.schema import spec
from agent.tools.workspace import Workspace
from agent.workspace_files import WorkspaceFile, create, load
from tests.agent.tools.commands import commands


def all_specs(root: Path) -> tuple[ToolSpec, ...]:
    made = commands(root)
    return tuple(spec(tool) for tool in tools_for(Workspace(root), commands=(made.exec, made.process)))


def tokens(text: str) -> float:
    """As the project estimates them."""
    return len(text) / 4


def test_a_default_install_stays_within_its_budget(tmp_path: Path) -> None:
    specs = all_specs(tmp_path)
    fixed = build(name="Hark", tools=specs)
    assert tokens(fixed) <= 1000
    assert tokens("".join(f"{tool.name}{tool.description}{tool.schema_json}" for tool in specs)) <= 1800
    create(tmp_path)
    assert tokens(build(name="Hark", tools=specs, channel="", files=load(tmp_path))) <= 1500


def test_names_the_bot_its_tools_and_the_place(tmp_path: Path) -> None:
    prompt = build(
        name="Ada $1",
        tools=all_specs(tmp_path),
        channel="A direct chat on Telegram.\n",
        files=(WorkspaceFile("SOUL.md", "Costs ${name} $5."), WorkspaceFile("USER.md", "Grace")),
    )
    assert prompt.startswith("You are Ada $1, ")
    assert "\n- `exec`: Run a shell command in the workspace; returns its output and exit code.\n" in prompt
    assert "\n\n## This conversation\nA direct chat on Telegram.\n\n" in prompt
    ending = '<file name="SOUL.md">\nCosts ${name} $5.\n</file>\n\n<file name="USER.md">\nGrace\n</file>\n'
    assert prompt.endswith("next one.\n\n" + ending)


def test_says_nothing_of_what_is_not_there() -> None:
    prompt = build(name="Hark", tools=())
    assert "You have none in this conversation" in prompt
    for absent in ("This conversation\n", "Your files", "`read`", "$", "\n\n\n"):
        assert absent not in prompt


def test_is_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    create(tmp_path)
    program = (
        "import sys, pathlib; from tests.agent.test_prompt import *\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "sys.stdout.buffer.write(build(name='Hark', tools=all_specs(root), channel='x', files=load(root)).encode())"
    )
    here = build(name="Hark", tools=all_specs(tmp_path), channel="x", files=load(tmp_path)).encode()
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={"PYTHONHASHSEED": seed, "LC_ALL": "C"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        )
        assert told.stdout == here
