"""Tables as aligned lines of text, for a fixed-width font on a phone.

Widths are those of a terminal: East Asian text counts double. The renderer writes what is too wide as a list.
"""

from collections.abc import Callable, Iterable, Sequence

from markdown_it.token import Token

# Columns of a fixed-width font that a phone shows in one line.
_PHONE = 40


class Table:
    """The table that stands between these tokens. rows: the inline tokens of its cells, the header first."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.rows: list[list[Sequence[Token]]] = []
        self._aligned: list[str] = []
        for token in tokens:
            if token.type == "tr_open":
                self.rows.append([])
            elif token.type == "th_open":
                self._aligned.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
            elif token.type == "inline":
                self.rows[-1].append(token.children or [])

    def text(self, words: Callable[[Sequence[Token]], str]) -> str:
        """Header, a line, rows; empty when it is too wide, or more than half of it would be padding.

        words: turns the inline tokens of a cell into text.
        """
        rows = [[words(cell) for cell in row] for row in self.rows]
        columns = range(len(self._aligned))
        widths = [max(_width(row[column]) for row in rows) for column in columns]
        inked = sum(_width(cell) for row in rows for cell in row)
        if sum(widths) + 3 * len(widths) - 3 > _PHONE or len(rows) * (sum(widths) - _PHONE // 4) > 2 * inked:
            return ""
        lines = [
            " │ ".join(_pad(row[column], widths[column], self._aligned[column]) for column in columns).rstrip()
            for row in rows
        ]
        return "\n".join([lines[0], "─┼─".join("─" * width for width in widths), *lines[1:]])


def _width(text: str) -> int:
    from wcwidth import wcswidth  # its tables take time to import, and few messages have one

    width = wcswidth(text)
    return width if width >= 0 else len(text)


def _pad(text: str, width: int, aligned: str) -> str:
    room = width - _width(text)
    left = {"right": room, "center": room // 2}.get(aligned, 0)
    return " " * left + text + " " * (room - left)
