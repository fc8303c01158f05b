"""How this service holds commands in: by which sandbox, and what of its own it keeps from them."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.sandbox.base import Kept, Sandbox, View, kept_of
from agent.sandbox.launch import Launch
from agent.shell import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """sandbox: the one that was proved; None: commands run on this machine as it is. why: the reason, for people.

    hidden: what no command may see, wherever it lies. kept: names of files of a room that no command may change.
    temporary: a folder, made when it is needed, in which each command gets one of its own.
    """

    sandbox: Sandbox | None
    why: str
    hidden: tuple[Path, ...] = ()
    kept: tuple[str, ...] = ()
    temporary: Path = Path(tempfile.gettempdir())

    @property
    def name(self) -> str:
        """As the configuration and people have it."""
        return self.sandbox.name if self.sandbox else "none"

    @property
    def shown(self) -> str:
        """What is in force, and why, for people."""
        return f"{self.name}: {self.why}"

    def launch(
        self, level: Level, room: Path, folder: Path, environment: Mapping[str, str], argv: tuple[str, ...]
    ) -> Launch:
        """What starts `argv` at a level, in a folder of a room. Blocking. Raises OSError with a sentence."""
        if level == "host" or self.sandbox is None:
            return Launch(argv=argv, environment=environment)
        kept = Kept() if level == "look" else kept_of(room, self.kept)
        self.temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(dir=self.temporary))
        view = View(
            level=level,
            room=room,
            folder=folder,
            environment=environment,
            temporary=own,
            kept=kept,
            hidden=self.hidden,
        )
        return replace(self.sandbox.launch(view, argv), temporary=own)
