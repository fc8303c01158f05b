"""What is started behind a gate: a program with its words and variables, and the bounds that are set for it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

_GATE = Path(__file__).with_name("gate.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Of one command with all that it begins. processes: at once; memory: bytes of all of them together; file: bytes
    that a file may grow to; disk: bytes by which what is free on the disk of its folder may shrink meanwhile."""

    processes: int
    memory: int
    file: int
    disk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is to be started. argv: absolute path of a program, and its words. environment: all variables it gets.

    bounds: none where a person has allowed it on this machine as it is. passed: bytes that it finds in descriptor 3.
    temporary: a folder made for it, to be removed after its end.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    bounds: Bounds | None = None
    passed: bytes = b""
    temporary: Path | None = None

    def plan(self) -> bytes:
        """What its gate is told, a line; a second, empty one opens the gate."""
        told = {
            "argv": self.argv,
            "environment": dict(self.environment),
            "bounds": asdict(self.bounds) if self.bounds else None,
            "passed": self.passed.hex(),
        }
        return json.dumps(told).encode() + b"\n"


def gate(given: int) -> list[str]:
    """The words that start a gate. given: the descriptor, passed on to it, of what its command reads."""
    return [sys.executable, "-I", "-S", str(_GATE), str(given)]
