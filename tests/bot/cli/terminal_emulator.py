"""A small terminal with a program in it: enough of a VT100 to see what a person would see, scrolled lines included.

Cells are one character each. What the program writes is applied as it comes; an unknown sequence fails the test.
"""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.forked import PATIENCE, fork

_TOKEN = re.compile(
    r"\x1b\[([?>]?)([0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b([=>78])|\x1b|.", re.DOTALL
)
_PARTIAL = re.compile(r"\x1b(?:\[[?>]?[0-9;]*|\][^\x07]*)?\Z")


class Emulator:
    """A screen of rows by columns and what was scrolled off its top."""

    def __init__(self, rows: int, columns: int, answer: Callable[[str], None]) -> None:
        self.rows, self.columns = rows, columns
        self.scrolled: list[str] = []
        self._lines = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._wrap = True
        self._rest = ""
        self._answer = answer

    @property
    def lines(self) -> list[str]:
        """Everything that was printed and is on the screen, without the empty end."""
        found = self.scrolled + ["".join(line).rstrip() for line in self._lines]
        while found and not found[-1]:
            found.pop()
        return found

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def feed(self, data: str) -> None:
        """Apply output of the program."""
        data = self._rest + data
        partial = _PARTIAL.search(data)
        self._rest = data[partial.start() :] if partial else ""
        for token in _TOKEN.finditer(data[: len(data) - len(self._rest)]):
            if token[3]:
                self._control(token[1], token[2], token[3])
            elif len(token[0]) == 1:
                self._character(token[0])

    def _character(self, character: str) -> None:
        if character == "\n":
            self._down()
        elif character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(self._column - 1, 0)
        elif character >= " ":
            if self._column >= self.columns:
                if not self._wrap:
                    return
                self._column = 0
                self._down()
            self._lines[self._row][self._column] = character
            self._column += 1

    def _down(self) -> None:
        if self._row + 1 < self.rows:
            self._row += 1
            return
        self.scrolled.append("".join(self._lines.pop(0)).rstrip())
        self._lines.append([" "] * self.columns)

    def _control(self, mark: str, numbers: str, final: str) -> None:
        if mark:
            if numbers == "7":
                self._wrap = final == "h"
            return
        count = int(numbers.split(";")[0] or 0)
        match final:
            case "A":
                self._row = max(self._row - max(count, 1), 0)
            case "B":
                self._row = min(self._row + max(count, 1), self.rows - 1)
            case "C":
                self._column = min(self._column + max(count, 1), self.columns - 1)
            case "D":
                self._column = max(self._column - max(count, 1), 0)
            case "J":
                assert count == 0, "only what is below is erased, never what was printed"
                self._erase_line()
                for row in range(self._row + 1, self.rows):
                    self._lines[row] = [" "] * self.columns
            case "K":
                self._erase_line()
            case "n":
                self._answer(f"\x1b[{self._row + 1};{self._column + 1}R")
            case "m" | "q":
                pass
            case _:
                raise AssertionError(f"the program wrote an unknown sequence: ESC [ {numbers} {final}")

    def _erase_line(self) -> None:
        self._lines[self._row][self._column :] = [" "] * (self.columns - self._column)


class Program:
    """`hark` in a terminal of its own; blocks: see `fork`. Use as a context manager; leaving it ends the program."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        rows: int = 24,
        columns: int = 80,
        *,
        blocks: int | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environ = {**environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self._process = fork(arguments, folder, environ, [slave] * 3, terminal=True, blocks=blocks)
        os.close(slave)
        os.set_blocking(self._master, False)
        self.screen = Emulator(rows, columns, self.type)
        self._changed = asyncio.Event()
        self._over = False

    async def __aenter__(self) -> "Program":
        asyncio.get_running_loop().add_reader(self._master, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.hang_up()
        self._process.kill()
        await asyncio.to_thread(self._process.join)

    @property
    def pid(self) -> int:
        """Of the program."""
        assert self._process.pid is not None
        return self._process.pid

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def send_signal(self, number: signal.Signals) -> None:
        """As another program does."""
        os.kill(self.pid, number)

    def modes(self) -> list[object]:
        """How the kernel treats what is typed."""
        return termios.tcgetattr(self._master)

    def hang_up(self) -> None:
        """Close the terminal's window."""
        if self._master >= 0:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = -1

    async def until(self, wanted: str | Callable[[str], bool]) -> str:
        """Everything on the screen once it holds a text or fulfils a condition."""
        matches = wanted if callable(wanted) else lambda shown: wanted in shown
        try:
            async with asyncio.timeout(PATIENCE):
                while not matches(self.screen.text):
                    assert not self._over, f"the program ended; it showed:\n{self.screen.text}"
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"never shown: {wanted!r}; but:\n{self.screen.text}") from None
        return self.screen.text

    async def exit_code(self) -> int:
        """The program's exit code, once it has ended by itself."""
        await asyncio.to_thread(self._process.join, PATIENCE)
        assert self._process.exitcode is not None, f"it did not end within {PATIENCE:g} s"
        return self._process.exitcode

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65_536)
        except BlockingIOError:
            return
        except OSError:  # nobody has the other end any more
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
            self._over = True
        self.screen.feed(data.decode(errors="replace"))
        self._changed.set()
