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
from bot.config.web import Web
from bot.furniture import web_tools
from tests.agent.tools.commands import commands


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
        "import sys, pathlib; from tests.agent.test_prompt import *\n"
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
