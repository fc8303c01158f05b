"""Where a turn's processor time goes: `python -m bench profile` prints the functions that take most of it.

The event loop's thread alone is profiled; what the store's threads take is the difference given in the first rows.
"""

import contextlib
import cProfile
import os
import pstats
import site
import time
from pathlib import Path

from bench.figures import Row, Scale
from bench.load import at_once
from bench.model import APIS, ROOT, Model, raw_sdk
from bench.service import folder, hark

TITLE = "Profile: 10 sessions at once, own time per turn (profiling makes calls dearer: read it for order)"
_SESSIONS = 10
_SHOWN = 25


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Per provider: CPU by thread without the profiler, then own time by package and by function."""
    rows: list[Row] = []
    for api in APIS:
        async with contextlib.AsyncExitStack() as stack:
            raw = await stack.enter_async_context(raw_sdk(model, api))
            channel = await stack.enter_async_context(hark(stack.enter_context(folder()), model, api))
            turns = scale.turns * scale.rounds
            for ask in (raw, channel.ask):
                await at_once(ask, _SESSIONS, 50)
            cpu = time.process_time()
            await at_once(raw, _SESSIONS, turns)
            alone = 1000 * (time.process_time() - cpu) / turns
            cpu, loop = time.process_time(), time.thread_time()
            await at_once(channel.ask, _SESSIONS, turns)
            whole, loop = 1000 * (time.process_time() - cpu) / turns, 1000 * (time.thread_time() - loop) / turns
            rows.append(Row(what=f"{api}: all threads", unit="ms", hark=whole, raw=alone))
            rows.append(Row(what=f"{api}: event loop's thread", unit="ms", hark=loop))
            rows.append(Row(what=f"{api}: threads of the store", unit="ms", hark=whole - loop))
            profiler = cProfile.Profile()
            profiler.enable()
            await at_once(channel.ask, _SESSIONS, turns)
            profiler.disable()
            rows += _rows(api, pstats.Stats(profiler), turns)
    return rows


def _rows(api: str, stats: pstats.Stats, turns: int) -> list[Row]:
    functions: dict[str, float] = {}
    packages: dict[str, float] = {}
    for (file, line, name), (_, calls, own, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        place = _place(file)
        package = place.partition(os.sep)[0] if file != "~" else "built in"
        packages[package] = packages.get(package, 0.0) + own
        what = f"{place}:{line} {name}" if file != "~" else name
        functions[f"{what} ({calls / turns:.1f} calls)"] = own
    rows = []
    for found, shown in ((packages, 12), (functions, _SHOWN)):
        for what, own in sorted(found.items(), key=lambda item: -item[1])[:shown]:
            rows.append(Row(what=f"{api}: {what}", unit="ms", hark=1000 * own / turns))
    return rows


def _place(file: str) -> str:
    """A file by package, wherever it is installed."""
    for root in (*site.getsitepackages(), str(ROOT), str(Path(os.__file__).parent)):
        if file.startswith(root + os.sep):
            return file.removeprefix(root + os.sep)
    return file
