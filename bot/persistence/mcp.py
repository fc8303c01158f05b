"""Values of the store about MCP servers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PinnedTool:
    """A tool of a server, twice as JSON text."""

    server: str
    name: str
    # As an owner has looked at it; None: it is new.
    accepted: str | None
    # As the server shows it; None: it does not any more.
    shown: str | None

    @property
    def state(self) -> Literal["on", "new", "changed", "gone"]:
        """Whether it may be called ("on"), or why not."""
        if self.shown is None:
            return "gone"
        if self.accepted is None:
            return "new"
        return "on" if self.accepted == self.shown else "changed"


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """The process of a server, which may still run after a crash."""

    server: str
    pid: int
    started: str
