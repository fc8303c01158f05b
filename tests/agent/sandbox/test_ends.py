"""Nothing of a command in a sandbox lives after its call: whatever detaches itself, and whoever is killed.

All that a command has begun holds the pipe `alive` open; when it reads as ended, the last of them is gone.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sandbox import base
from agent.sandbox.proof import Setting
from agent.tools.exec import ExecParameters
from agent.tools.leftovers import end_leftover
from tests.agent.sandbox.conftest import held
from tests.agent.tools.calls import Notes
from tests.agent.tools.commands import commands
from tests.watch import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans cannot be found")

PROJECT = Path(__file__).parents[3]
DAEMON = """
import os, signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.write(2, b"away\\n")
os.read(os.open("never", os.O_RDWR), 1)
"""
LEAVES = "exec 9> alive; python3 daemon.py & setsid sh -c 'echo away; read -r line < never' & nohup sleep 1000 & "


class Alive:
    """Whether anything of a command still runs."""

    def __init__(self, room: Path) -> None:
        self._descriptor = os.open(room / "alive", os.O_RDONLY | os.O_NONBLOCK)

    def ended(self, seconds: float = PATIENCE) -> bool:
        """Nothing does, at the latest after so many seconds."""
        ready = select.select([self._descriptor], [], [], seconds)[0]
        return bool(ready) and os.read(self._descriptor, 1) == b""

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def alive(room: Path) -> Iterator[Alive]:
    for pipe in ("alive", "never", "gate"):
        os.mkfifo(room / pipe)
    (room / "daemon.py").write_text(DAEMON)
    made = Alive(room)
    yield made
    made.close()


class Call:
    """A call of `exec` at work, in a task."""

    def __init__(self, room: Path, name: Setting, command: str) -> None:
        self.notes, self._news = Notes(), asyncio.Event()
        tool = commands(room, sandbox=name, in_sandbox="allow").exec
        context = self.notes.context(update=self._update)
        self.task = asyncio.create_task(tool.run(ExecParameters(command=command, needs="work"), context))

    def _update(self, text: str) -> None:
        self.notes.updates.append(text)
        self._news.set()

    async def away(self, count: int) -> None:
        """Return once so many have said that they are away."""
        while "".join(self.notes.updates).count("away") < count:
            self._news.clear()
            async with asyncio.timeout(PATIENCE):
                await self._news.wait()


async def test_what_detaches_itself_ends_with_its_command(working: Setting, room: Path, alive: Alive) -> None:
    call = Call(room, working, f"{LEAVES} read -r line < gate; exit 3")
    await call.away(2)
    assert not alive.ended(0)
    await asyncio.to_thread((room / "gate").write_text, "go\n")
    assert (await call.task).text.startswith("[exit code 3]")
    assert alive.ended(0)


@pytest.mark.parametrize("listed", [True, False])
async def test_and_with_a_call_that_is_stopped(
    working: Setting, room: Path, alive: Alive, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.setattr("agent.tools.leftovers._lists_children", lambda: listed)
    call = Call(room, working, f"trap '' TERM; {LEAVES} read -r line < never")
    await call.away(2)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert alive.ended(0)


async def test_and_with_its_gate(room: Path, alive: Alive) -> None:
    """Of bubblewrap; without a namespace of its own what a killed gate leaves is found by nobody but the next start."""
    call = Call(room, held("bubblewrap"), f"trap '' TERM; {LEAVES} read -r line < never")
    await call.away(2)
    os.kill(call.notes.started[0][0], signal.SIGKILL)
    assert (await call.task).is_error
    assert alive.ended()


CRASHING = """
import asyncio, sys
from pathlib import Path
from agent.tools.exec import ExecParameters
from tests.agent.tools.calls import Notes
from tests.agent.tools.commands import commands

async def started(pid, pid_started):
    print(pid, pid_started, flush=True)

async def main():
    context = Notes().context(started, lambda text: print(text, flush=True))
    tool = commands(Path(sys.argv[1]), sandbox=sys.argv[2], in_sandbox="allow").exec
    await tool.run(ExecParameters(command=sys.argv[3], needs="work"), context)

asyncio.run(main())
"""


def test_and_when_the_service_has_died_by_pid_and_start_time(working: Setting, room: Path, alive: Alive) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CRASHING, str(room), working, f"{LEAVES} read -r line < never"],
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        text=True,
    ) as program:
        assert program.stdout is not None
        pid, pid_started = program.stdout.readline().split()
        said = ""
        while said.count("away") < 2:
            said += program.stdout.readline()
        program.kill()
        program.wait(10)
    assert end_leftover(int(pid), pid_started)
    assert alive.ended()


def test_a_gate_imports_little_because_every_command_waits_for_it() -> None:
    words = [sys.executable, "-I", "-S", "-X", "importtime", base._GATE, "0", "0"]
    said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    assert {"os", "ctypes", "marshal"} <= imported
    assert not imported & {"enum", "re", "json", "typing", "contextlib", "functools", "collections"}
