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
# How many times as long to wait after a command was ended, until its memory is free, and while much is available.
_LONGER = 4
# The parts of all memory that must be available, and that are much.
_LEAST, _MUCH = 0.05, 0.5
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
    _later(asyncio.get_running_loop(), _LONGER)


def forget(command: Command) -> None:
    """A command has ended."""
    _commands.pop(command, None)


def available(meminfo: str) -> float:
    """Return the part of the memory that is available, as /proc/meminfo says; 1 if it does not say."""
    sizes = dict.fromkeys(("MemTotal", "MemAvailable"), 0)
    for line in meminfo.splitlines():
        name, _, size = line.partition(":")
        if name in sizes:
            sizes[name] = int(size.split()[0])
    return sizes["MemAvailable"] / sizes["MemTotal"] if sizes["MemAvailable"] and sizes["MemTotal"] else 1


def _later(loop: asyncio.AbstractEventLoop, rounds: int) -> None:
    if _commands and loop not in _timers:
        _timers[loop] = loop.call_later(rounds * EVERY, _look, loop)


def _look(loop: asyncio.AbstractEventLoop) -> None:
    del _timers[loop]
    part = 1.0
    with suppress(OSError):
        part = available(MEMINFO.read_text())
    if part < _LEAST and _commands:
        max(_commands, key=lambda command: memory_below(command.pid)).kill(WHY)
    _later(loop, 1 if _LEAST <= part < _MUCH else _LONGER)
