"""The bridge between a model's stream and everybody who reads it: microseconds of CPU per delta, at several sizes."""

import time
from statistics import median

from agent.bridge import Bridge
from bench.figures import Row, Scale
from bench.model import Model

TITLE = "Bridge: reasoning and markup out of the stream, deltas of 4 characters"
_PARAGRAPH = (
    "Some **words** of an answer, with `code` and a [link](https://example.org). It goes on: 3 < 4. "
    "<think>Hm, and then?</think>\n\n```python\nfor x in y:\n    print(x)\n```\n\n"
)
_SIZES = (10_000, 100_000, 1_000_000)


async def measure(model: Model, scale: Scale) -> list[Row]:
    """One figure per size: were the work not linear, they would differ."""
    rows = []
    for size in _SIZES[: max(1, scale.rounds)]:
        text = (_PARAGRAPH * (size // len(_PARAGRAPH) + 1))[:size]
        deltas = [text[at : at + 4] for at in range(0, size, 4)]
        took = median(_once(deltas) for _ in range(scale.rounds))
        rows.append(Row(what=f"{size:,} characters, per delta", unit="us", hark=took, target="10"))
    return rows


def _once(deltas: list[str]) -> float:
    bridge, began = Bridge(), time.process_time()
    for delta in deltas:
        bridge.feed(delta)
    bridge.end()
    return 1e6 * (time.process_time() - began) / len(deltas)
