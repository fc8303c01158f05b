"""Kept events, by position."""

from agent.events import AgentStart, load
from bot.persistence.events import PersistedAt, Subscriber
from tests.bot.persistence.contract import Opens, accept, answer, claim
from tests.bot.store.opened import KEY


async def test_positions_rise_and_are_published_before_the_writer_is_answered(opens: Opens) -> None:
    published: list[PersistedAt] = []
    subscriber: Subscriber = published.extend
    async with opens(subscriber=subscriber) as store:
        await accept(store, "one")
        turn = await claim(store)
        assert published, "before the claim is answered"
        end = await answer(store, turn)
        assert end is not None
        assert published[-1].ended
        newest = await store.reads.last_event()
        kept = await store.reads.events_after(0, newest, KEY, turn.turn_id, 99)
        assert [found.seq for found in kept] == [found.seq for found in published]
        assert [found.seq for found in kept] == sorted({found.seq for found in kept})
        events = [load(found.body) for found in kept]
        assert isinstance(events[0], AgentStart)
        assert events[-1] == end
        assert {event.run for event in events} == {turn.run}
        assert await store.reads.first_event(turn.turn_id) == kept[0].seq
        assert await store.reads.end_of(turn.turn_id) == kept[-1].seq
        assert await store.reads.events_after(0, newest, "agent:main:other", None, 9) == []
        assert await store.reads.events_after(0, newest, None, None, 9, "agent:main:http:") == []


async def test_answers_under_way_are_found(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store)
        newest, begun = await store.reads.under_way(KEY, "")
        assert newest == await store.reads.last_event()
        assert [found.type for found in begun] == ["message_start"]
        await answer(store, turn)
        assert (await store.reads.under_way(None, ""))[1] == []


async def test_it_says_what_it_holds(opens: Opens) -> None:
    async with opens() as store:
        assert (store.failure, store.salvage) == (None, None)
        await accept(store, "one", "two")
        await answer(store, await claim(store), said=("a",))
        totals = await store.reads.totals()
        assert (totals.sessions, totals.waiting, totals.undelivered, totals.begun) == (1, 1, 1, 0)
        assert await store.try_write()
        await store.prune()
        assert (await store.reads.totals()) == totals
        exchange = await store.reads.last_exchange(KEY, await store.reads.last_event())
        assert exchange is not None
        assert exchange.question == "one"
