"""What is wrong with a configuration, as values: one `Problem` per mistake, all of them in one `ConfigError`.

Standard library only: the command line imports this module before it knows what it will do.
"""

from dataclasses import dataclass

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """Write a key path as people do: `tools.allow[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. `line` counts from 1 and is None when the mistake has no line (nothing was written).

    unset: a variable of the environment has no value here, which others may have been given.
    """

    file: str
    line: int | None
    key: KeyPath
    text: str
    unset: bool = False

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, dotted(self.key), self.text) if part)


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds every mistake, in the order of the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)
