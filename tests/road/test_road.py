"""What a message, an approval and a beat may cost: calls, files, statements, commits, changes of thread.

The counts are the same on every run and every machine, so a limit that is passed is a layer, a read or a walk that a
change has added to the road. When a change takes some away, lower the limit. `python -m tests.road` prints every count.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from bot.inbound.routing import Routing
from tests.road.roads import AGED, Road, travelling


@dataclass(frozen=True, slots=True)
class Limit:
    """What a road may cost in one unit."""

    most: int
    # What we want it to come to; None where that is what it costs.
    aim: int | None = None


# For each road and unit; `counts` says what the units are. Calls, files and statements have 2 % of room.
LIMITS: Mapping[str, Mapping[str, Limit]] = {
    "message": {
        "calls": Limit(693, aim=600),
        "files": Limit(96, aim=60),
        "crossings": Limit(69),
        "statements": Limit(46, aim=55),
        "commits": Limit(3),
        "hops": Limit(5),
    },
    "approval": {
        "calls": Limit(2_531),  # two ask whether the words were typed by a person
        "files": Limit(115),
        "crossings": Limit(160),
        "statements": Limit(164),
        "commits": Limit(15),
        "hops": Limit(57),  # two write a request for its platform, apart from the event loop
    },
    "beat": {
        "calls": Limit(781),
        "files": Limit(90),
        "crossings": Limit(131),
        "statements": Limit(70),  # one asks whether a person waits
        "commits": Limit(4),
        "hops": Limit(23),
    },
    "aged message": {
        "calls": Limit(693, aim=600),
        "statements": Limit(46, aim=55),
        "commits": Limit(3),
        "hops": Limit(5),
    },
    "aged tool": {"statements": Limit(74, aim=85), "commits": Limit(6), "hops": Limit(11)},
    "token": {"calls of agent": Limit(41, aim=50)},
}
# Tokens of the two answers whose difference is counted.
FEW, MANY = 20, 220


def counts(road: Road) -> dict[str, int]:
    """What a road has limits for.

    Calls of our functions and in how many files they are, calls from one package into another, statements and commits
    of the store, and changes of thread.
    """
    trace, work = road.trace, road.work
    return {
        "calls": len(trace.calls),
        "files": len(trace.files()),
        "crossings": trace.crossings().total(),
        "statements": len(work.statements),
        "commits": work.commits,
        "hops": work.hops,
    }


def check(name: str, found: Mapping[str, int], where: Counter[str]) -> None:
    """Hold counts against the limits of a road. where: the counts of each module, shown when one is passed."""
    passed = [
        f"{unit}: {found[unit]}, at most {limit.most}"
        for unit, limit in LIMITS[name].items()
        if found[unit] > limit.most
    ]
    modules = "\n".join(f"{count:6} {module}" for module, count in where.most_common())
    assert not passed, f"the road of '{name}' has grown: {'; '.join(passed)}\n{modules}"


def modules_of(road: Road) -> Counter[str]:
    """Calls by file, and statements by the function that wants them."""
    return road.trace.files() + Counter(f"statements of {one.function}" for one in road.work.statements)


@pytest.mark.parametrize("name", ["message", "approval", "beat"])
async def test_a_road_is_no_longer_than_it_was(name: str, tmp_path: Path) -> None:
    async with travelling(tmp_path) as traveller:
        road: Road = await getattr(traveller, name)()
    check(name, counts(road), modules_of(road))


async def test_a_session_that_has_grown_old_asks_the_store_no_more(tmp_path: Path) -> None:
    async with travelling(tmp_path) as traveller:
        for _ in range(AGED):
            await traveller.message()
        message, tool = await traveller.message(), await traveller.tool()
    check("aged message", counts(message), modules_of(message))
    check("aged tool", counts(tool), modules_of(tool))


async def test_a_token_costs_the_agent_few_calls(tmp_path: Path) -> None:
    async with travelling(tmp_path) as traveller:
        few, many = await traveller.message(FEW), await traveller.message(MANY)
    more = Counter(many.trace.profiled)["agent"] - Counter(few.trace.profiled)["agent"]
    check("token", {"calls of agent": more // (MANY - FEW)}, many.trace.files() - few.trace.files())


async def test_two_journeys_are_counted_alike(tmp_path: Path) -> None:
    found = []
    for name in ("one", "other"):
        async with travelling(tmp_path / name) as traveller:
            found.append([await traveller.message(), await traveller.approval(), await traveller.beat()])
    for one, other in zip(*found, strict=True):
        assert one.trace.calls == other.trace.calls
        assert [each.function for each in one.work.statements] == [each.function for each in other.work.statements]
        assert counts(one) == counts(other)


async def test_a_call_that_is_made_twice_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = Routing.decide

    @wraps(once)
    def twice(*given: Any) -> Any:
        once(*given)
        return once(*given)

    async with travelling(tmp_path) as traveller:
        plain = await traveller.message()
        monkeypatch.setattr(Routing, "decide", twice)
        doubled = await traveller.message()
    check("message", counts(plain), modules_of(plain))
    with pytest.raises(AssertionError, match=r"calls: \d+, at most [\s\S]*bot/inbound/routing.py"):
        check("message", counts(doubled), modules_of(doubled))
