"""What a command really did: run under strace, its programs and what it wrote."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.shell.corpus import Place

_CHANGES = (
    "creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat"
)
_MODES = "chmod,fchmodat,chown,lchown,fchownat,truncate,utimensat,setxattr,mount,sethostname,settimeofday,kill,connect"
_RAN = re.compile(r'execve\("((?:[^"\\]|\\.)*)".* +?= 0$')
_OPENED = re.compile(r"open(?:at)?\(.*O_(?:WRONLY|RDWR|CREAT|TRUNC).* += \d+<(.*)>$")
_CHANGED = re.compile(r"^\w+\((.*)\) += 0$")
_DESCRIPTOR = re.compile(r"^\d+<(/[^>]*)>")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')


def available() -> bool:
    """strace is here and may trace."""
    return (
        bool(shutil.which("strace"))
        and subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False).returncode == 0
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """ran: the programs, as real paths. wrote: real paths that were written, made, renamed or removed; other deeds."""

    ran: frozenset[str]
    wrote: frozenset[str]
    finished: bool


def traced(command: str, place: Place, scratch: Path, seconds: float = 5) -> Trace:
    """Run it as `exec` does: bash, no input, the environment of a command."""
    record = scratch / "strace"
    words = ["strace", "-f", "-y", "-qq", "-s", "4096", "-o", str(record)]
    words += ["-e", f"trace=execve,open,openat,{_CHANGES},{_MODES}", "-e", "signal=none"]
    environment = place.environment | {"TMPDIR": str(scratch)}
    finished = True
    with subprocess.Popen(
        [*words, "/bin/bash", "-c", command],
        cwd=place.workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            finished = False
            subprocess.run(["kill", "-KILL", "--", f"-{process.pid}"], check=False)
            process.communicate()
    ran, wrote = set(), set()
    for line in record.read_text(errors="surrogateescape").splitlines()[1:]:
        call = line.partition(" ")[2].lstrip()
        if match := _RAN.search(call):
            ran.add(
                str(Path(match[1]).resolve()) if match[1][0] == "/" else str((place.workspace / match[1]).resolve())
            )
        elif match := _OPENED.match(call):
            wrote.add(match[1])
        elif match := _CHANGED.match(call):
            named = [os.path.normpath(Path(base or place.workspace, name)) for base, name in _PATH.findall(match[1])]
            wrote.update(named or _DESCRIPTOR.findall(match[1]) or [call])
    return Trace(frozenset(ran), frozenset(wrote), finished)


def outside(trace: Trace, place: Place, scratch: Path) -> list[str]:
    """What it wrote where it must not."""
    inside = (f"{place.workspace.resolve()}/", f"{scratch}/")
    harmless = ("/dev/null", "/dev/tty")
    return sorted(
        path
        for path in trace.wrote
        if path not in harmless and not path.startswith(inside) and not path.startswith(("pipe:", "socket:"))
    )
