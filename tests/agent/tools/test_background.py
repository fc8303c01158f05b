"""Real commands in the background: polled, fed, killed, kept apart by session, bounded, and told of when they end.

What a command waits for is a named pipe; that it has ended is seen at its descriptor.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.errors import RunLost, ToolError
from agent.message import ToolOutput
from agent.sandbox.proof import choose
from agent.tools import background as limits
from agent.tools.exec import ExecParameters
from agent.tools.output import HEAD_BYTES, TAIL_BYTES
from agent.tools.process_tool import ProcessParameters
from agent.tools.workspace import Workspace
from tests.agent.tools.calls import Notes, run_allowed, soon
from tests.agent.tools.commands import Commands, commands
from tests.agent.tools.test_exec import Sight
from tests.watch import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")

WAITS = "read -r line < pipe"


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for an early end nor, where a command is ended before it has begun, for what it does at TERM."""
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    monkeypatch.setattr("agent.tools.background.END_SECONDS", 0.01)


class Some:
    """Both tools in a workspace with `pipe`, which says nothing until something is written there."""

    def __init__(self, root: Path, **more: Any) -> None:
        self.root = root
        self.made: Commands = commands(root, **more)
        self.notes = Notes()
        self._calls = 0

    async def start(self, command: str, session: str = "session", **more: Any) -> str:
        """Begin a command in the background; returns what it is called."""
        output = await self.exec(command, session, **more)
        assert output.goes_on
        assert not output.is_error
        return output.text.split("In the background as ")[1].split(".")[0]

    async def exec(self, command: str, session: str = "session", **more: Any) -> ToolOutput:
        self._calls += 1
        context = self.notes.context(session_key=session, call_id=f"call{self._calls}")
        parameters = ExecParameters(command=command, background=True, **more)
        return await run_allowed(self.made.exec, parameters, context)

    async def process(self, action: str, name: str = "", session: str = "session", **more: Any) -> str:
        parameters = ProcessParameters.model_validate({"action": action, "id": name, **more})
        return (await self.made.process.run(parameters, self.notes.context(session_key=session))).text

    async def polled(self, name: str, until: str) -> str:
        """All that polls have said until one says this."""
        said = ""
        while until not in said:
            said += await self.process("poll", name, wait_seconds=30)
        return said


@asynccontextmanager
async def some(root: Path, **more: Any) -> AsyncIterator[Some]:
    if not (root / "pipe").exists():
        os.mkfifo(root / "pipe")
        os.mkfifo(root / "second")
    made = Some(root, **more)
    try:
        yield made
    finally:
        await made.made.background.close(10)


def let_go(root: Path, name: str = "pipe") -> None:
    (root / name).write_text("go\n")


