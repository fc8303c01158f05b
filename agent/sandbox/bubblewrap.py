"""bubblewrap: a command in namespaces of its own, where nothing is mounted but what it may see.

It needs user namespaces, or root. The command has its own processes, network and root folder, all of which end with it;
no right of root, no key of the session, and no socket (`filters`). What it may not see is not there.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox import filters
from agent.sandbox.base import BOUNDS, TEMPORARY_BYTES, View, inside, readable
from agent.sandbox.launch import Launch

_FILTER = "3"  # the descriptor of what a launch passes


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """program: the path of `bwrap`."""

    program: str
    name: str = "bubblewrap"

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        network, works = view.level == "network", view.level != "look"
        words = [*_OWN, *_who(), *(["--share-net"] if network else []), *_system(self.program), *_FOLDERS]
        words += ["--bind" if works else "--ro-bind", str(view.room), str(view.room)]
        seen = (str(view.room), *readable())
        for path in view.hidden:
            if path.exists() and any(path.is_relative_to(folder) for folder in seen):
                words += _hides(path)
        words += ["--remount-ro", "/", "--chdir", str(view.folder), "--clearenv"]
        for name, value in inside(view.environment, "/tmp").items():
            words += ["--setenv", name, value]
        within = _keeps(self.program, view) if works else ["--seccomp", _FILTER]
        return Launch(
            argv=(self.program, *words, *within, "--", *argv),
            environment={},  # what the command gets could lead this program itself
            bounds=BOUNDS,
            passed=filters.sockets(network),
        )


def _keeps(program: str, view: View) -> list[str]:
    """Words that begin a second sandbox in the first, in which the room has parts that stay as they are.

    They are mounted from within, because another command at work in the room could put a link in the place of one of
    them at the last moment: from there it leads to nothing that the command does not see anyway.
    """
    words = ["--", program, "--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--dev-bind", "/", "/"]
    for path in (*view.kept.above, *view.kept.repositories):
        words += ["--bind", str(path), str(path)]  # what is mounted cannot be renamed
    for path in (*view.kept.leading, *view.kept.files):
        words += ["--ro-bind", str(path), str(path)]
    return [*words, "--chdir", str(view.folder), "--seccomp", _FILTER]


_OWN = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_SIZE = ("--size", str(TEMPORARY_BYTES))
_FOLDERS = (
    *("--proc", "/proc", "--dev", "/dev", *_SIZE, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
    *(*_SIZE, "--tmpfs", "/tmp"),
)


def _who() -> tuple[str, ...]:
    """As whom a command sees itself: root as nobody, because the second sandbox could not be made by root."""
    return ("--uid", "65534", "--gid", "65534") if os.geteuid() == 0 else ()


def _system(program: str) -> Iterator[str]:
    """The folders of the system as they are, links among them as links, and the program that makes sandboxes."""
    if not any(Path(program).is_relative_to(folder) for folder in readable()):
        yield from ("--ro-bind", program, program)
    for path in readable():
        if os.path.islink(path) and path.count("/") == 1:
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind", os.path.realpath(path), path)


def _hides(path: Path) -> tuple[str, ...]:
    """Words by which there is nothing at a path."""
    if path.is_dir():
        return ("--tmpfs", str(path), "--remount-ro", str(path))
    return ("--ro-bind", os.devnull, str(path))
