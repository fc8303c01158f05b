"""The crash explorer: every scenario, every commit, and a way to die there; then the promises are checked.

Exhaustive instead of random: a run counts its commits, and the next one ends one commit later, until a run comes to
rest before it reaches its end. The suite tries every 20th commit, and the ways take turns; where both begin follows
from the name of the scenario. `make soak` draws it (EXPLORER_SEED=n repeats it), and tries all ways at all commits.
Several ends in a row are too many for that: those are drawn, from printed seeds, in the soak. Of what happens by itself
(beats, jobs) only the moment when something is due is tried in full, and every third commit of what is done while a
person is let before; the soak tries all of these, and draws others.
"""

import gc
import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.background import BACKGROUND
from tests.crash.checks import check
from tests.crash.process import End, When, watch_tasks
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.examples import seed, stride

SEEDS = 20
"""Of several ends, at most: two are tried, and more until two ends of one were reached."""
LEAST = 10
"""Commits that each scenario has."""
STRIDE = 20
"""Of the commits that the suite tries; `make soak` tries all."""
LONGEST = 200
"""Commits; a scenario that takes more does not come to rest."""
WAYS: tuple[When, ...] = ("before", "after", "effect", "drain", "full")
_SCENARIOS = [pytest.param(scenario, id=scenario.name) for scenario in SCENARIOS]
_BACKGROUND = [pytest.param(scenario, id=scenario.name) for scenario in BACKGROUND]
Fresh = Callable[[], Path]


async def _run(scenario: Scenario, root: Path, *ends: End) -> int:
    """One run and its checks; returns how many of its ends it reached."""
    world = scenario.world(root)
    lost = watch_tasks()
    try:
        await world.live(*ends)
        wrong = check(world) + lost
        assert not wrong, "\n".join([f"{scenario.name}, {ends}:", *wrong, world.describe()])
        return world.reached
    finally:
        world.close()
        shutil.rmtree(root)


@pytest.mark.soak
@pytest.mark.parametrize("scenario", _SCENARIOS)
async def test_nothing_happens(scenario: Scenario, fresh: Fresh) -> None:
    assert await _run(scenario, fresh()) == 0


async def _commits(scenario: Scenario, commits: range, ways: Iterator[When], fresh: Fresh) -> None:
    gc.freeze()  # so that only what is left of these lives is looked at below
    for commit, when in zip(commits, ways, strict=False):
        if not await _run(scenario, fresh(), End(when, commit)):
            assert commit > LEAST, "a scenario has commits"
            break
    else:
        pytest.fail("it does not come to rest")
    lost = watch_tasks()
    gc.collect()
    assert not lost


def _seed(scenario: Scenario, below: int) -> int:
    number = int(os.environ.get("EXPLORER_SEED") or seed(scenario.name, below))
    print(f"EXPLORER_SEED={number}")  # noqa: T201
    return number


@pytest.mark.parametrize("scenario", _SCENARIOS)
async def test_every_commit(scenario: Scenario, fresh: Fresh) -> None:
    first, way = divmod(_seed(scenario, LEAST * len(WAYS)), len(WAYS))
    await _commits(
        scenario, range(1 + first, LONGEST, STRIDE), itertools.islice(itertools.cycle(WAYS), way, None), fresh
    )


@pytest.mark.parametrize("name", ["alert", "tasks", "reminder", "recurring"])
async def test_a_death_when_something_is_due(name: str, fresh: Fresh) -> None:
    scenario = next(scenario for scenario in BACKGROUND if scenario.name == name)
    ends = [End("before", 1, leapt=True), *(End("after", commit, leapt=True) for commit in (1, 2, 3))]
    for end in ends:
        assert await _run(scenario, fresh(), end) == 1


@pytest.mark.parametrize("name", ["written-meanwhile", "call-apart", "call-of-a-job-apart"])
async def test_every_commit_while_a_person_is_let_before(name: str, fresh: Fresh) -> None:
    scenario = next(scenario for scenario in BACKGROUND if scenario.name == name)
    for commit, when in zip(range(1, LONGEST, stride(3)), itertools.cycle(WAYS), strict=False):
        if not await _run(scenario, fresh(), End(when, commit, leapt=True)):
            assert commit > 10
            break


@pytest.mark.soak
@pytest.mark.parametrize("scenario", _BACKGROUND)
async def test_some_deaths_of_what_happens_by_itself(scenario: Scenario, fresh: Fresh) -> None:
    drawn = random.Random(f"{scenario.name} {_seed(scenario, 1000)}")
    for _ in range(2):
        await _run(scenario, fresh(), End(drawn.choice(WAYS), drawn.randint(1, 20), leapt=True))


@pytest.mark.soak
@pytest.mark.parametrize("when", WAYS)
@pytest.mark.parametrize("scenario", _SCENARIOS + _BACKGROUND)
async def test_every_commit_in_every_way(scenario: Scenario, when: When, fresh: Fresh) -> None:
    await _commits(scenario, range(1, LONGEST), itertools.repeat(when), fresh)


async def _several_ends(scenario: Scenario, number: int, fresh: Fresh) -> int:
    drawn = random.Random(f"{scenario.name} {number}")
    ends = [End(drawn.choice(WAYS), drawn.randint(1, 14)) for _ in range(drawn.randint(2, 4))]
    print(f"seed {number}: {ends}")  # noqa: T201
    return await _run(scenario, fresh(), *ends)


@pytest.mark.soak
@pytest.mark.parametrize("scenario", _SCENARIOS)
async def test_several_ends(scenario: Scenario, fresh: Fresh) -> None:
    most = 0
    for number in range(SEEDS):
        most = max(most, await _several_ends(scenario, number, fresh))
        if number >= 1 and most > 1:
            return
    pytest.fail("some of them come one after the other")


@pytest.mark.soak
@pytest.mark.parametrize("scenario", _SCENARIOS + _BACKGROUND)
async def test_very_many_ends(scenario: Scenario, fresh: Fresh) -> None:
    for number in range(2, 1000):
        await _several_ends(scenario, number, fresh)


async def test_a_reminder_that_dies_twice_is_told_of_and_tried_again(fresh: Fresh) -> None:
    scenario = next(scenario for scenario in BACKGROUND if scenario.name == "reminder")
    given_up = 0
    for second in range(6, 10):
        world = scenario.world(fresh())
        await world.live(End("after", 3, leapt=True), End("after", second))
        assert not check(world), (second, check(world))
        given_up += bool(world.stored.turns(error_kind="crash"))
        assert world.stored.firings("outcome")[-1] == ("said",)
        world.close()
    assert given_up


@pytest.mark.soak
async def test_two_crashes_of_one_turn_are_one_notice(fresh: Fresh) -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "blocks")
    given_up = 0
    for first in range(9, 13):  # a service commits about six times before it begins a turn
        for second in range(7, 13):
            root = fresh()
            world = scenario.world(root)
            await world.live(End("after", first), End("after", second))
            assert not check(world), (first, second, check(world))
            given_up += bool(world.stored.turns(error_kind="crash"))
            world.close()
    assert given_up > 5, "most second crashes hit the same turn"
