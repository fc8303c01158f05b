"""`python -m bench [--quick] [part …]`: prints the figures of the parts named, of all without a name."""

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module

from rich.console import Console

from bench.figures import FULL, QUICK, SMALLEST, Scale, show
from bench.model import model_server

PARTS = (
    *("latency", "throughput", "age", "commits", "start", "model_cpu", "bridge", "chunker", "beats", "asking"),
    *("acceptance", "limit", "road", "context"),
)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; or profile")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes, half a minute")
    parser.add_argument("--smallest", action="store_true", help="the least there is, to see that everything runs")
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - {*PARTS, "profile"}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    scale = SMALLEST if options.smallest else QUICK if options.quick else FULL
    asyncio.run(run(options.parts or PARTS, scale, _console()))


def _console() -> Console:
    """As wide as the terminal; where there is none, as wide as the tables."""
    return Console() if sys.stdout.isatty() else Console(width=150)


async def run(parts: Sequence[str], scale: Scale, console: Console) -> None:
    """Measure the parts one after the other; each table is printed when it is complete."""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    load = os.getloadavg()[0]
    console.print(f"{machine}; load before the start {load:.1f}. Medians of {scale.rounds} rounds.")
    if load > 0.5:
        console.print("The machine is busy with something else: believe only ratios to the raw call.")
    async with model_server() as model:
        for name in parts:
            part = import_module(f"bench.{name}")
            await model.answer_with()
            show(console, part.TITLE, await part.measure(model, scale))


if __name__ == "__main__":
    main(sys.argv[1:])
