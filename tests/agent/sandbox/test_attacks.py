"""A command that wants out: whatever it tries at any level, nothing outside has changed or been reached afterwards."""

import hashlib
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sandbox.proof import Setting
from agent.shell import Level
from agent.tools.exec import ExecParameters
from tests.agent.sandbox.conftest import held
from tests.agent.tools.calls import outcome
from tests.agent.tools.commands import commands

ATTACK = Path(__file__).with_name("attack.py")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "folder").mkdir(parents=True)
    for name in ("precious", "folder/precious"):
        (folder / name).write_text("swordfish")
    return folder


@pytest.fixture
def furnished(room: Path, outside: Path) -> Path:
    """A room with a repository, results, media, and a link that leads out."""
    subprocess.run(["git", "init", "-q", str(room)], check=True)
    for name in ("AGENTS.md", "MEMORY.md", ".git/hooks/pre-commit", "tool-results/one.txt", "media/two.txt", "notes"):
        (room / name).parent.mkdir(exist_ok=True)
        (room / name).write_text("kept")
    (room / "leads-out").symlink_to(outside)
    shutil.copy(ATTACK, room / "attack.py")
    return room


@pytest.fixture
def ports(room: Path, outside: Path) -> Iterator[tuple[int, int]]:
    """A TCP and a UDP port, and Unix sockets in both folders and without a file, called as the folder outside is; none
    of them may hear anything."""
    where = [("127.0.0.1", 0), str(outside / "socket"), str(room / "socket"), f"\0{outside}"]
    streams = [socket.socket(socket.AF_UNIX if isinstance(one, str) else socket.AF_INET) for one in where]
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        for one, place in zip(streams, where, strict=True):
            if sys.platform == "linux" or place != where[-1]:
                one.bind(place)
                one.listen()
                one.setblocking(False)
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        yield streams[0].getsockname()[1], datagrams.getsockname()[1]
        for one in streams:
            with pytest.raises(BlockingIOError):
                one.accept()
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)
    finally:
        for one in (*streams, datagrams):
            one.close()


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """Another program of the same user."""
    with subprocess.Popen(["/bin/sh", "-c", "read wait"], stdin=subprocess.PIPE, env={"A": "swordfish"}) as other:
        yield other
        other.kill()


def state(*paths: Path) -> dict[str, tuple[object, ...]]:
    """What can change of files and folders: their kind, rights, owner, time, and what they hold."""
    found = dict[str, tuple[object, ...]]()
    for top in paths:
        for path in (top, *sorted(top.rglob("*"))):
            status = path.lstat()
            held = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, held)
    return found


def kept(room: Path) -> dict[str, tuple[object, ...]]:
    names = ("AGENTS.md", "MEMORY.md", "SOUL.md", ".git/config", ".git/hooks", ".git/info", "tool-results", "media")
    return state(*(room / name for name in names if (room / name).exists()))


@pytest.mark.parametrize("level", ["look", "work"])
async def test_nothing_outside_changes_and_nothing_is_reached(
    name: Setting,
    level: Level,
    furnished: Path,
    outside: Path,
    ports: tuple[int, int],
    other: "subprocess.Popen[bytes]",
) -> None:
    tool = commands(furnished, sandbox=held(name, level), in_sandbox="allow").exec
    await outcome(tool, ExecParameters(command="true", needs=level))  # makes what is missing of what is kept
    before = state(outside), state(furnished) if level == "look" else kept(furnished)
    words = f"python3 attack.py {outside} {ports[0]} {ports[1]} {other.pid}"
    said = (await outcome(tool, ExecParameters(command=words, needs=level))).text
    assert said.startswith("[exit code 0]\n[no output]"), said
    assert other.poll() is None
    assert resource.prlimit(other.pid, resource.RLIMIT_CPU) == resource.getrlimit(resource.RLIMIT_CPU)
    assert not any(int(str(one[0])) & 0o6000 for one in state(furnished).values())
    assert (state(outside), state(furnished) if level == "look" else kept(furnished)) == before


async def test_the_attack_gets_somewhere_where_nothing_holds_it(
    furnished: Path, outside: Path, other: "subprocess.Popen[bytes]"
) -> None:
    """What the test above looks for is really done, on the host."""
    before = state(outside)
    words = f"{sys.executable} attack.py {outside} 1 1 {other.pid}"
    said = (await outcome(commands(furnished).exec, ExecParameters(command=words))).text
    assert "READ" in said
    assert other.wait(10) != 0
    assert str(outside / "made") in state(outside)
    assert state(outside) != before
