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

# The file in a state directory that a service has made.
DATABASE = "hark.db"
_NOTE = Path("hark", "last-run")


def find(path: Path | None) -> Config:
    """The configuration in `path`, HARK_CONFIG or ./config.yaml, else of ./state, else of the last `hark run`, else the
    defaults.

    When it has mistakes and a service runs with it (the shell need not have the service's variables), only its state
    directory and the mistakes are returned. Raises ConfigError.
    """
    path, cwd = located(path)
    file, (where, noted) = find_file(path, os.environ, cwd), _last_run()
    try:
        return load(path, os.environ, cwd)
    except ConfigError as error:
        named = state_of(file, os.environ) if file else None
        for state in (named, noted if where == (file or cwd) else None):
            if state is not None and answers(state):
                return Config(state=state).of(Source(mistakes=error.problems))
        raise


def located(path: Path | None) -> tuple[Path | None, Path]:
    """The file that is read, if one is named or the last `run` had one, and the folder in which it is looked for."""
    cwd, (where, _) = Path.cwd(), _last_run()
    if find_file(path, os.environ, cwd) or (cwd / "state" / DATABASE).exists() or not where.exists():
        return path, cwd
    return (where, cwd) if where.is_file() else (None, where)


def is_begun(config: Config) -> bool:
    """Whether a service has used this state directory before."""
    return (config.state / DATABASE).exists()


def beginning(config: Config) -> str:
    """The sentence that tells of a new state directory, which may not be what was meant."""
    return f"A new Hark begins in {config.state}."


def note(path: Path | None, state: Path) -> None:
    """Store that `hark run` was started with this configuration, or in this folder without any."""
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
