"""Which Hark a command is about: the one that is named, the one of this folder, else the one that was run last.

`hark run` notes in the user's state folder where it was started, so that the other commands find it from anywhere and
do not begin a second, empty Hark by accident.
"""

import contextlib
import os
from pathlib import Path

from bot.config.load import find_file, load
from bot.config.model import Config

DATABASE = "hark.db"
"""What a state directory has once there was a Hark."""
_NOTE = Path("hark", "last-run")


def find(path: Path | None) -> Config:
    """The configuration in `path`, HARK_CONFIG or ./config.yaml; else that of ./state, where there is one; else of
    the Hark that was run last, else the defaults. Raises ConfigError."""
    cwd = Path.cwd()
    if find_file(path, os.environ, cwd) is None and not is_begun(load(None, os.environ, cwd)):
        last = _last_run()
        if last is not None and last.is_dir():
            return load(None, {**os.environ, "HARK_CONFIG": ""}, last)
        if last is not None and last.is_file():
            return load(last, os.environ, cwd)
    return load(path, os.environ, cwd)


def is_begun(config: Config) -> bool:
    """Whether a Hark has lived in this state directory."""
    return (config.state / DATABASE).exists()


def beginning(config: Config) -> str:
    """The sentence for whoever begins a new one, perhaps without meaning to."""
    return f"A new Hark begins in {config.state}."


def note(path: Path | None) -> None:
    """Remember that `hark run` was started with this configuration, or in this folder without any."""
    cwd = Path.cwd()
    file = _note()
    with contextlib.suppress(OSError):  # a convenience
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(os.fsencode(find_file(path, os.environ, cwd) or cwd))
        fresh.replace(file)


def _last_run() -> Path | None:
    try:
        return Path(os.fsdecode(_note().read_bytes()))
    except (OSError, ValueError):
        return None


def _note() -> Path:
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (given if given.is_absolute() else Path(os.path.expanduser("~/.local/state"))) / _NOTE
