"""At which level a command runs, for real: what it says itself, what rules say, and for what a decision counts."""

import asyncio
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolError
from agent.sandbox.base import ONLY_LOOKS, Confinement
from agent.sandbox.proof import Setting, choose
from agent.shell import Level
from agent.tools.base import Ask, Decision, Refused
from agent.tools.exec import ExecParameters, ExecTool
from agent.tools.process_tool import ProcessParameters
from tests.agent.sandbox.conftest import SPARSE, held
from tests.agent.tools.calls import Notes, soon
from tests.agent.tools.commands import Commands, commands


def made(room: Path, name: Setting, **more: Any) -> Commands:
    return commands(room, sandbox=name, **{"security": "allowlist"} | more)


def call(command: str, **more: Any) -> ExecParameters:
    return ExecParameters.model_validate({"command": command, **more})


async def unasked(tool: ExecTool, command: str, **more: Any) -> str:
    """What the model reads of a call that nobody was asked about. Raises ToolError where somebody must be."""
    return (await tool.run(call(command, **more), Notes().context())).text


def rule(level: str | None, *words: str) -> str:
    """A grant for one command, as it is stored; without a level as older stores have it."""
    stored = [shutil.which(words[0]), words[1:], "", *([level, None] if level else [])]
    return f"exec:{json.dumps(stored)}"


@SPARSE
async def test_a_line_that_redirects_works_where_it_may(working: Setting, room: Path) -> None:
    free = made(room, working, in_sandbox="allow").exec
    assert await unasked(free, "echo x > out.txt; cat out.txt") == "[exit code 0]\nx\n"
    asking = made(room, working).exec
    with pytest.raises(ToolError, match="It was not executed"):
        await unasked(asking, "echo y > out.txt")
    ask = await asking.asks(call("echo y > out.txt"), Notes().context())
    assert ask is not None
    assert ask.why[0].startswith("It may change files of the workspace: in the sandbox, without network")
    assert (room / "out.txt").read_text() == "x\n"
    assert await unasked(asking, "cat out.txt > /dev/null; cat < out.txt") == "[exit code 0]\nx\n"


@SPARSE
async def test_what_looks_runs_whatever_it_is_and_changes_nothing(name: Setting, room: Path) -> None:
    tool = made(room, name).exec
    (room / "kept").write_text("kept")
    assert (await unasked(tool, 'rm -rf kept; python3 -c \'open("kept", "w")\'; :')).startswith("[exit code 0]\n")
    assert (await unasked(tool, "if", needs="look")).startswith("[exit code 2]\n"), "also what cannot be read"
    assert (room / "kept").read_text() == "kept"


@SPARSE
async def test_a_rule_lets_a_command_run_up_to_its_level(working: Setting, room: Path) -> None:
    tool = made(room, working, grants=lambda session: (rule("work", "touch", "made"),)).exec
    assert (await unasked(tool, "touch made")).startswith("[exit code 0]")
    assert (room / "made").exists()
    for needs in ("network", "host"):
        with pytest.raises(ToolError, match="It was not executed"):
            await unasked(tool, "touch made", needs=needs)
    with pytest.raises(ToolError, match="It was not executed"):
        await unasked(tool, "touch other", needs="work")
    assert "[It ran with needs: look" in await unasked(tool, "touch other"), "which no rule is about"


@SPARSE
@pytest.mark.parametrize("level", [None, "host"])
async def test_rules_of_older_stores_mean_the_host(working: Setting, room: Path, level: str | None) -> None:
    outside = room.parent / "outside"
    outside.write_text("haddock")
    grants = (rule(level, "cat", str(outside)),)
    tool = made(room, working, grants=lambda session: grants).exec
    assert await unasked(tool, f"cat {outside}") == "[exit code 0]\nhaddock"
    assert "haddock" not in await unasked(tool, f"cat {outside}", needs="look")
    assert "haddock" not in await unasked(tool, f"cat {outside}; true; ls", needs="look")
    assert "haddock" not in await unasked(tool, f"cat {outside} | cat"), "of which the other has no rule"


