"""The benchmark runs, every part at its smallest size. How good the figures are is not for a test to say."""

import asyncio
import sys
from importlib import import_module
from pathlib import Path

import pytest

from bench.__main__ import PARTS

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]


async def _bench(*arguments: str) -> tuple[int | None, str, str]:
    """A process of its own, because a service sets up the logs of the whole process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "bench", *arguments),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    return process.returncode, out.decode(), error.decode()


async def test_every_part_gives_figures() -> None:
    parts = (*PARTS, "profile")
    code, out, error = await _bench("--smallest", *parts)
    assert code == 0, error
    assert not error
    for part in parts:
        _, found, table = out.partition(import_module(f"bench.{part}").TITLE)
        assert found, f"no table of {part} in {out}"
        assert any(character.isdigit() for character in table), out


async def test_unknown_part_is_refused() -> None:
    code, _, error = await _bench("speed")
    assert code == 2
    assert "no such part: speed" in error
