"""Real processes: what a command may see, how it ends, and that nothing of it outlives the call.

Commands that must not end by themselves read a pipe that nobody writes to. A process "has ended" when its descriptor
says so: that is an event to wait for, not a time.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import RunLost
from agent.message import ToolOutput
from agent.sandbox.base import Launch
from agent.shell import SAFE_ENVIRONMENT
from agent.tools import leftovers
from agent.tools.exec import ExecParameters, scrubbed
from agent.tools.leftovers import end_leftover, start_time
from agent.tools.output import HEAD_BYTES, TAIL_BYTES
from agent.tools.process import GatedProcess
from tests.agent.tools.calls import Notes, outcome, run_allowed
from tests.agent.tools.commands import commands
from tests.watch import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans cannot be found")

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with `pipe`, which never says anything."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


class Sight:
    """Looks at a running process until it has ended."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def ended(self, seconds: float = PATIENCE) -> bool:
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def __del__(self) -> None:
        os.close(self._descriptor)


class Call:
    """One call of `exec` in a task, whose output can be waited for."""

    def __init__(self, root: Path, command: str, notes: Notes | None = None) -> None:
        self.notes = notes or Notes()
        self._news = asyncio.Event()
        tool = commands(root).exec
        context = self.notes.context(update=self._update)
        self.task = asyncio.create_task(run_allowed(tool, ExecParameters(command=command), context))

    def _update(self, text: str) -> None:
        self.notes.updates.append(text)
        self._news.set()

    async def said(self, word: str) -> None:
        """Return once the command has said this."""
        while word not in "".join(self.notes.updates):
            self._news.clear()
            async with asyncio.timeout(PATIENCE):
                await self._news.wait()

    async def pids(self, count: int) -> list[int]:
        """The pids the command printed, once there are that many, and its own first."""
        while len(pids := "".join(self.notes.updates).split()) < count:
            self._news.clear()
            async with asyncio.timeout(PATIENCE):
                await self._news.wait()
        return [self.notes.started[0][0], *(int(pid) for pid in pids)]


async def run(root: Path, command: str, environ: Mapping[str, str] = os.environ, **more: object) -> ToolOutput:
    tool = commands(root, environ=environ).exec
    return await outcome(tool, ExecParameters.model_validate({"command": command, **more}))


async def test_says_how_it_ended_and_what_it_wrote_in_order(root: Path) -> None:
    output = await run(root, "echo out; echo err >&2; echo out")
    assert replace(output, origins=()) == ToolOutput(text="[exit code 0]\nout\nerr\nout\n")
    assert await run(root, "exit 3") == ToolOutput(text="[exit code 3]\n[no output]")
    assert await run(root, "kill -9 $$") == ToolOutput(text="[ended by signal SIGKILL]\n[no output]", is_error=True)
    assert (await run(root, r"printf 'a\377b'")).text == "[exit code 0]\na�b"


async def test_starts_in_the_workspace_or_a_folder_of_it(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "link").symlink_to("/")
    assert (await run(root, "pwd -P")).text == f"[exit code 0]\n{root}\n"
    assert (await run(root, "pwd -P", cwd="sub")).text == f"[exit code 0]\n{root}/sub\n"
    for folder in ("..", "/", "link", "missing", "pipe"):
        refused = await run(root, "touch here", cwd=folder)
        assert refused.is_error
        assert "exit code" not in refused.text


async def test_sees_no_secret_no_input_and_no_terminal(root: Path) -> None:
    environ = {
        "ANTHROPIC_API_KEY": "sk-1",
        "HARK_TOKEN": "t",
        "BASH_ENV": "x",
        "LANG": "C.UTF-8",
        "PATH": os.environ["PATH"],
    }
    seen = (await run(root, "env", environ)).text
    names = {line.split("=")[0] for line in seen.splitlines()[1:]}
    assert (
        {"PATH", "LANG", "TERM"} <= names <= {"PATH", "LANG", "TERM", "PWD", "SHLVL", "_", "OLDPWD", *SAFE_ENVIRONMENT}
    )
    assert (await run(root, "cat; read -r line || echo none; tty")).text.endswith("none\nnot a tty\n")