@SPARSE
async def test_a_decision_counts_at_its_level_and_in_its_sandbox(working: Setting, room: Path) -> None:
    tool, bare = made(room, working).exec, commands(room, security="allowlist").exec
    asks = dict[str, Ask]()
    for needs in ("work", "network", "host"):
        ask = await tool.asks(call("touch made", needs=needs), Notes().context())
        assert ask is not None
        asks[needs] = ask
    on_host = await bare.asks(call("touch made", needs="host"), Notes().context())
    assert on_host is not None
    assert len({ask.digest for ask in (*asks.values(), on_host)}) == 4
    assert len({ask.why[0] for ask in (*asks.values(), on_host)}) == 4
    for decided, ask in asks.items():
        context = replace(Notes().context(), decision=Decision("once", ask.digest, ""))
        for needs in asks:
            if needs != decided:
                with pytest.raises(ToolError, match="what was allowed is no longer what would run"):
                    await tool.run(call("touch made", needs=needs), context)
        with pytest.raises(ToolError, match="what was allowed is no longer what would run"):
            await bare.run(call("touch made", needs=decided), context)
    assert not (room / "made").exists()
    context = replace(Notes().context(), decision=Decision("once", asks["work"].digest, ""))
    assert (await tool.run(call("touch made", needs="work"), context)).text.startswith("[exit code 0]")
    assert (room / "made").exists()


async def test_full_runs_all_but_the_host(working: Setting, room: Path) -> None:
    tool = made(room, working, security="full").exec
    assert (await unasked(tool, "touch made && ls made")).startswith("[exit code 0]\nmade")
    assert (await unasked(tool, "python3 -c 'import socket; socket.socket()'", needs="network")).startswith(
        "[exit code 0]"
    )
    assert "Permission denied" in await unasked(tool, "python3 -c 'import socket; socket.socket()'", needs="work")
    with pytest.raises(ToolError, match="It was not executed"):
        await unasked(tool, "true && ls", needs="host")


async def test_with_network_the_machine_itself_stays_out_of_reach(working: Setting, room: Path) -> None:
    (room.parent / "outside").write_text("haddock")
    tool = made(room, working, network="allow").exec
    said = await unasked(
        tool,
        f"cat {room.parent}/outside; echo x > {room.parent}/made; echo y > mine; "
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
        needs="network",
    )
    assert "haddock" not in said
    assert "Permission denied" in said
    assert "[It ran with needs: network: it could write in the workspace" in said
    assert (room / "mine").read_text() == "y\n"
    assert not (room.parent / "made").exists()


@SPARSE
async def test_a_guest_looks_and_nothing_else(name: Setting, room: Path) -> None:
    tool = made(room, name, security="full", grants=lambda session: (rule("host", "touch", "made"),)).exec
    guest = replace(Notes().context(), as_guest=True)
    for needs in ("work", "network", "host"):
        for act in (tool.asks, tool.run):
            with pytest.raises(Refused, match=f"whoever asks may only look, so needs: {needs} is not for them"):
                await act(call("touch made", needs=needs), guest)
    for command in ("touch made", "echo x > made"):
        assert await tool.asks(call(command), guest) is None
        said = (await tool.run(call(command), guest)).text
        assert said.endswith("and had no network. Whoever asks may have no more than that.]")
    assert not (room / "made").exists()
    with pytest.raises(Refused, match="there is no sandbox here to look from"):
        await commands(room).exec.run(call("ls"), guest)


