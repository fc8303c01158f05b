"""Lines run for real in a sandbox, and whatever they could have changed or reached outside of it."""

import asyncio
import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.file_names import NAMES
from agent.sandbox.base import Confinement
from agent.sandbox.kept import KEPT_FOLDERS, kept_of
from agent.sandbox.proof import Setting, choose
from agent.shell import Level
from agent.tools.process import GatedProcess
from tests.shell.corpus import Place, make_place, make_repository

RUNNER = Path(__file__).with_name("lines_inside.py")
PYTHON = os.path.realpath(sys.executable)
SECONDS = 0.4  # for a line
SECRET = "haddock-4711-halibut"
_HOST = re.compile(r"(https?|ftp)://[\w.-]+(?::\d+)?")


@dataclass(frozen=True, slots=True)
class Outside:
    """A place, with what no command may change, read or reach around it. hidden: in the room itself."""

    place: Place
    house: Path
    port: int
    hidden: tuple[Path, ...]
    bystander: "subprocess.Popen[bytes]"
    sockets: tuple[socket.socket, ...] = field(repr=False)

    def aimed(self, line: str) -> str:
        """A line that speaks to a host speaks to this machine."""
        return _HOST.sub(rf"\1://127.0.0.1:{self.port}", line)

    def reached(self) -> list[str]:
        """What has been reached since this was asked last."""
        found = []
        for one in self.sockets:
            try:
                one.recv(1) if one.type == socket.SOCK_DGRAM else one.accept()[0].close()
                found.append(f"reached {one.getsockname()}")
            except BlockingIOError:
                pass
        if self.bystander.poll() is not None:
            found.append("ended another program")
        return found

    def state(self, level: Level) -> dict[str, tuple[object, ...]]:
        """All that must stay as it is at a level: everything around the room; of the room all, or what it keeps."""
        room = self.place.workspace
        found = _state(path for path in self.house.rglob("*") if not path.is_relative_to(room))
        found |= _state(Path(name) for name in ("/etc", "/etc/passwd", "/etc/hosts", "/usr/bin", "/usr/local/bin"))
        if level == "look":
            return found | _state(room.rglob("*"))
        kept = kept_of(room, NAMES)
        tops = [*kept.leading, *kept.files, *self.hidden]
        return found | _state(path for top in tops for path in (top, *top.rglob("*")))


def _state(paths: Iterator[Path]) -> dict[str, tuple[object, ...]]:
    """What can change of files and folders: kind, rights, owner, time, and what they hold."""
    found = dict[str, tuple[object, ...]]()
    for path in paths:
        status = path.lstat()
        held = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, held)
    return found


def shows(output: bytes) -> bool:
    """The secret stands there, plain or in base64, wherever that begins."""
    forms = [SECRET.encode(), SECRET[::-1].encode()]
    forms += [base64.b64encode(b"x" * shift + SECRET.encode())[4:-4] for shift in range(3)]
    return any(form in output.replace(b"\n", b"") for form in forms)


@contextmanager
def outside(house: Path) -> Iterator[Outside]:
    """Build it in an empty folder."""
    place = make_place(house)
    make_repository(place)
    room = place.workspace
    planted = (
        *(house / name for name in ("config.yaml", ".env", "elsewhere/file", "elsewhere/secret", "workspace-evil/x")),
        *(place.home / name for name in (".netrc", ".bashrc", "Documents/letter", "notes.txt")),
        *(room / name for name in ("private/key", "config.yaml")),
    )
    for path in planted:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{SECRET}\n")
    for name in KEPT_FOLDERS:
        (room / name).mkdir()
        (room / name / "one.txt").write_text("kept")
    with ExitStack() as stack:
        made = []
        tcp = ("127.0.0.1", 0)
        places = (tcp, str(house / "sock"), str(room / "sock"), *([f"\0{house}"] if sys.platform == "linux" else []))
        for where in places:
            kind = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
            one = stack.enter_context(socket.socket(kind))
            one.bind(where)
            one.listen(64)
            made.append(one)
        port = made[0].getsockname()[1]
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", port))
        for one in (*made, datagrams):
            one.setblocking(False)
        with subprocess.Popen(["/bin/sh", "-c", "read wait"], stdin=subprocess.PIPE) as bystander:
            hidden = (room / "private", room / "config.yaml")
            yield Outside(place, house, port, hidden, bystander, (*made, datagrams))
            bystander.kill()


async def ran(name: Setting, level: Level, around: Outside, lines: Sequence[str]) -> dict[str, bytes]:
    """Run lines at a level, and return what they wrote. One that ends all that is beside it in the sandbox, also what
    runs the lines, has written nothing, and those behind it run in another sandbox."""
    said: dict[int, bytes] = {}
    left = [(number, around.aimed(line)) for number, line in enumerate(lines)]
    while left:
        last = await _once(name, level, around, left, said)
        assert last >= left[0][0], "nothing runs in it"
        left = [one for one in left if one[0] > last]
    return {line: said.get(number, b"") for number, line in enumerate(lines)}


async def _once(
    name: Setting, level: Level, around: Outside, lines: Sequence[tuple[int, str]], said: dict[int, bytes]
) -> int:
    """Run lines as far as one sandbox goes; returns the number of the last one that began."""
    room, sandbox = around.place.workspace, choose(name).sandbox
    confinement = Confinement(
        sandbox=sandbox, why="", hidden=around.hidden, kept=NAMES, temporary=around.house.parent / "temporary"
    )
    (room / "lines.json").write_text(json.dumps(lines))
    found = kept_of(room, NAMES)
    kept = [str(path.relative_to(room)) for path in (*found.files, *found.leading)]
    argv = (PYTHON, "-I", "-S", "-c", RUNNER.read_text(), str(SECONDS), "lines.json", *kept)
    environment = around.place.environment
    launch = await asyncio.to_thread(confinement.launch, level, room, room, environment, argv)
    output = bytearray()
    try:
        async with GatedProcess(launch, room, output.extend) as process:
            process.open_gate()
            await process.wait()
            await process.last_words(1)
    finally:
        (room / "lines.json").unlink(missing_ok=True)
    last = -1
    for text in output.decode(errors="replace").splitlines():
        if text.startswith("["):
            last, wrote = json.loads(text)
            said[last] = base64.b64decode(wrote)
    return last
