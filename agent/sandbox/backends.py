"""The three sandboxes of the operating systems: bubblewrap and sandlock on Linux, seatbelt on macOS.

Each turns a `View` into the command line that holds a command to that view. `proof` says which of them works here.
"""

import marshal
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox import filters
from agent.sandbox.base import BOUNDS, TEMPORARY_BYTES, Launch, View, inside, readable
from agent.shell import Level

_FILTER, _OUTER, _INNER = "3", "4", "5"  # the descriptors of what a launch passes


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """bubblewrap: a command in namespaces of its own, where nothing is mounted but what it may see.

    It needs user namespaces, or root. The command has processes, a network and a root folder of its own, all of which
    end with it. It has no rights of root, no session keys, and no sockets (`filters`).
    """

    # The path of `bwrap`.
    program: str
    name: str = "bubblewrap"
    levels: tuple[Level, ...] = ("look", "work", "network")

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        network, works = view.level == "network", view.level != "look"
        words = [*_OWN, *_who(), *(["--share-net"] if network else []), *_system(self.program), *_FOLDERS]
        words += ["--bind" if works else "--ro-bind", str(view.room), str(view.room)]
        seen = (str(view.room), *readable())
        for path in view.shown:
            words += ["--ro-bind", str(path), str(path)]
        for path in view.hidden:
            if path.exists() and any(path.is_relative_to(folder) for folder in seen):
                words += _hides(path)
        words += ["--remount-ro", "/", "--chdir", str(view.folder), "--clearenv"]
        for name, value in inside(view.environment, "/tmp").items():
            words += ["--setenv", name, value]
        return Launch(
            argv=(self.program, "--args", _OUTER, "--", self.program, "--args", _INNER, "--", *argv),
            environment={},  # variables of the command could influence bwrap itself
            bounds=BOUNDS,
            passed=(filters.sockets(network, looks=not works), _lines(words), _lines(_inner(view))),
        )


def _lines(words: Iterable[str]) -> bytes:
    """Return words as `bwrap --args` reads them."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _inner(view: View) -> list[str]:
    """Return the words of a second sandbox inside the first, in which /proc and parts of the room are read-only.

    From inside it the first process of the outer sandbox is out of reach; as root `/proc/1/exe` there is the program on
    this machine, not what is mounted. What a room keeps is mounted from inside, because another command that works in
    the room could replace one of them by a link at the last moment: from inside, a link leads to nothing that the
    command does not see anyway.
    """
    words = [*_WITHIN, "--remount-ro", "/proc"]
    for path in (*view.kept.above, *view.kept.repositories):
        words += ["--bind", str(path), str(path)]  # what is mounted cannot be renamed
    for path in (*view.kept.leading, *view.kept.files):
        words += ["--ro-bind", str(path), str(path)]
    return [*words, "--chdir", str(view.folder), "--seccomp", _FILTER]


_OWN = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_WITHIN = ("--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--dev-bind", "/", "/")
_SIZE = ("--size", str(TEMPORARY_BYTES))
_FOLDERS = (
    *("--proc", "/proc", "--dev", "/dev", *_SIZE, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
    *(*_SIZE, "--tmpfs", "/tmp"),
)


def _who() -> tuple[str, ...]:
    """Return words that make root the user nobody, because root could not make the second sandbox."""
    return ("--uid", "65534", "--gid", "65534") if os.geteuid() == 0 else ()


def _system(program: str) -> Iterator[str]:
    """Yield words that mount the folders of the system, links as links, and the program that makes sandboxes."""
    if not any(Path(program).is_relative_to(folder) for folder in readable()):
        yield from ("--ro-bind", program, program)
    for path in readable():
        if os.path.islink(path) and path.count("/") == 1:
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind", os.path.realpath(path), path)


def _hides(path: Path) -> tuple[str, ...]:
    """Return words that hide what is at a path."""
    if path.is_dir():
        return ("--tmpfs", str(path), "--remount-ro", str(path))
    return ("--ro-bind", os.devnull, str(path))


_PROGRAM = Path(__file__).with_name("sandlock_run.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


# Files of /proc that say what the machine is. Those of a process cannot be granted without those of all others.
_PROCESSES = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime", "version", "vmstat")


@dataclass(frozen=True, slots=True)
class Sandlock:
    """sandlock: Landlock and seccomp, for machines on which a process may make no namespaces.

    It needs Linux 6.12, and neither root nor a program. It holds commands that only look: Landlock grants whole folders
    and takes nothing back, so that nothing of a room could be kept from a command that writes there. No attribute of a
    file can be changed (`filters`).
    """

    name: str = "sandlock"
    levels: tuple[Level, ...] = ("look",)

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        plan = {
            "readable": [
                *readable(),
                *map(str, view.shown),
                *_DEVICES,
                *(f"/proc/{name}" for name in _PROCESSES),
                str(view.room),
            ],
            "writable": [str(view.temporary), "/dev/null"],
            "hidden": [str(path) for path in view.hidden if path.exists()],
            "environment": inside(view.environment, str(view.temporary)),
            "argv": [*argv],
        }
        return Launch(
            argv=(sys.executable, "-I", "-S", str(_PROGRAM)),
            environment={},
            bounds=BOUNDS,
            passed=(filters.attributes(), marshal.dumps(plan)),
        )


# Beside the folders that every system has: where macOS keeps libraries, frameworks and what developers install.
_SYSTEM = ("/System", "/Library", "/private/etc/ssl", "/private/var/db/timezone", "/opt/homebrew")


@dataclass(frozen=True, slots=True)
class Seatbelt:
    """seatbelt: the sandbox of macOS, through `sandbox-exec`, which takes a profile in words."""

    # The path of `sandbox-exec`.
    program: str
    name: str = "seatbelt"
    levels: tuple[Level, ...] = ("look", "work", "network")

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        temporary = str(view.temporary.resolve())
        words = (self.program, "-p", profile(view), *argv)
        return Launch(argv=words, environment=inside(view.environment, temporary), bounds=BOUNDS)


def profile(view: View) -> str:
    """Return the profile of a command: it allows nothing but what it names, and later rules override earlier ones."""
    room, temporary = view.room.resolve(), view.temporary.resolve()
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec* process-fork sysctl-read)",
        "(allow signal process-info* (target same-sandbox))",
        "(allow file-read-metadata)",
        _rule("allow file-read*", (*readable(), *_SYSTEM, *view.shown, room, temporary)),
        '(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero"))',
        '(allow file-read* (literal "/") (literal "/dev/random") (literal "/dev/urandom"))',
        _rule("allow file-write*", (temporary, *(() if view.level == "look" else (room,)))),
    ]
    if view.level == "network":
        lines.append("(allow network-outbound (remote ip)) (allow system-socket)")
    if kept := (*view.kept.files, *view.kept.leading):
        lines.append(_rule("deny file-write*", kept))
    if view.kept.repositories:  # no new one takes the place of one that leads git
        lines.append(_rule("deny file-write-unlink file-write-create", view.kept.repositories, "literal"))
    if view.hidden:
        lines.append(_rule("deny file-read* file-write*", view.hidden))
    return "\n".join(lines)


def _rule(words: str, paths: Iterable[str | Path], how: str = "subpath") -> str:
    quoted = (str(path).replace("\\", "\\\\").replace('"', '\\"') for path in paths)
    named = " ".join(f'({how} "{path}")' for path in quoted)
    return f"({words} {named})"
