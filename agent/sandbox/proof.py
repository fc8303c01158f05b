"""Chooses the first sandbox from which a test command cannot escape.

No kernel, container or program is trusted. `probe` runs inside a sandbox like any command, tries what must fail and
what must work, and reports the results; its traces are looked for outside as well. It does no harm if it escapes. The
result is cached for the life of this process.
"""

import importlib.util
import json
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
from agent.sandbox.base import Kept, Sandbox, View, start_gate
from agent.shell import Level

Setting = Literal["auto", "bubblewrap", "sandlock", "seatbelt", "none"]

_PROBE = Path(__file__).with_name("probe.py")
_SECONDS = 20.0  # for one probe; it takes a tenth of one
_LONGEST_REASON = 300


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
    if sys.platform != "linux":
        return "it is for Linux"
    found = importlib.util.find_spec("sandlock")
    if found is None or found.origin is None:
        return "not installed (pip install hark-bot[sandlock]; it has wheels for glibc on x86_64 and aarch64)"
    return Sandlock(str(Path(found.origin).parents[1]))


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
        for level in ("look", "work"):
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
        room, outside = house / "room", house / "outside"
        kept = room / "AGENTS.md"
        view = View(
            level=level,
            room=room,
            folder=room,
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            temporary=house / "temporary",
            kept=Kept(files=(kept,)) if level == "work" else Kept(),
            hidden=(room / "hidden",),
        )
        with _listening(house) as (targets, reached), _another() as other:
            asked = {"level": level, "outside": str(outside), "other": other.pid, **targets}
            python = os.path.realpath(sys.executable)
            argv = (python, "-I", "-S", "-c", _PROBE.read_text(), json.dumps(asked))
            said = _run(sandbox, view, argv)
            wrong = [*said, *reached()]
            if other.poll() is not None:
                wrong.append("ended another program")
        state = [(path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in _precious(house)]
        if any(one != (b"secret", 0o100600, 0) for one in state):
            wrong.append("changed a file that it must not")
        return f"a command in it {'; '.join(wrong)}" if wrong else ""


def _precious(house: Path) -> tuple[Path, ...]:
    return house / "outside" / "secret", house / "room" / "AGENTS.md", house / "room" / "hidden" / "secret"


@contextmanager
def _planted() -> Iterator[Path]:
    """Make a folder with files that a command may see, and files that it must not."""
    # Not in /tmp, because a sandbox puts an empty folder there.
    place = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hark-", dir=place) as folder:
        house = Path(folder).resolve()
        for name in ("room", "room/hidden", "outside", "temporary"):
            (house / name).mkdir()
        for path in _precious(house):
            path.write_bytes(b"secret")
            path.chmod(0o600)
            os.utime(path, (0, 0))
        yield house


@contextmanager
def _listening(house: Path) -> Iterator[tuple[dict[str, object], Callable[[], list[str]]]]:
    """Open sockets outside of the sandbox; yields their addresses and a function that says which were reached."""
    with ExitStack() as stack:
        tcp, udp, near, far = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            )
        )
        paths = str(house / "room" / "near"), str(house / "outside" / "far")
        for one, where in ((tcp, ("127.0.0.1", 0)), (udp, ("127.0.0.1", 0)), (near, paths[0]), (far, paths[1])):
            one.bind(where)
            one.setblocking(False)
        for one in (tcp, near, far):
            one.listen()

        def reached() -> list[str]:
            found = []
            for one, words in ((tcp, "TCP"), (near, "a Unix socket"), (far, "a Unix socket outside")):
                try:
                    one.accept()[0].close()
                    found.append(f"reached {words}")
                except BlockingIOError:
                    pass
            try:
                udp.recv(1)
                found.append("reached UDP")
            except BlockingIOError:
                pass
            return found

        yield {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "sockets": paths}, reached


@contextmanager
def _another() -> Iterator[subprocess.Popen[bytes]]:
    """Start a program outside of the sandbox, which a command must neither see nor end."""
    with subprocess.Popen(["/bin/sh", "-c", "read wait"], stdin=subprocess.PIPE, env={}) as other:
        try:
            yield other
        finally:
            other.kill()


def _run(sandbox: Sandbox, view: View, argv: tuple[str, ...]) -> list[str]:
    """Run the probe; returns what it could do though it must not. Raises ValueError when it reports nothing."""
    launch = sandbox.launch(view, argv)
    ours, its = socket.socketpair()
    with ours, open(os.devnull, "rb") as nothing, its:
        gated = start_gate(its, nothing.fileno(), subprocess.PIPE, view.folder)
        its.close()
        with gated:
            try:
                ours.sendall(launch.plan() + b"\n")
                output, _ = gated.communicate(timeout=_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(gated.pid, signal.SIGKILL)
    said = output.decode(errors="replace").strip().splitlines()
    if not said or not said[-1].startswith("["):
        raise ValueError(said[-1] if said else "it said nothing")
    return [str(one) for one in json.loads(said[-1])]
