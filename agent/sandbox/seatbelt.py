"""seatbelt: the sandbox of macOS, through `sandbox-exec`, which takes a profile in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.base import BOUNDS, View, inside, readable
from agent.sandbox.launch import Launch

# Beside the folders that every system has: where macOS keeps libraries, frameworks and what developers install.
_SYSTEM = ("/System", "/Library", "/private/etc/ssl", "/private/var/db/timezone", "/opt/homebrew")


@dataclass(frozen=True, slots=True)
class Seatbelt:
    """program: the path of `sandbox-exec`."""

    program: str
    name: str = "seatbelt"

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        temporary = str(view.temporary.resolve())
        words = (self.program, "-p", profile(view), *argv)
        return Launch(argv=words, environment=inside(view.environment, temporary), bounds=BOUNDS)


def profile(view: View) -> str:
    """What a command may do, in the language of profiles: nothing but what is named; of two words the later counts."""
    room, temporary = view.room.resolve(), view.temporary.resolve()
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec* process-fork sysctl-read)",
        "(allow signal process-info* (target same-sandbox))",
        "(allow file-read-metadata)",
        _rule("allow file-read*", (*readable(), *_SYSTEM, room, temporary)),
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