async def test_a_command_runs_on_behind_its_call_and_its_end_is_told(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        name = await it.start(f"echo begun; {WAITS}; echo over swordfish; exit 3")
        assert len(it.notes.started) == 1
        assert "begun\n" in await it.polled(name, "begun")
        assert await it.process("poll", name) == "[running]\n[no new output]"
        assert await it.process("list") == f"{name} `echo begun; {WAITS}; echo over swordfish; exit 3`: running"
        await asyncio.to_thread(let_go, tmp_path)
        await it.made.until_told(1)
        shown = f"{name} `echo begun; {WAITS}; echo over ***; exit 3`"
        told = f"Background command {shown} is over: exit code 3. Last output: over ***\n"
        assert it.made.told == [("session", told)], "without secrets"
        assert await it.process("poll", name) == "[exit code 3]\nover ***\n"
        assert await it.process("poll", name, wait_seconds=60) == "[exit code 3]\n[no new output]"
        assert (await it.process("list")).endswith(": exit code 3")


async def test_a_poll_wakes_as_soon_as_there_is_something(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        name = await it.start(f'{WAITS}; echo "got $line"; read -r line < second')
        steps = {"pipe": "[running]\ngot go\n", "second": "[exit code 0]\n[no new output]"}
        for pipe, wanted in steps.items():
            poll = asyncio.create_task(it.process("poll", name, wait_seconds=60))
            await asyncio.sleep(0)
            assert not poll.done()
            await asyncio.to_thread(let_go, tmp_path, pipe)
            async with asyncio.timeout(PATIENCE):
                assert await poll == wanted
        await it.made.until_told(1)
        assert it.made.told == [("session", "")], "it was read to its end"


async def test_one_that_ends_early_is_told_as_if_it_had_not_been_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 30.0)
    async with some(tmp_path) as it:
        output = await it.exec("echo no such thing; exit 4")
        assert (output.text, output.goes_on, output.is_error) == ("[exit code 4]\nno such thing\n", False, False)
        await it.made.until_told(1)
        assert it.made.told == [("session", "")]
        assert await it.process("list") == "Nothing runs in the background."


async def test_what_it_is_given_reaches_it_and_has_an_end(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        name = await it.start('while read -r line; do echo "<$line>"; done; echo end')
        assert await it.process("input", name, text="one\ntwo\n") == "Written."
        assert await it.polled(name, "<two>") in ("[running]\n<one>\n<two>\n", "[running]\n<one>\n[running]\n<two>\n")
        assert await it.process("input", name, text="three\n", eof=True) == "Written."
        said = await it.polled(name, "[exit code 0]")
        assert "<three>\nend\n" in said.replace("[exit code 0]\n", "").replace("[running]\n", "")
        with pytest.raises(ToolError, match="It reads nothing any more"):
            await it.process("input", name, text="four\n")


async def test_what_cannot_be_given_is_refused_and_nothing_of_it_is(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        deaf = await it.start(f"echo deaf; {WAITS}")
        with pytest.raises(ToolError, match="has 4,097 bytes; 4,096 are allowed"):
            await it.process("input", deaf, text="x" * 4097)
        with pytest.raises(ToolError, match="It has not read what it was given before; nothing was written"):
            [await it.process("input", deaf, text="x" * 4096) for _ in range(64)]
        closed = await it.start(f"exec <&-; echo closed; {WAITS}")
        await it.polled(closed, "closed")
        with pytest.raises(ToolError, match="It reads nothing any more"):
            # Its parent, too, holds the pipe open, until shortly after the start.
            [await it.process("input", closed, text="x") for _ in range(60_000)]


async def test_a_kill_ends_everything_below(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        name = await it.start("trap '' TERM; setsid sh -c 'echo $$; read -r line < pipe' & read -r line < pipe")
        said = await it.process("poll", name, wait_seconds=30)
        away = Sight(int(said.split("\n")[1]))
        assert await it.process("kill", name) == "[ended as you asked]\n[no new output]"
        assert away.ended(0)
        with pytest.raises(ProcessLookupError):
            os.kill(it.notes.started[0][0], 0)
        assert await it.process("kill", name) == "[ended as you asked]\n[no new output]"
        await it.made.until_told(1)
        assert it.made.told == [("session", "")]


async def test_sessions_do_not_see_each_others(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        mine = await it.start(WAITS)
        theirs = await it.start(WAITS, session="other")
        assert mine != theirs
        assert (await it.process("list")).startswith(f"{mine} ")
        for action in ("poll", "input", "kill"):
            with pytest.raises(ToolError) as hidden:
                await it.process(action, theirs, text="x")
            with pytest.raises(ToolError) as missing:
                await it.process(action, "no-such", text="x")
            assert str(hidden.value).replace(theirs, "no-such") == str(missing.value)
        assert (await it.process("list", session="other")).endswith(": running")


async def test_there_are_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_SESSION", 2)
    monkeypatch.setattr(limits, "MOST", 3)
    async with some(tmp_path) as it:
        first, second = await it.start(WAITS), await it.start(WAITS)
        with pytest.raises(ToolError, match=f"2 do, of this session 2: {first}, {second}"):
            await it.exec("touch ran")
        await it.start(WAITS, session="other")
        with pytest.raises(ToolError, match="3 do\\."):
            await it.exec("touch ran", session="third")
        await it.process("kill", first)
        await it.start(WAITS)
        assert not (tmp_path / "ran").exists()


async def test_the_oldest_that_are_over_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT", 2)
    async with some(tmp_path) as it:
        names = []
        for count in range(1, 4):
            names.append(await it.start("exec true"))
            await it.made.until_told(count)
            it.made.now[0] += 600
        runs = await it.start(WAITS)
        known = [line.split()[0] for line in (await it.process("list")).splitlines()]
        assert known == [*names[1:], runs]
        it.made.now[0] += 601
        known = [line.split()[0] for line in (await it.process("list")).splitlines()]
        assert known == [names[2], runs], "the other ended more than half an hour ago"


async def test_output_nobody_asks_for_is_bounded_and_kept_in_a_file(tmp_path: Path) -> None:
    size = 200_000
    async with some(tmp_path) as it:
        name = await it.start(f"head -c {size} /dev/zero | tr '\\0' x; {WAITS}; printf last; read -r line < second")
        (one,) = it.made.background.of("session")
        await soon(lambda: one._fresh._seen == size)
        said = await it.process("poll", name)
        assert len(said) < HEAD_BYTES + TAIL_BYTES + 300
        assert f"{size - HEAD_BYTES - TAIL_BYTES:,} bytes left out; all of it is in tool-results/" in said
        await asyncio.to_thread(let_go, tmp_path)
        assert await it.process("poll", name, wait_seconds=30) == "[running]\nlast"


async def test_a_time_limit_holds_in_the_background_too(tmp_path: Path) -> None:
    async with some(tmp_path, seconds=0.01) as it:
        limited = await it.start(WAITS, timeout_seconds=0.05)
        endless = await it.start(WAITS)
        await it.made.until_told(1)
        assert "is over: stopped after its time limit of 0.05 s. Last output: none" in it.made.told[0][1]
        assert (await it.process("poll", limited)).startswith("[stopped after")
        assert (await it.process("poll", endless)).startswith("[running]"), "the limit of the others is not its own"


async def test_nothing_runs_before_it_is_stored(tmp_path: Path) -> None:
    async def refuse(pid: int, pid_started: str) -> None:
        raise RunLost

    async with some(tmp_path) as it:
        parameters = ExecParameters(command="touch ran", background=True)
        with pytest.raises(RunLost):
            await run_allowed(it.made.exec, parameters, it.notes.context(refuse))
        assert not (tmp_path / "ran").exists()
        assert it.made.told == []


async def test_a_call_that_is_stopped_ends_what_it_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 60.0)
    async with some(tmp_path) as it:
        call = asyncio.create_task(it.exec("echo $$ > pid; mkfifo up; read -r line < up"))
        await soon(lambda: it.made.background.of("session"))
        sight = Sight(it.notes.started[0][0])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert sight.ended(0)


async def test_a_stop_reaches_the_sessions_below(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        for session in ("room:thread:1", "room2:thread:1"):
            await it.start(WAITS, session=session)
        assert not it.made.background.stop("room")
        assert it.made.background.stop("room", "room:thread:")
        await it.made.until_told(1)
        assert [session for session, _ in it.made.told] == ["room:thread:1"]
        assert not it.made.background.stop("room", "room:thread:")
        assert it.made.background.stop("room2:thread:1")
        await it.made.until_told(2)


async def test_closing_ends_all_and_tells_them(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        names = {session: await it.start(f"setsid sh -c '{WAITS}' & {WAITS}", session=session) for session in "ab"}
        sights = [Sight(pid) for pid, _ in it.notes.started]
        assert it.made.background.stop("a")
        await it.made.until_told(1)
        assert not it.made.background.stop("a")
        assert (await it.process("list", session="b")).endswith(": running")
        await it.made.background.close(10)
        assert all(sight.ended(0) for sight in sights)
        assert [(session, told.split(" is over: ")[1]) for session, told in it.made.told] == [
            ("a", "ended because a person said stop. Last output: none"),
            ("b", "ended because the service was stopped. Last output: none"),
        ]
        assert len(set(names.values())) == 2


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    async with some(tmp_path) as it:
        await it.process("kill", await it.start(WAITS))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            name = await it.start(WAITS)
            await it.process("input", name, text="x", eof=True)
            await it.process("kill", name)
        assert len(os.listdir("/proc/self/fd")) == before


async def test_guests_begin_none_and_see_none_of_owners(tmp_path: Path) -> None:
    """In a session that owners write in, too."""
    async with some(tmp_path) as it:
        theirs = await it.start(f"echo a secret; {WAITS}")
        guest = replace(it.notes.context(call_id="guest"), as_guest=True)
        with pytest.raises(ToolError, match="nothing of theirs runs on"):
            await it.made.exec.run(ExecParameters(command=f"echo hello; {WAITS}", background=True), guest)
        for action in ("poll", "input", "kill"):
            parameters = ProcessParameters.model_validate({"action": action, "id": theirs, "text": "x\n"})
            with pytest.raises(ToolError, match=rf"There is no background command '{theirs}' .*Known: none"):
                await it.made.process.run(parameters, guest)
        listed = (await it.made.process.run(ProcessParameters(action="list"), guest)).text
        assert listed == "Nothing runs in the background."
        assert "a secret" in await it.polled(theirs, "a secret")


async def test_a_repository_made_while_a_command_could_write_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command puts a hook into a repository that is cloned meanwhile, and the operator has a rule for `git`."""
    if choose("bubblewrap").sandbox is None:
        pytest.skip("bubblewrap does not hold here")
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    room = tmp_path / "room"
    room.mkdir()
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", "mine"], cwd=room, check=True)
    made = commands(room, security="full", sandbox="bubblewrap", allowlist=("git",))
    given = {"needs": "host", "cwd": "mine"}

    async def asks(**more: Any) -> tuple[str, ...]:
        parameters = ExecParameters.model_validate({"command": "git status", **given, **more})
        ask = await made.exec.asks(parameters, Notes().context())
        return tuple(why for why in ask.why if "was made" in why) if ask else ()

    try:
        plants = "until echo evil > new/.git/hooks/pre-commit; do sleep 0.01; done 2>/dev/null; cat"
        await made.exec.run(
            ExecParameters.model_validate({"command": plants, "needs": "work", "background": True}), Notes().context()
        )
        (one,) = made.background.of("session")
        assert await asks() == ()
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", "new"], cwd=room, check=True)
        await soon((room / "new/.git/hooks/pre-commit").exists)
        (why,) = await asks()
        assert why.startswith("`new` was made, or its configuration changed, while a command in the background could")
        assert await asks(needs="work") == (), "in the sandbox a hook does no harm"
        await asyncio.to_thread(subprocess.run, ["git", "config", "a.b", "c"], cwd=room / "mine", check=True)
        mine, _ = await asks()
        assert mine.startswith("`mine` was made"), "git puts another file in the place of the one that is mounted"
        one.process.close_input()
        await made.until_told(1)
        assert await asks() == (mine, why), "and it is remembered"
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", "later"], cwd=room, check=True)
        assert await asks() == (mine, why)
        await asyncio.to_thread(shutil.rmtree, room / "new")
        assert await asks() == (mine,)
    finally:
        await made.background.close(10)


async def test_what_is_kept_stays_so_when_hark_changes_it_meanwhile(tmp_path: Path) -> None:
    """A mount goes with the file on which it was, and another command could hold the temporary file open."""
    if choose("bubblewrap").sandbox is None:
        pytest.skip("bubblewrap does not hold here")
    async with some(tmp_path, sandbox="bubblewrap", in_sandbox="allow") as it:
        name = await it.start(f"echo begun; {WAITS}; echo evil >> AGENTS.md; echo tried", needs="work")
        await it.polled(name, "begun")
        await Workspace(tmp_path).write("AGENTS.md", b"a long one", "overwrite")
        await Workspace(tmp_path).write("AGENTS.md", b"mine", "overwrite")
        await asyncio.to_thread((tmp_path / "pipe").write_text, "go\n")
        assert "Read-only" in await it.polled(name, "tried")
        assert (tmp_path / "AGENTS.md").read_text() == "mine"
        assert not (tmp_path / ".hark-write.tmp").exists()
