"""CPU of cutting an answer into blocks: microseconds per delta, and whether ten times the text takes ten times as long.

Deltas are five characters long, as words are. No model and no channel takes part.
"""

from bench.figures import Row, Scale
from bench.load import fed
from bench.model import Model
from channels.stream.chunker import Chunker

TITLE = "CPU of cutting an answer into blocks (best of several tries)"
_DELTA = 5
_PROSE = "Some **bold words** and `code` with a [link](https://example.org/a) in it. " * 6 + "\n\n- one\n- two\n\n"
_TEXTS = {
    "prose": _PROSE,
    "one line without a space": "x" * 100,
    "code": "line = of_code(1)\n",
    "table": "| some | words of **a table** |\n",
    "backticks": "`" * 100,
}
_BEGINS = {"code": "```py\n", "table": "| a | b |\n|-|-|\n"}


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Per kind of text a delta, and the time of ten times the text: 10 where it is linear."""
    most = 10_000 * scale.turns
    rows = [Row(what="prose: written when the first block goes out", unit="characters", hark=_first(_PROSE * 10))]
    for name, text in _TEXTS.items():
        whole = _BEGINS.get(name, "") + text * (most // len(text))
        short, long = (min(_cut(whole[:size]) for _ in range(2)) for size in (most // 10, most))
        rows.append(Row(what=f"{name}: delta", unit="µs", hark=1e6 * long * _DELTA / most))
        rows.append(Row(what=f"{name}: ten times the text", unit="×", hark=long / short))
    return rows


def _first(text: str) -> float:
    chunker, at = Chunker(800, 1200, 4000, joined=True), 0
    while not chunker.feed(text[at : at + _DELTA]):
        at += _DELTA
    return at + _DELTA


def _cut(text: str) -> float:
    chunker = Chunker(800, 1200, 4000, joined=True)
    return fed(chunker.feed, chunker.end, text, _DELTA)