@SPARSE
async def test_what_is_given_is_asked_about_where_it_may_change_something(
    working: Setting, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    monkeypatch.setattr("agent.tools.background.END_SECONDS", 0.01)
    for in_sandbox, needs, asked in (("ask", "look", False), ("allow", "work", False), ("ask", "work", True)):
        it = made(room, working, in_sandbox=in_sandbox, grants=lambda session: (rule("work", "cat"),))
        try:
            await it.exec.run(call("cat", background=True, needs=needs), Notes().context())
            (one,) = it.background.of("session")
            given = ProcessParameters(action="input", id=one.name, text="rm -rf .\n")
            ask = await it.process.asks(given, Notes().context())
            assert (ask is not None) == asked, (in_sandbox, needs)
        finally:
            await it.background.close(10)


@SPARSE
async def test_variables_that_may_lead_it_are_asked_about_where_rules_let_it_out(working: Setting, room: Path) -> None:
    (room / "bin").mkdir()
    (room / "bin/date").write_text("#!/bin/sh\necho haddock\n")
    (room / "bin/date").chmod(0o755)
    tool = made(room, working, allowlist=("date",)).exec
    given = {"PATH": f"{room}/bin:/usr/bin:/bin"}
    for needs in ("network", "host"):
        assert "haddock" not in await unasked(tool, "date", needs=needs)
        with pytest.raises(ToolError, match="It was not executed"):
            await unasked(tool, "date", needs=needs, env=given)
        assert (await unasked(tool, "date", needs=needs, env={"TZ": "UTC"})).startswith("[exit code 0]")


async def test_where_only_looks_are_held_more_is_for_the_host(room: Path) -> None:
    name = held("sandlock")
    (room / "one.txt").write_text("one\n")
    tool = made(room, name, security="full", in_sandbox="allow", network="allow").exec
    assert (await unasked(tool, "cat one.txt; touch one.txt")).startswith("[exit code 1]\none\n")
    for needs in ("work", "network"):
        ask = await tool.asks(call("touch made", needs=needs), Notes().context())
        assert ask is not None
        assert ask.why[0] == "It runs on this machine itself, outside of the sandbox, with all rights of the service."
        assert "install bubblewrap, or add a rule" in ask.alone
        with pytest.raises(ToolError, match="It was not executed"):
            await unasked(tool, "touch made", needs=needs)
    host = await tool.asks(call("touch made", needs="host"), Notes().context())
    assert host is not None
    assert host.alone == "", "that one was asked about before as well"
    ruled = made(room, name, allowlist=("touch made",)).exec
    assert (await unasked(ruled, "touch made", needs="work")) == "[exit code 0]\n[no output]"
    assert (room / "made").exists()
    anyway = made(room, name, fallback="full").exec
    ask = await anyway.asks(call("touch other", needs="work"), Notes().context())
    assert ask is not None
    assert ask.runs_unanswered


def test_what_a_sandbox_does_not_hold_is_never_started_in_it(room: Path) -> None:
    sandbox = choose(held("sandlock")).sandbox
    confinement = Confinement(sandbox=sandbox, why="", temporary=room.parent / "temporary")
    for level in ("work", "network"):
        with pytest.raises(OSError, match=f"sandlock holds no command that needs {level}"):
            confinement.launch(level, room, room, {}, ("/bin/true",))
    assert ONLY_LOOKS in confinement.shown
    assert confinement.shown.startswith("sandlock: ")
    assert ONLY_LOOKS not in Confinement(sandbox=None, why="").shown


def command_lines() -> list[bytes]:
    """Those of all processes of the machine."""
    found = list[bytes]()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found


@pytest.mark.parametrize("needs", ["look", "work"])
async def test_the_list_of_processes_shows_no_variable_and_no_path(name: Setting, room: Path, needs: Level) -> None:
    tool = made(room, held(name, needs), in_sandbox="allow").exec
    given = {"SECRET": "swordfish-4711"}
    notes, seen = Notes(), list[str]()

    async def started(pid: int, pid_started: str) -> None:
        seen.append(str(pid))

    running = asyncio.create_task(
        tool.run(call("echo on; read -r line < never", env=given, needs=needs), notes.context(started))
    )
    os.mkfifo(room / "never")
    await soon(lambda: "on" in "".join(notes.updates))
    lines = await asyncio.to_thread(command_lines)
    ours = [line for line in lines if b"read -r line < never" in line]
    (room / "never").write_text("go\n")
    await running
    assert len(ours) >= (3 if name == "bubblewrap" else 1)
    for line in ours:
        assert b"swordfish" not in line
        assert bytes(room) not in line


async def test_a_command_starts_in_the_folder_that_was_looked_at(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name leads elsewhere by the time when it starts."""
    tool = commands(room, allowlist=("pwd", "cat")).exec
    elsewhere = room.parent / "elsewhere"
    for folder in (room / "deep", elsewhere):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    launch = tool._launch

    async def swapped(*arguments: Any) -> Any:
        (room / "deep").rename(room / "moved")
        (room / "deep").symlink_to(elsewhere)
        return await launch(*arguments)

    monkeypatch.setattr(tool, "_launch", swapped)
    assert await unasked(tool, "cat name", cwd="deep", needs="host") == "[exit code 0]\ndeep"
    with pytest.raises(ToolError, match="link"):
        await unasked(tool, "cat name", cwd="deep", needs="host")
