"""sandlock: Landlock and seccomp, for machines on which a process may make no namespaces.

It needs Linux 6.12, no root and no program. The kernel keeps the command to the folders it is given; what a room keeps
for itself cannot even be read while the command may write beside it, git's folders as a whole, because Landlock grants
whole folders and takes nothing back. No attribute of a file changes (`filters`).
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox import filters
from agent.sandbox.base import BOUNDS, View, inside, readable
from agent.sandbox.launch import Launch

_PROGRAM = Path(__file__).with_name("sandlock_run.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class Sandlock:
    """folder: where its library is installed, since what runs it starts without one."""

    folder: str
    name: str = "sandlock"

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        may_write = view.level != "look"
        denied = list(view.hidden)
        if may_write:
            denied += [*view.kept.files, *view.kept.repositories]
        plan = {
            "library": self.folder,
            "readable": [*readable(), *_DEVICES, "/proc", *([] if may_write else [str(view.room)])],
            "writable": [str(view.temporary), "/dev/null", *([str(view.room)] if may_write else [])],
            "denied": [str(path) for path in denied if path.exists()],
            "network": view.level == "network",
            "folder": str(view.folder),
            "environment": inside(view.environment, str(view.temporary)),
            "memory": BOUNDS.memory,
            "processes": BOUNDS.processes,
            "argv": argv,
        }
        return Launch(
            argv=(sys.executable, "-I", "-S", str(_PROGRAM), json.dumps(plan, ensure_ascii=False)),
            environment={},
            bounds=BOUNDS,
            passed=filters.attributes(view.level == "network", times=may_write),
        )
