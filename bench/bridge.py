"""The bridge between a model's stream and everybody who reads it: microseconds of CPU per delta, at several sizes."""

from statistics import median

from agent.bridge import Bridge
from bench.figures import Row, Scale
from bench.load import fed
from bench.model import Model

TITLE = "Bridge: reasoning and markup out of the stream, deltas of 4 characters"
_PARAGRAPH = (
    "Some **words** of an answer, with `code` and a [link](https://example.org). It goes on: 3 < 4. "
    "<think>Hm, and then?</think>\n\n```python\nfor x in y:\n    print(x)\n```\n\n"
)
_DELTA = 4
_SIZES = (10_000, 100_000, 1_000_000)


async def measure(model: Model, scale: Scale) -> list[Row]:
    """One figure per size: were the work not linear, they would differ."""
    rows = []
    for size in _SIZES[: max(1, scale.rounds)]:
        text = (_PARAGRAPH * (size // len(_PARAGRAPH) + 1))[:size]
        bridges = (Bridge() for _ in range(scale.rounds))
        took = 1e6 * median(fed(bridge.feed, bridge.end, text, _DELTA) for bridge in bridges) * _DELTA / size
        rows.append(Row(what=f"{size:,} characters, per delta", unit="us", hark=took, target="10"))
    return rows
