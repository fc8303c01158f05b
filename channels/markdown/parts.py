"""Formatted text in parts that look the same, for platforms that take no entities."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from channels.markdown.entities import QUOTES, Entity, EntityType, Formatted, Style
from channels.markdown.writer import outer_first

Run = tuple[str, Sequence[Style]]


def parts_of(whole: Formatted) -> Iterator[tuple[Style | None, Style | None, list[Run]]]:
    """The text in parts that are in the same quote and in the same preformatted block, or in none.

    A quote has whole lines, with the indentation that formatted text leaves out of it.
    """
    found = [
        one._replace(start=whole.text.rfind("\n", 0, one.start) + 1) if one.style.type in QUOTES else one
        for one in whole.entities
    ]
    cuts = sorted({0, len(whole.text), *(place for one in found for place in one[:2])})
    waiting = deque(sorted(found, key=outer_first))
    active: list[Entity] = []
    runs: list[Run] = []
    for start, end in pairwise(cuts):
        active = [one for one in active if one.end > start]
        while waiting and waiting[0].start <= start:
            active.append(waiting.popleft())
        runs.append((whole.text[start:end], [style for _, _, style in active]))

    def part(run: Run) -> tuple[Style | None, Style | None]:
        quote = next((style for style in run[1] if style.type in QUOTES), None)
        return quote, next((style for style in run[1] if style.type is EntityType.PRE), None)

    for (quote, pre), inside in groupby(runs, key=part):
        yield quote, pre, list(inside)
