"""The crash explorer: every scenario, every commit, every way to die there; then the promises are checked.

Exhaustive instead of random: a run counts its commits, and the next one ends one commit later, until a run comes to
rest before it reaches its end.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.checks import check
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.world import End, When

LONGEST = 200
"""Commits; a scenario that takes more does not come to rest."""
_SCENARIOS = [pytest.param(scenario, id=scenario.name) for scenario in SCENARIOS]


async def _run(scenario: Scenario, root: Path, *ends: End) -> bool:
    """One run and its checks; returns whether it reached all of its ends."""
    root.mkdir()  # noqa: ASYNC240 (a fresh folder of a test)
    world = scenario.world(root)
    try:
        await world.live(*ends)
        wrong = check(world)
        assert not wrong, "\n".join([f"{scenario.name}, {ends}:", *wrong, world.describe()])
        return world.reached == len(ends)
    finally:
        world.close()


def _commits() -> Iterator[int]:
    yield from range(1, LONGEST)
    raise AssertionError("it does not come to rest")


@pytest.mark.parametrize("scenario", _SCENARIOS)
async def test_nothing_happens(scenario: Scenario, tmp_path: Path) -> None:
    assert await _run(scenario, tmp_path / "run")


@pytest.mark.parametrize("when", ["before", "after", "effect", "drain", "full"])
@pytest.mark.parametrize("scenario", _SCENARIOS)
async def test_every_commit(scenario: Scenario, when: When, tmp_path: Path) -> None:
    runs = 0
    for commit in _commits():
        runs += 1
        if not await _run(scenario, tmp_path / str(commit), End(when, commit)):
            break
    assert runs > 5
