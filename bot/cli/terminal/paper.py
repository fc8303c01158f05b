"""Answers written one after the other where there is no screen, as they were written by the model."""

from collections.abc import Sequence
from typing import TextIO

from bot.cli.terminal.safe_text import clean
from bot.cli.terminal.view import Piece


class Paper:
    """White space is written when something follows it, so an answer neither begins nor ends with an empty line.

    gap: what stands between two answers.
    """

    def __init__(self, out: TextIO, gap: str = "") -> None:
        self._out = out
        self._gap = gap
        self._away = False
        self._blank = ""
        self._begun = False
        self._any = False

    def show(self, pieces: Sequence[Piece]) -> None:
        """Write words of the model or of the service as they are, each an answer."""
        for piece in pieces:
            if piece.said and piece.away and not self._away:
                self._away = True
                self._out.write("While you were away:\n")
            self.write(piece.said)
            self.end()

    def write(self, text: str) -> None:
        """More of an answer, or the beginning of one."""
        waiting = self._blank + clean(text)
        shown = waiting.rstrip()
        self._blank = waiting[len(shown) :]
        if shown:
            if not self._begun:
                shown = (self._gap if self._any else "") + shown.lstrip("\n")
            self._begun = self._any = True
            self._out.write(shown)
            self._out.flush()

    def end(self) -> None:
        """What comes next is another answer."""
        if self._begun:
            self._out.write("\n")
            self._out.flush()
        self._blank, self._begun = "", False
