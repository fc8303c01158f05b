"""What the parts of the benchmark give back, how samples become figures, and the table that is printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. raw: the SDK alone on the same server. target: what it should not be worse than.

    nanobot, openclaw: what these two took for the same, measured from outside; medians unless it says p95.
    """

    what: str
    unit: str
    hark: float | None
    raw: float | None = None
    target: str = ""
    nanobot: str = ""
    openclaw: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured.

    rounds: how often each figure is taken, Hark and the raw call in turn. turns: samples of a round. sessions, ages
    (in transcript lines): at which sizes. messages: of the memory figure.
    """

    rounds: int
    turns: int
    sessions: Sequence[int]
    ages: Sequence[int]
    messages: int


FULL = Scale(rounds=3, turns=100, sessions=(1, 100, 500), ages=(10, 1_000, 10_000), messages=10_000)
QUICK = Scale(rounds=1, turns=30, sessions=(1, 50), ages=(10, 1_000), messages=200)
SMALLEST = Scale(rounds=1, turns=2, sessions=(1, 2), ages=(10, 20), messages=4)


def quantile(samples: Sequence[float], part: float) -> float:
    """The value that `part` of the samples do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def mid(rounds: Sequence[Sequence[float]], part: float) -> float:
    """The median, over the rounds, of a quantile: one slow round of a busy machine does not show."""
    return median(quantile(samples, part) for samples in rounds)


def show(console: Console, title: str, rows: Sequence[Row]) -> None:
    """Print the figures of one part."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("figure", min_width=50)
    for name in ("Hark", "raw SDK", "unit", "target", "nanobot", "OpenClaw"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    for row in rows:
        table.add_row(row.what, _number(row.hark), _number(row.raw), row.unit, row.target, row.nanobot, row.openclaw)
    console.print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