async def test_endless_output_is_bounded_head_and_tail_kept(root: Path) -> None:
    size = 3_000_000
    text = (await run(root, f"printf first; head -c {size} /dev/zero | tr '\\0' x; printf last")).text
    assert text.startswith("[exit code 0]\nfirstxxx")
    assert text.endswith("xxxlast")
    assert f"[… {size + 9 - HEAD_BYTES - TAIL_BYTES:,} bytes left out; all of it is in tool-results/turn-call-" in text
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 200
    (kept,) = (root / "tool-results").glob("*.txt")
    assert kept.read_text() == f"first{'x' * size}last"


async def test_progress_is_told_for_the_head_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.output.UPDATE_SECONDS", 0)
    call = Call(root, f"head -c {HEAD_BYTES * 9} /dev/zero | tr '\\0' x; read -r line < gate")
    os.mkfifo(root / "gate")
    await call.said("x" * HEAD_BYTES)
    await asyncio.to_thread((root / "gate").write_text, "go\n")
    await call.task
    assert "".join(call.notes.updates) == "x" * HEAD_BYTES


async def test_what_is_still_in_the_pipe_when_the_shell_ends_is_kept(root: Path) -> None:
    assert (await run(root, "printf '%70000s' last")).text.endswith(" last")


async def test_those_behind_the_shell_may_say_their_last_words(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.exec.OUTPUT_GRACE_SECONDS", 10)
    tool = commands(root).exec
    command = "mkfifo over; (read -r line < over; echo late) & (echo x > over) & exit"
    answer = await run_allowed(tool, ExecParameters(command=command), Notes().context())
    assert answer.text == "[exit code 0]\nlate\n"


async def test_a_group_is_asked_to_end_before_it_is_killed(root: Path) -> None:
    said, ready = bytearray(), asyncio.Event()

    def hear(data: bytes) -> None:
        said.extend(data)
        ready.set()

    command = "trap 'echo bye; exit 7' TERM; echo ready; read -r line < pipe; echo never"
    launch = Launch(argv=("/bin/sh", "-c", command), environment=os.environ)
    async with GatedProcess(launch, root, hear, abort_seconds=0) as process:
        process.open_gate()
        await ready.wait()
        assert await process.end(grace_seconds=10) == 7
    # a shell may also say that its reading was interrupted
    assert said.startswith(b"ready\n")
    assert said.endswith(b"bye\n")


async def test_a_command_that_is_ended_before_it_has_begun_gets_no_time(root: Path) -> None:
    """Its gate takes some milliseconds, and would begin it after TERM was sent."""
    launch = Launch(argv=("/bin/sh", "-c", "echo begun; read -r line < pipe"), environment=os.environ)
    async with GatedProcess(launch, root, lambda data: None) as process:
        process.open_gate()
        async with asyncio.timeout(PATIENCE):
            await process.end(grace_seconds=2 * PATIENCE)


async def test_the_time_limit_ends_also_those_who_do_not_listen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.exec.TIMEOUT_GRACE_SECONDS", 0.01)
    tool = commands(root, 0.1).exec
    notes = Notes()
    parameters = ExecParameters(command="trap '' TERM; read -r line < pipe", timeout_seconds=500)
    ended = await run_allowed(tool, parameters, notes.context())
    assert ended.text.startswith("[stopped after its time limit of 0.1 s]")
    assert ended.is_error
    with pytest.raises(ProcessLookupError):
        os.kill(notes.started[0][0], 0)


@pytest.mark.parametrize("cancels", [1, 2])
async def test_an_abort_ends_the_whole_group_even_who_ignores_it(root: Path, cancels: int) -> None:
    call = Call(root, "trap '' TERM; (read -r line < pipe) & echo $!; sh -c 'echo $$; read -r line < pipe'; echo never")
    own, *children = await call.pids(2)
    sights = [Sight(pid) for pid in children]
    for _ in range(cancels):
        call.task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call.task
    with pytest.raises(ProcessLookupError):
        os.kill(own, 0)
    assert all(sight.ended() for sight in sights)
    assert "never" not in "".join(call.notes.updates)


async def test_a_background_process_ends_with_its_command(root: Path) -> None:
    call = Call(root, "(read -r line < pipe) & echo $!; sh -c 'read -r line < gate'")
    os.mkfifo(root / "gate")
    _, background = await call.pids(1)
    sight = Sight(background)
    await asyncio.to_thread((root / "gate").write_text, "go\n")
    assert (await call.task).text.startswith("[exit code 0]")
    assert sight.ended()


DAEMON = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.execve("/bin/sh", ["sh", "-c", "trap '' TERM HUP; read -r line < pipe"], {})
"""
DETACHED = {
    "setsid": "setsid sh -c 'echo $$; read -r line < pipe' &",
    "nohup": "nohup sh -c 'trap \"\" TERM; echo $$; read -r line < pipe' & disown",
    "daemon, its environment emptied": f"{sys.executable} daemon.py &",
}


@linux
@pytest.mark.parametrize("command", DETACHED.values(), ids=DETACHED)
@pytest.mark.parametrize("way", ["the command ends", "abort"])
async def test_what_detaches_itself_ends_with_its_command(root: Path, command: str, way: str) -> None:
    (root / "daemon.py").write_text(DAEMON)
    os.mkfifo(root / "gate")
    call = Call(root, f"{command}\nread -r line < gate")
    _, away = await call.pids(1)
    sight = Sight(away)
    assert os.getsid(away) != os.getsid(call.notes.started[0][0]) or "nohup" in command
    assert not sight.ended(0)
    if way == "abort":
        call.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.task
    else:
        await asyncio.to_thread((root / "gate").write_text, "go\n")
        assert (await call.task).text.startswith("[exit code 0]")
    assert sight.ended(0)


FLEEING = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
alive = os.open("alive", os.O_WRONLY)
print("fleeing", flush=True)
for _ in range(20_000):  # nobody has to hunt one that got away
    if os.fork():
        os._exit(0)
    os.setsid()
"""


@linux
async def test_one_that_forks_while_it_is_being_killed_ends_too(root: Path) -> None:
    """Each lives for a moment only and leaves a child in a session of its own; all hold the pipe `alive` open."""
    (root / "flee.py").write_text(FLEEING)
    os.mkfifo(root / "alive")
    alive = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    call = Call(root, f"{sys.executable} flee.py & read -r line < pipe")
    await call.said("fleeing")
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert select.select([alive], [], [], 10)[0], "it is still there"
    assert os.read(alive, 1) == b""
    os.close(alive)


@linux
async def test_signals_to_its_own_group_do_not_loosen_the_gate(root: Path) -> None:
    call = Call(
        root, "setsid sh -c 'echo $$; read -r line < pipe' & read -r line < gate; kill -TERM 0; kill -HUP $PPID"
    )
    os.mkfifo(root / "gate")
    _, pid = await call.pids(1)
    sight = Sight(pid)
    await asyncio.to_thread((root / "gate").write_text, "go\n")
    assert (await call.task).text.startswith("[ended by signal SIGTERM]")
    assert sight.ended(0)


async def test_a_command_that_kills_its_gate_ends_with_it(root: Path) -> None:
    call = Call(root, "(read -r line < pipe) & echo $!; read -r line < gate; kill -KILL $PPID; read -r line < pipe")
    os.mkfifo(root / "gate")
    _, background = await call.pids(1)
    sight = Sight(background)
    await asyncio.to_thread((root / "gate").write_text, "go\n")
    assert (await call.task).text.startswith("[ended by signal SIGKILL]")
    assert sight.ended()


async def test_nothing_runs_before_the_process_is_stored(root: Path) -> None:
    stored: list[tuple[int, str]] = []

    async def refuse(pid: int, pid_started: str) -> None:
        assert start_time(pid) == pid_started
        stored.append((pid, pid_started))
        raise RunLost

    tool = commands(root).exec
    with pytest.raises(RunLost):
        await run_allowed(tool, ExecParameters(command="touch ran"), Notes().context(refuse))
    with pytest.raises(ProcessLookupError):
        os.kill(stored[0][0], 0)
    assert not (root / "ran").exists()


CRASHING = """
import asyncio, os, signal, sys
from pathlib import Path
from agent.tools.exec import ExecParameters
from tests.agent.tools.calls import Notes, run_allowed
from tests.agent.tools.commands import commands

async def started(pid, pid_started):
    print(pid, pid_started, flush=True)
    if sys.argv[2] == "gated":
        assert sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    command = "echo begun > ran; echo $PPID; read -r line < pipe; echo over > ran"
    context = Notes().context(started, lambda text: print(text, flush=True))
    await run_allowed(commands(Path(sys.argv[1])).exec, ExecParameters(command=command), context)

asyncio.run(main())
"""


def crashing(root: Path, when: str) -> "subprocess.Popen[str]":
    """A program that calls `exec`; it tells pid and start time on a line, and later what the command says."""
    return subprocess.Popen(
        [sys.executable, "-c", CRASHING, str(root), when],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        text=True,
    )


def test_killed_while_the_gate_is_shut_the_command_never_runs(root: Path) -> None:
    with crashing(root, "gated") as program:
        assert program.stdout is not None
        assert program.stdin is not None
        pid = int(program.stdout.readline().split()[0])
        sight = Sight(pid)
        assert not sight.ended(0)
        program.stdin.write("die\n")
        program.stdin.flush()
        assert program.wait(10) == -signal.SIGKILL
        assert sight.ended()
    assert not (root / "ran").exists()


def test_what_a_crash_left_running_is_ended_by_pid_and_start_time(root: Path) -> None:
    with crashing(root, "running") as program:
        assert program.stdout is not None
        pid, pid_started = program.stdout.readline().split()
        assert program.stdout.readline() == f"{pid}\n"
        program.kill()
        program.wait(10)
        sight = Sight(int(pid))
        assert end_leftover(int(pid), pid_started + "0")
        assert end_leftover(int(pid), "")
        assert not sight.ended(0), "another process was meant"
        assert end_leftover(int(pid), pid_started)
        assert sight.ended()
    assert (root / "ran").read_text() == "begun\n"


def test_a_killed_process_that_ends_late_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it takes longer than the killing."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        started = start_time(process.pid)
        assert started is not None
        looks = iter([started] * 80)
        monkeypatch.setattr(leftovers, "start_time", lambda pid: next(looks, None))
        assert end_leftover(process.pid, started)
    assert process.returncode == -signal.SIGKILL


def test_a_process_that_leads_no_group_is_left_alone() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as bystander:
        pid_started = start_time(bystander.pid)
        assert pid_started is not None
        assert not end_leftover(bystander.pid, pid_started)
        bystander.communicate()
        assert bystander.returncode == 0
    assert start_time(bystander.pid) is None
    assert end_leftover(bystander.pid, pid_started)
    own = start_time(os.getpid())
    assert own is not None
    assert not end_leftover(os.getpid(), own)


async def test_no_descriptor_is_left_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.exec.OUTPUT_GRACE_SECONDS", 0.01)
    await run(root, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await run(root, "echo x; cat pipe &")
        call = Call(root, "echo $$; cat pipe")
        await call.pids(1)
        call.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.task
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("given", "become"),
    [({}, None), ({"LANG": "en_US.UTF-8"}, None), ({"LANG": "C"}, None), ({"LANG": "zh_CN.GBK"}, "C.UTF-8")],
)
def test_no_encoding_but_utf8(given: dict[str, str], become: str | None) -> None:
    assert scrubbed(given).get("LC_ALL") == become
