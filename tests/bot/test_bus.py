"""A slow reader loses updates and nothing else, and never from the middle; telling nobody costs nothing."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent.events import MessageUpdate, RunRef, UpdateEvent
from bot.bus import EventBus, Published
from bot.persistence.events import PersistedAt
from tests.watch import PATIENCE

ROOM = 256


def ref(session: str = "s", run: str = "r") -> RunRef:
    return RunRef(run_id=run, turn_id=run, session_key=session, attempt=1)


def kept(seq: int, session: str = "s", run: str = "r", *, ended: bool = False) -> PersistedAt:
    return PersistedAt(seq, session, run, ended)


def update(number: int, run: RunRef | None = None) -> UpdateEvent:
    return MessageUpdate(run=run or ref(), at=0, step=number, part="text", delta=str(number))


async def read(bus: EventBus, told: Sequence[PersistedAt | UpdateEvent], **wanted: str) -> list[Published]:
    """What a reader gets that looks only after everything was told."""
    subscription = bus.subscribe(**wanted)
    for one in told:
        if isinstance(one, PersistedAt):
            bus.announce([one])
        else:
            bus.publish(one)
    bus.close()
    return list(await subscription.batch())


@given(st.lists(st.booleans(), max_size=1500))
def test_a_slow_reader_loses_updates_only_and_has_the_beginning_of_each_answer(pattern: list[bool]) -> None:
    told = [kept(n) if is_kept else update(n) for n, is_kept in enumerate(pattern)]
    got = asyncio.run(read(EventBus(), told))
    assert len(got) <= 2 * ROOM + 1
    positions = [n for one in got if isinstance(one, range) for n in one]
    assert set(positions) >= {n for n, is_kept in enumerate(pattern) if is_kept}
    assert positions == sorted(set(positions))
    order = [one.start if isinstance(one, range) else one.step for one in got]
    assert order == sorted(order)
    between: list[int] = []  # updates since the last ring: the first ones, without a hole
    for one in (*got, range(len(pattern), len(pattern) + 1)):
        if isinstance(one, range):
            assert between == list(range(between[0], between[0] + len(between))) if between else True
            assert not between or between[0] == 0 or pattern[between[0] - 1]
            between = []
        else:
            between.append(one.step)
    if len(pattern) <= ROOM:
        assert [one for one in got if not isinstance(one, range)] == [
            one for one in told if not isinstance(one, PersistedAt)
        ]


async def test_what_was_missed_once_is_told_again_with_the_next_answer() -> None:
    bus = EventBus()
    reader = bus.subscribe()
    for n in range(ROOM + 1):
        bus.publish(update(n))
    assert len(await reader.batch()) == ROOM
    bus.publish(update(ROOM + 1))  # there is room again, but its beginning is missing
    bus.publish(update(0, ref(run="q")))
    bus.announce([kept(7)])
    bus.publish(update(1))
    assert await reader.batch() == (update(0, ref(run="q")), range(7, 8), update(1))


async def test_rings_become_one_while_nobody_looks() -> None:
    assert await read(EventBus(), [kept(n) for n in range(5000)]) == [range(5000)]


async def test_readers_see_what_they_asked_for() -> None:
    told = [kept(1, "s", "r"), update(1, ref("s", "q")), kept(3, "s", "q"), kept(4, "t", "p")]
    assert await read(EventBus(), told) == [range(1, 2), told[1], range(3, 5)]
    assert await read(EventBus(), told, session_key="s") == [range(1, 2), told[1], range(3, 4)]
    assert await read(EventBus(), told, run_id="q") == [told[1], range(3, 4)]
    assert await read(EventBus(), told, sessions="t") == [range(4, 5)]
    bus = EventBus()
    subscription = bus.subscribe(session_key="s")
    bus.announce([kept(1, "t"), kept(2), kept(3, "t"), kept(4), kept(5, "t")])
    assert await subscription.batch() == (range(2, 5),)


async def test_what_a_run_says_after_its_end_is_told_to_nobody() -> None:
    told = [update(1), kept(2, ended=True), update(3), update(4, ref("s", "next"))]
    assert await read(EventBus(), told) == [told[0], range(2, 3), told[3]]


async def test_a_reader_that_waits_is_woken_and_one_that_left_is_forgotten() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    left = bus.subscribe()
    bus.unsubscribe(left)
    got: list[Published] = []

    async def listen() -> None:
        while told := await subscription.batch():
            got.extend(told)

    task = asyncio.create_task(listen())
    for n in range(3):
        await asyncio.sleep(0)
        bus.publish(update(n))
    bus.close()
    await asyncio.wait_for(task, PATIENCE)
    assert got == [update(n) for n in range(3)]
    assert await left.batch() == ()


async def test_who_waits_for_the_end_of_a_run_is_told_of_nothing_else() -> None:
    bus = EventBus()
    reader = bus.subscribe(run_id="r", ends=True)
    bus.publish(update(0))
    bus.announce([kept(1), kept(2, run="q", ended=True)])
    bus.announce([kept(3), kept(4, ended=True)])
    assert await reader.batch() == (range(4, 5),)
