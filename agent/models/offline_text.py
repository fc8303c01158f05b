"""Long Markdown for the offline model: deterministic, and with everything a renderer and a chunker must cope with."""

import itertools
import re
from collections.abc import Iterator

_WORDS = tuple(
    re.findall(
        r"\w+",
        "the harbour wakes before the town and every boat that leaves it carries a lamp, a rope and a story that nobody"
        " has finished, while the tide counts slowly under the pier and the gulls argue about the weather",
    )
)
_CODE = """```python title="tide.py"
def tide(hour: int) -> float:
    \"\"\"Height of the water, in metres; `hour` counts from midnight.\"\"\"
    return 2.5 + 1.5 * (hour % 12 - 6) / 6  # not for navigation

    # an empty line above, and a fence inside: ~~~
```"""
_TABLE = """| hour | height | mood |
| ---: | :----: | :--- |
| 6 | 1.0 m | *quiet* |
| 12 | 2.5 m | **awake** |
| 18 | 4.0 m | `loud \\| proud` |"""
_LIST = """- a lamp 🏮
- a rope, with
  - one knot
  - two knots
- a story 👩‍👩‍👧‍👦

1. cast off
2. *look back*
3. ~~return~~ sail on"""
_QUOTE = "> The sea has no edge 🌊, said the pilot.\n> See [the chart](https://example.org/chart?a=1&b=2)."


def markdown(words: int) -> str:
    """A document of about so many words (at least one section; white space separates words)."""
    blocks: list[str] = []
    count = 0
    for block in _blocks():
        blocks.append(block)
        count += len(block.split())
        if count >= words:
            break
    return "\n\n".join(blocks)


def _blocks() -> Iterator[str]:
    specials = itertools.cycle((_LIST, _CODE, _TABLE, _QUOTE))
    for number in itertools.count(1):
        yield f"{'#' if number == 1 else '##'} Part {number}: the harbour 🚢"
        yield _paragraph(number, 60)
        yield next(specials)
        yield _paragraph(number + 1, 45)


def _paragraph(start: int, length: int) -> str:
    """Sentences of twelve words with some emphasis; which words depends on where it starts."""
    sentences = []
    for first in range(0, length, 12):
        words = [_WORDS[(start * 7 + first + place) % len(_WORDS)] for place in range(min(12, length - first))]
        words[len(words) // 2] = f"**{words[len(words) // 2]}**"
        sentences.append(" ".join(words).capitalize() + ".")
    return " ".join(sentences)
