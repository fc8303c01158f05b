"""Which Hark a command is about: the one that is named, the one of this folder, else the one that was run last.

`hark run` notes in the user's state folder where it was started, so that the other commands find it from anywhere and
do not begin a second, empty Hark by accident.
"""

import contextlib
import os
import socket
from pathlib import Path

from bot.config.errors import ConfigError
from bot.config.load import find_file, load, state_of
from bot.config.model import Config, Source
from bot.gateway.unix_socket import SOCKET, address

# What a state directory has once there was a Hark.
DATABASE = "hark.db"
_NOTE = Path("hark", "last-run")


def find(path: Path | None) -> Config:
    """The configuration in `path`, HARK_CONFIG or ./config.yaml; else that of ./state, where there is one; else of
    the Hark that was run last, else the defaults. Of one with mistakes, beside a service that runs with it, the state
    and the mistakes: the shell need not have the service's variables. Raises ConfigError."""
    cwd = Path.cwd()
    file = find_file(path, os.environ, cwd)
    where, noted = _last_run()
    if file is None and not (cwd / "state" / DATABASE).exists() and where.exists():
        path, cwd = (where, cwd) if where.is_file() else (None, where)
        file = path
    try:
        return load(path, os.environ, cwd)
    except ConfigError as error:
        named = state_of(file, os.environ) if file else None
        for state in (named, noted if where == (file or cwd) else None):
            if state is not None and answers(state):
                return Config(state=state).of(Source(mistakes=error.problems))
        raise


def is_begun(config: Config) -> bool:
    """Whether a Hark has lived in this state directory."""
    return (config.state / DATABASE).exists()


def beginning(config: Config) -> str:
    """The sentence for whoever begins a new one, perhaps without meaning to."""
    return f"A new Hark begins in {config.state}."


def note(path: Path | None, state: Path) -> None:
    """Remember that `hark run` was started with this configuration, or in this folder without any."""
    cwd = Path.cwd()
    file = _note()
    with contextlib.suppress(OSError):  # a convenience
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(b"\0".join(map(os.fsencode, (find_file(path, os.environ, cwd) or cwd, state))))
        fresh.replace(file)


def _last_run() -> tuple[Path, Path]:
    """Configuration file, or folder, and state directory; paths that cannot exist where nothing is noted."""
    try:
        where, state = _note().read_bytes().split(b"\0")
        return Path(os.fsdecode(where)), Path(os.fsdecode(state))
    except (OSError, ValueError):
        return Path(os.devnull, "none"), Path(os.devnull)


def answers(state: Path) -> bool:
    """Whether a service listens in this state directory."""
    try:
        with address(state / SOCKET) as where, socket.socket(socket.AF_UNIX) as tried:
            tried.connect(where)
    except OSError:
        return False
    return True


def _note() -> Path:
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (given if given.is_absolute() else Path(os.path.expanduser("~/.local/state"))) / _NOTE
