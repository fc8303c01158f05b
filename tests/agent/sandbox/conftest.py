"""The sandboxes of this machine: each test runs in all that hold here, and is skipped in those that do not."""

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox.base import Sandbox
from agent.sandbox.proof import Setting, choose
from agent.shell import Level
from agent.tools.exec import ExecParameters
from tests.agent.tools.calls import outcome
from tests.agent.tools.commands import commands

NAMES: tuple[Setting, ...] = ("bubblewrap", "sandlock", "seatbelt")
# Of a rule that is Hark's own and the same in all sandboxes one is enough; `make soak` tries all.
SPARSE = pytest.mark.parametrize(
    "name", ["auto", *(pytest.param(name, marks=pytest.mark.soak) for name in NAMES)], indirect=True
)

# Runs a command in the room; returns what the model reads of it. Further words are those of a call.
Run = Callable[..., Awaitable[str]]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> Setting:
    return held(request.param)


def held(name: Setting, level: Level = "look") -> Setting:
    """The name, or the test is skipped because this machine has no such sandbox, or it holds nothing of that level."""
    proved = choose(name)
    if proved.sandbox is None:
        pytest.skip(proved.why)
    if level not in proved.sandbox.levels:
        pytest.skip(f"{name} holds no command that needs {level}")
    return name


@pytest.fixture
def working(name: Setting) -> Setting:
    """A sandbox that holds commands that write in their room."""
    return held(name, "work")


@pytest.fixture
def sandbox(name: Setting) -> Sandbox:
    sandbox = choose(name).sandbox
    assert sandbox is not None
    return sandbox


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "room").mkdir()
    return tmp_path / "room"


@pytest.fixture
def repository(room: Path) -> Path:
    """The room, which is a repository of one commit with `one.txt`."""
    (room / "one.txt").write_text("one\n")
    git(room, "init", "-q", "-b", "main")
    git(room, "config", "user.name", "Ann")
    git(room, "config", "user.email", "ann@example.org")
    git(room, "add", "one.txt")
    git(room, "commit", "-q", "-m", "First")
    return room


def git(folder: Path, *words: str) -> str:
    """What git says, on the host."""
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def run(name: Setting, room: Path) -> Run:
    """In the sandbox of the test; a command may write in its room where it asks for that."""

    async def run(command: str, **call: Any) -> str:
        sandbox = choose(name).sandbox
        assert sandbox is not None
        call = {"needs": "work" if "work" in sandbox.levels else "look"} | call
        held(name, call["needs"])
        tool = commands(room, sandbox=name, in_sandbox="allow").exec
        return (await outcome(tool, ExecParameters.model_validate({"command": command, **call}))).text

    return run
