"""Where the words of a line lead: which file is run, and which folder is entered."""

import os
from pathlib import Path


def plain_folder(folder: str, path: str) -> str | None:
    """The folder that a path leads to from another, if it is there, and no link is on the way to it."""
    full = os.path.normpath(os.path.join(folder, path))
    try:
        plain = os.path.realpath(full) == full == os.path.realpath(os.path.join(folder, path))
        return full if plain and os.path.isdir(full) and os.access(full, os.X_OK) else None
    except (OSError, ValueError):
        return None


class Binaries:
    """Finds what is run, for one workspace and one PATH."""

    def __init__(self, workspace: Path, path: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._path = path.split(os.pathsep)

    def found(self, name: str, folder: str) -> str | None:
        """The path of the file that is run by this name in a folder; None: there is none, or it cannot be told."""
        if "/" in name and ".." in name:
            return None
        for entry in ("",) if "/" in name else self._path:
            candidate = os.path.join(folder, entry, name)
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return os.path.normpath(candidate) if "/" in name else candidate
        return None

    def named(self, name: str) -> str | None:
        """The file that the bare name of a rule means, which none of the workspace is."""
        found = None if "/" in name else self.found(name, "/")
        return found if found and os.path.isabs(found) and not self._in_workspace(found) else None

    def _in_workspace(self, path: str) -> bool:
        """Whether it is a file of the workspace, all links followed."""
        return os.path.realpath(path).startswith(self._workspace.rstrip("/") + "/")
