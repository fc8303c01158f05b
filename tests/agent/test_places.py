"""Places that runs wait for: helper programs, searches and pages of the web share them as runs share theirs."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from agent import programs
from agent.shares import OWNER, SERVED, Places


class Holders:
    """Tasks that each hold a place of `places` until they are let go."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.entered: list[str] = []
        self.go = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def come(self, who: str, count: int = 1) -> None:
        """Let so many tasks that serve somebody ask for a place, and return when they have."""
        self.tasks += [asyncio.create_task(self._hold(who)) for _ in range(count)]
        for _ in range(5):
            await asyncio.sleep(0)

    async def _hold(self, who: str) -> None:
        SERVED.set((who, self.places))
        async with self.places.place():
            self.entered.append(who)
            await self.go.wait()


async def test_a_guest_who_asks_often_leaves_places_to_others() -> None:
    holders = Holders(Places(4))
    await holders.come("telegram:2", 24)
    assert holders.entered == ["telegram:2"] * 2
    await holders.come(OWNER)
    assert holders.entered[2:] == [OWNER]
    holders.go.set()
    await asyncio.gather(*holders.tasks)
    assert len(holders.entered) == 25


async def test_an_owner_who_waits_comes_before_guests_who_came_earlier() -> None:
    holders = Holders(Places(1))
    await holders.come("telegram:2")
    await holders.come("telegram:3")
    await holders.come(OWNER)
    holders.go.set()
    await asyncio.gather(*holders.tasks)
    assert holders.entered == ["telegram:2", OWNER, "telegram:3"]


async def test_who_is_cancelled_leaves_a_place_whether_it_was_held_or_waited_for() -> None:
    holders = Holders(Places(1))
    await holders.come("telegram:2", 3)
    for task in holders.tasks[:2]:
        task.cancel()
    await asyncio.gather(*holders.tasks[:2], return_exceptions=True)
    await holders.come("telegram:2", 0)
    assert len(holders.entered) == 2
    holders.go.set()
    await asyncio.gather(*holders.tasks[2:])
    await holders.come(OWNER)
    assert len(holders.entered) == 3


async def test_a_helper_program_of_a_run_waits_for_a_place(tmp_path: Path) -> None:
    places, made = Places(1), tmp_path / "made"

    async def helped() -> None:
        SERVED.set(("telegram:2", places))
        await programs.run(["/bin/sh", "-c", f"echo > {made}"], b"", {}, tmp_path, 100)

    async with AsyncExitStack() as held:
        await held.enter_async_context(places.place())
        task = asyncio.create_task(helped())
        unserved = ["/bin/sh", "-c", "exit 3"]  # outside of a run nobody waits; it takes as long as the other would
        assert (await programs.run(unserved, b"", {}, tmp_path, 100))[0] == 3
        assert not task.done()
        assert not made.exists()
    await task
    assert made.exists()
