"""A slow reader loses updates and nothing else; an event to nobody costs nothing."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent.events import AgentEvent, MessageStart, MessageUpdate, RunRef
from bot.bus import EventBus


def ref(session: str = "s", run: str = "r") -> RunRef:
    return RunRef(run_id=run, turn_id=run, session_key=session, attempt=1)


def kept(number: int, run: RunRef | None = None) -> AgentEvent:
    return MessageStart(run=run or ref(), at=0, id=f"r/{number}/0", step=number)


def update(number: int, run: RunRef | None = None) -> AgentEvent:
    return MessageUpdate(run=run or ref(), at=0, step=number, part="text", delta=str(number))


async def read(bus: EventBus, events: Sequence[AgentEvent], **wanted: str) -> tuple[list[AgentEvent], bool]:
    """What a reader gets that looks only after everything was published, and whether it was told of a gap."""
    subscription = bus.subscribe(**wanted)
    for event in events:
        bus.publish(event)
    bus.close()
    return [event async for event in subscription], subscription.overrun


@given(st.lists(st.booleans(), max_size=700))
def test_a_slow_reader_loses_updates_only(pattern: list[bool]) -> None:
    events = [kept(n) if is_kept else update(n) for n, is_kept in enumerate(pattern)]
    got, overrun = asyncio.run(read(EventBus(), events))
    assert not overrun
    assert [event for event in got if isinstance(event, MessageStart)] == [
        event for event in events if isinstance(event, MessageStart)
    ]
    positions = [events.index(event) for event in got]
    assert positions == sorted(positions)
    if len(events) <= 256:
        assert got == events


async def test_a_reader_that_is_far_too_slow_is_told_of_the_gap() -> None:
    events = [kept(n) for n in range(5000)]
    got, overrun = await read(EventBus(), events)
    assert overrun
    assert got == events[: len(got)]
    assert len(got) < 5000


async def test_readers_see_what_they_asked_for() -> None:
    one, other = ref("s", "r"), ref("s", "q")
    third = ref("t", "p")
    events = [kept(1, one), kept(2, other), kept(3, third)]
    assert (await read(EventBus(), events))[0] == events
    assert (await read(EventBus(), events, session_key="s"))[0] == events[:2]
    assert (await read(EventBus(), events, run_id="q"))[0] == [events[1]]


async def test_a_reader_that_waits_is_woken_and_one_that_left_is_forgotten() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    left = bus.subscribe()
    bus.unsubscribe(left)
    got: list[AgentEvent] = []

    async def listen() -> None:
        async for event in subscription:
            got.append(event)

    task = asyncio.create_task(listen())
    for n in range(3):
        await asyncio.sleep(0)
        bus.publish(update(n))
    bus.close()
    await asyncio.wait_for(task, 5)
    assert got == [update(n) for n in range(3)]
    assert [event async for event in left] == []
