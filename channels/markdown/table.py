"""Tables as aligned lines of text, for a fixed-width font. Widths are those of a terminal: East Asian text counts
double. The renderer feeds it the tokens between a table's beginning and end."""

from collections.abc import Callable, Sequence

from markdown_it.token import Token
from wcwidth import wcswidth


class Table:
    """Collects the cells of one table."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._aligned: list[str] = []

    def take(self, token: Token, words: Callable[[Sequence[Token]], str]) -> None:
        """The next token. words: turns the inline tokens of a cell into text."""
        if token.type == "tr_open":
            self._rows.append([])
        elif token.type == "th_open":
            self._aligned.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        elif token.type == "inline":
            self._rows[-1].append(words(token.children or []))

    def text(self) -> str:
        """The table: header, a line, rows."""
        columns = range(len(self._aligned))
        widths = [max(_width(row[column]) for row in self._rows) for column in columns]
        lines = [
            " │ ".join(_pad(row[column], widths[column], self._aligned[column]) for column in columns).rstrip()
            for row in self._rows
        ]
        return "\n".join([lines[0], "─┼─".join("─" * width for width in widths), *lines[1:]])


def _width(text: str) -> int:
    width = wcswidth(text)
    return width if width >= 0 else len(text)


def _pad(text: str, width: int, aligned: str) -> str:
    room = width - _width(text)
    left = {"right": room, "center": room // 2}.get(aligned, 0)
    return " " * left + text + " " * (room - left)
