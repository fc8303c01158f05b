"""Builds formatted text piece by piece: line breaks on demand, list markers, and the runs of each style.

The renderer tells it what is there; what is adjacent in the same style becomes one entity.
"""

from collections.abc import Iterable

from channels.markdown.entities import Entity, EntityType, Formatted, Style


class TextWriter:
    """Collects text; `finish` gives it with its entities.

    marker: what the next line begins with, once (bullet or number of a list item); indent: what other lines begin
    with; quote: the block quote that is open.
    """

    def __init__(self) -> None:
        self.marker = ""
        self.indent = ""
        self.quote: Style | None = None
        self._parts: list[str] = []
        self._at = 0
        self._breaks = 0
        self._written_in: Style | None = None
        self._runs: dict[Style, list[tuple[int, int]]] = {}

    def need(self, breaks: int) -> None:
        """At least so many line breaks before what comes next; none at the very start."""
        if self._at:
            self._breaks = max(self._breaks, breaks)

    def write(self, text: str, styles: Iterable[Style] = ()) -> None:
        """Add text in these styles, after the breaks that are due and the marker or indentation of its line."""
        if self._break() or self.marker:
            lead = self.marker or self.indent
            self._add(lead if text else lead.rstrip())
            self.marker = ""
        self._add(text, styles)

    def write_block(self, text: str, style: Style) -> None:
        """Add lines that keep their own indentation, below the marker of the item they stand in."""
        if self.marker:
            self.write("")
            self._breaks = 1
        self._break()
        self._add(text, (style,))

    def line(self, styles: Iterable[Style]) -> None:
        """A line break within a paragraph; none where its first line is still empty."""
        if self.marker or self._breaks or not self._at:
            return
        self._add("\n" + self.indent, styles)

    def finish(self) -> Formatted:
        """The text and its entities."""
        found = (Entity(start, end, style) for style, runs in self._runs.items() for start, end in runs)
        return formatted("".join(self._parts), found)

    def _break(self) -> bool:
        """Write the breaks that are due; whether a line begins."""
        begins = not self._at or self._breaks > 0
        # A break inside a quote belongs to it, one between two quotes does not.
        quote, self.quote = self.quote, self.quote if self.quote == self._written_in else None
        self._add("\n" * self._breaks)
        self.quote, self._breaks = quote, 0
        return begins

    def _add(self, text: str, styles: Iterable[Style] = ()) -> None:
        if not text:
            return
        start, self._at = self._at, self._at + len(text)
        self._parts.append(text)
        self._written_in = self.quote
        for style in (*styles, self.quote) if self.quote else styles:
            runs = self._runs.setdefault(style, [])
            if runs and runs[-1][1] == start:
                runs[-1] = (runs[-1][0], self._at)
            else:
                runs.append((start, self._at))


def formatted(text: str, entities: Iterable[Entity]) -> Formatted:
    """Text and its entities in their order, white space at their edges cut off."""
    found = list(entities)
    code = {start for start, _, style in found if style.type is EntityType.PRE}
    trimmed = (Entity(*_trim(text, start, end, start in code), style) for start, end, style in found)
    return Formatted(text, tuple(sorted((one for one in trimmed if one.start < one.end), key=outer_first)))


def outer_first(entity: Entity) -> tuple[int, int]:
    """What entities are sorted by."""
    return entity.start, -entity.end


def _trim(text: str, start: int, end: int, begins_with_code: bool) -> tuple[int, int]:
    part = text[start:end]
    end = start + len(part.rstrip())
    if not begins_with_code:
        start += len(part) - len(part.lstrip())
    return start, end
