"""Ends the largest command while the machine is about to run out of memory.

Bounds of one command do not add up to the machine's memory, and not every machine lets the kernel hold them (`cgroup`).
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agent.tools.leftovers import memory_below

# Seconds between looks while commands run.
EVERY = 0.25
# How many times as long to wait after a command was ended, until its memory is free.
_RELEASED = 4
# The part of all memory that must be available.
_LEAST = 0.05
MEMINFO = Path("/proc/meminfo")
WHY = "the machine was about to run out of memory, and this command held most of it"


class Command(Protocol):
    """A command that runs."""

    pid: int

    def kill(self, why: str) -> None:
        """Kill all its processes."""


_commands = dict[Command, None]()
_timers = dict[asyncio.AbstractEventLoop, asyncio.TimerHandle]()


def watch(command: Command) -> None:
    """Look at the machine's memory while a command runs."""
    _commands[command] = None
    _later(asyncio.get_running_loop())


def forget(command: Command) -> None:
    """A command has ended."""
    _commands.pop(command, None)


def is_low(meminfo: str) -> bool:
    """Whether less than a twentieth of the memory is available, as /proc/meminfo says."""
    sizes = dict.fromkeys(("MemTotal", "MemAvailable"), 0)
    for line in meminfo.splitlines():
        name, _, size = line.partition(":")
        if name in sizes:
            sizes[name] = int(size.split()[0])
    return 0 < sizes["MemAvailable"] < sizes["MemTotal"] * _LEAST


def _later(loop: asyncio.AbstractEventLoop, rounds: int = 1) -> None:
    if _commands and loop not in _timers:
        _timers[loop] = loop.call_later(rounds * EVERY, _look, loop)


def _look(loop: asyncio.AbstractEventLoop) -> None:
    del _timers[loop]
    low = False
    with suppress(OSError):
        low = is_low(MEMINFO.read_text())
    if low and _commands:
        max(_commands, key=lambda command: memory_below(command.pid)).kill(WHY)
    _later(loop, _RELEASED if low else 1)
