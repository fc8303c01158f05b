"""What is known of a server before it is reached."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.base import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server is reached. Its representation shows no secret."""

    name: str
    # The process to start; None: the server speaks HTTP.
    launch: Launch | None
    url: str
    headers: Mapping[str, str]
    # How long a call may take.
    timeout_seconds: float
    # The file that keeps what a login gave; it need not be there.
    tokens: Path

    def __repr__(self) -> str:
        return f"Settings({self.name})"
