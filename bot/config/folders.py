"""Which folder the agent may work in: one that holds nothing but its work.

Whatever is in the workspace the agent's tools can read and change. So it must not be, and not lie above, what belongs
to the person, the system or the service; nor lie where these take every file for their own. Folders are compared as
the disk has them, so that no link and no other spelling leads around it.
"""

import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# The keys that name folders.
FOLDERS = ("workspace", "state")
# The service's code: the folder of its packages, be it a checkout or an environment's.
_CODE = Path(__file__).resolve().parents[2]
# What no other rule finds of a system's own folders, on Linux and macOS. What lies in them may well be a workspace.
_SYSTEM = "/boot /dev /home /lib /opt /root /run /tmp /var /Applications /Library /System /Users /private/var"
# Whatever lies in these is read or run by the system.
_READ_BY_SYSTEM = ("/boot", "/etc", "/proc", "/sys")


def folder_conflicts(
    workspace: Path, state: Path, file: Path | None, *, state_named: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the folders, which are absolute: the key to point at, and the sentence.

    file: that of the configuration, if there is one. state_named: it names the state folder.
    """
    problem = _problem(workspace)
    if problem is None and _holds(workspace, state) and not state_named:
        problem = "holds the state folder, which is for the service alone"
    elif problem is None and (_holds(workspace, state) or _holds(state, workspace)):
        yield "state", "must be apart from workspace, neither inside the other: it is for the service alone"
    elif problem is None and file is not None and _holds(workspace, file):
        problem = "holds this configuration file, which the agent could then change"
    if problem is not None:
        yield "workspace", f"found `{workspace}`, which {problem}; {allowed('workspace')}"


def allowed(key: str) -> str:
    """What the value of such a key may be."""
    return f"allowed: a folder for it alone, such as ./{key}"


def _problem(workspace: Path) -> str | None:
    """Why this folder can be nobody's workspace, as the end of a sentence; None when it can."""
    for kept, what in _kept():
        if _holds(workspace, kept):
            return f"is {what}" if _holds(kept, workspace) else f"holds {what}, {kept}"
    if any(_holds(Path(folder), workspace) for folder in _READ_BY_SYSTEM):
        return "lies where the system keeps what it reads and runs"
    if any(_holds(_CODE / package, workspace) for package in ("agent", "bot", "channels", "heartbeat")):
        return "lies in the code of Hark"
    return None


def _kept() -> Iterator[tuple[Path, str]]:
    """What the workspace must not hold, and what to call it."""
    yield Path(os.path.expanduser("~")), "the home folder"
    with suppress(KeyError):  # in containers users need no name
        yield Path(pwd.getpwuid(os.getuid()).pw_dir), "the home folder"
    yield from ((Path(folder), "a folder of programs") for folder in (*os.get_exec_path(), sys.base_prefix))
    yield from ((Path(folder), "the code of Hark") for folder in (_CODE, sys.prefix))
    yield from ((Path(folder), "a folder of the system") for folder in (*_SYSTEM.split(), *_READ_BY_SYSTEM))


def _holds(folder: Path, inner: Path) -> bool:
    """Whether the second is the first, or lies in it."""
    inner = inner.resolve()
    return any(_is_same(folder, one) for one in (inner, *inner.parents))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False
