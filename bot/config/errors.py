"""What is wrong with a configuration, as values: one `Problem` per mistake, all of them in one `ConfigError`.

Standard library only: the command line imports this module before it knows what it will do.
"""

from dataclasses import dataclass
from pathlib import Path

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """Write a key path as people do: `tools.allow[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a configuration."""

    file: str
    # Counted from 1; None when nothing was written that could have a line.
    line: int | None
    key: KeyPath
    text: str
    # The cause is an environment variable without a value here, which the service may have.
    unset: bool = False

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, dotted(self.key), self.text) if part)


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds every mistake, in the order of the file."""

    # The files that it was read from, as far as they are known.
    files: tuple[Path, ...] = ()

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)
