"""Chooses the first sandbox from which a test command cannot escape.

No kernel, container or program is trusted. `probe` runs inside a sandbox like any command, tries what must fail and
what must work, and reports the results; its traces are looked for outside as well. It does no harm if it escapes. The
result is cached for the life of this process.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from agent.sandbox.backends import Bubblewrap, Sandlock, Seatbelt
from agent.sandbox.base import Confinement, Launch, Sandbox, start_gate
from agent.shell import Level

Setting = Literal["auto", "bubblewrap", "sandlock", "seatbelt", "none"]

_PROBE = Path(__file__).with_name("probe.py")
_SECONDS = 20.0  # for one probe; it takes a tenth of one
_LONGEST_REASON = 300
_SWAPS = 5  # of a path while another thread writes to it, for each target


@dataclass(frozen=True, slots=True)
class Proved:
    """The sandbox that was chosen."""

    # None: no sandbox holds.
    sandbox: Sandbox | None
    # Why this one and no other, for people.
    why: str


def choose(setting: Setting) -> Proved:
    """Choose the sandbox for commands. Blocking; it takes a third of a second the first time."""
    if setting == "none":
        return Proved(None, "the configuration wants none (tools.exec.sandbox)")
    reasons = list[str]()
    for name in _WAYS if setting == "auto" else (setting,):
        sandbox, why = _proved(name)
        if sandbox is not None:
            return Proved(sandbox, "; ".join(("proved at start", *reasons)))
        reasons.append(f"{name}: {why}")
    return Proved(None, "; ".join((*reasons, _HOW)))


def _bubblewrap() -> Sandbox | str:
    program = shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin")
    return Bubblewrap(os.path.realpath(program)) if program else "not installed (its program is bwrap)"


def _sandlock() -> Sandbox | str:
    return Sandlock() if sys.platform == "linux" else "it is for Linux"


def _seatbelt() -> Sandbox | str:
    program = "/usr/bin/sandbox-exec"
    return Seatbelt(program) if os.path.exists(program) else "it is for macOS"


_WAYS: dict[str, Callable[[], Sandbox | str]] = {
    "bubblewrap": _bubblewrap,
    "sandlock": _sandlock,
    "seatbelt": _seatbelt,
}
_HOW = (
    "to get one, install bubblewrap on Linux and let processes make user namespaces, or run Linux 6.12 or later with "
    "Landlock (docs/security.md)"
)


@cache
def _proved(name: str) -> tuple[Sandbox | None, str]:
    """Return the sandbox of this name if it holds, and otherwise why it does not."""
    sandbox = _WAYS[name]()
    if isinstance(sandbox, str):
        return None, sandbox
    try:
        for level in sandbox.levels:
            if why := prove(sandbox, level):
                return None, why
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return None, f"a command could not be tried in it ({error})"[:_LONGEST_REASON]
    return sandbox, ""


def prove(sandbox: Sandbox, level: Level) -> str:
    """Test whether a sandbox holds commands of a level; returns why not, empty if it does.

    Blocking. Raises OSError, ValueError or SubprocessError when the test could not run.
    """
    with _planted() as house:
        room, outside, state = house / "room", house / "outside", house / "state"
        confinement = Confinement(
            sandbox=sandbox,
            why="",
            hidden=(state, room / "hidden"),
            kept=("AGENTS.md",),
            temporary=state / "commands",
        )
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        python = os.path.realpath(sys.executable)
        with _listening(house) as (targets, reached), _another() as other:
            about = {"level": level, "outside": outside, "state": state, "swaps": _SWAPS, "other": other.pid}
            words = (f"{name}={value}" for name, value in (about | targets).items())
            argv = (python, "-I", "-S", "-c", _PROBE.read_text(), *words)
            launch = confinement.launch(level, room, room, environment, argv)
            before = _state(house)
            wrong = _run(launch, room)
            wrong += reached(level == "network")
            if other.poll() is not None:
                wrong.append("ended another program")
        if _state(house) != before:
            wrong.append("changed a file that it must not")
        return f"a command in it {'; '.join(wrong)}" if wrong else ""


def _precious(house: Path) -> tuple[Path, ...]:
    room = house / "room"
    inside = (room / "hidden/secret", room / "AGENTS.md", room / ".git/config", room / ".git/hooks/kept")
    return house / "outside/secret", house / "state/secret", *inside


def _state(house: Path) -> list[object]:
    """Return what must stay as it is."""
    files = [path for path in _precious(house) if path.exists()]
    folders = ("outside", "room/.git", "room/.git/hooks", "room/.git/hooks/folder", "room/memory")
    return [
        *((path, path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in files),
        *(sorted(os.listdir(house / name)) for name in folders if (house / name).is_dir()),
    ]


@contextmanager
def _planted() -> Iterator[Path]:
    """Make folders as a service has them, with files that a command may see, and files that it must not."""
    # Not in /tmp, because a sandbox puts an empty folder there.
    place = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hark-", dir=place) as folder:
        house = Path(folder).resolve()
        for name in ("room/hidden", "room/.git/hooks/folder", "room/memory", "outside", "state"):
            (house / name).mkdir(parents=True)
        for path in _precious(house):
            path.write_bytes(b"secret")
            path.chmod(0o600)
            os.utime(path, (0, 0))
        yield house


@contextmanager
def _listening(house: Path) -> Iterator[tuple[dict[str, object], Callable[[bool], list[str]]]]:
    """Open sockets outside of the sandbox; yields their addresses and a function that says which were reached.

    It is told whether the network may be reached.
    """
    with ExitStack() as stack:
        tcp, udp, near, far, letters = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_DGRAM),
            )
        )
        paths = str(house / "room" / "near"), str(house / "outside" / "far")
        here, letterbox = ("127.0.0.1", 0), str(house / "room" / "letters")
        for one, where in ((tcp, here), (udp, here), (near, paths[0]), (far, paths[1]), (letters, letterbox)):
            one.bind(where)
            one.setblocking(False)
        for one in (tcp, near, far):
            one.listen()

        def reached(network: bool) -> list[str]:
            found = []
            for one, words in ((tcp, "TCP"), (near, "a Unix socket"), (far, "a Unix socket outside")):
                with suppress(BlockingIOError):
                    one.accept()[0].close()
                    found.append(f"reached {words}")
            for one, words in ((udp, "UDP"), (letters, "a Unix socket by a datagram")):
                with suppress(BlockingIOError):
                    one.recv(1)
                    found.append(f"reached {words}")
            return [words for words in found if not (network and words in ("reached TCP", "reached UDP"))]

        ports = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        yield {**ports, "near": paths[0], "far": paths[1], "letters": letterbox}, reached


@contextmanager
def _another() -> Iterator[subprocess.Popen[bytes]]:
    """Start a program outside of the sandbox, which a command must neither see nor end."""
    with subprocess.Popen(["/bin/sh", "-c", "read wait"], stdin=subprocess.PIPE, env={}) as other:
        try:
            yield other
        finally:
            other.kill()


def _run(launch: Launch, folder: Path) -> list[str]:
    """Run the probe; returns what it could do though it must not. Raises ValueError when it reports nothing."""
    ours, its = socket.socketpair()
    with ours, open(os.devnull, "rb") as nothing, its:
        gated = start_gate(its, nothing.fileno(), subprocess.PIPE, folder)
        its.close()
        with gated:
            try:
                ours.sendall(launch.plan() + b"\n")
                output, _ = gated.communicate(timeout=_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(gated.pid, signal.SIGKILL)
    said = output.decode(errors="replace").strip().splitlines()
    if not said or said[-1] != "over":
        raise ValueError(said[-1] if said else "it said nothing")
    return said[:-1]
