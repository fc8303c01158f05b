"""What is kept, how often, and for how long: event keys, strangers, pruning, events in their order."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.message import Text
from bot.clock import Clock
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.errors import StoreUnavailable
from bot.persistence.events import PersistedAt
from bot.persistence.inbox import AcceptedMessage, Duplicate, Fresh
from bot.store.prune import DAY
from bot.store.store import Store
from channels.base import Mark
from channels.message import ChatKind, InboundKind, Place, UnreadEvent
from channels.outgoing import Planned, Sent
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, accept_and_claim, claim, message, opened, whole
from tests.stored import Stored, disk_full


async def _answered(store: Store, text: str = "hello") -> str:
    """A message, its answer and its delivery, all done; returns the turn."""
    turn = await accept_and_claim(store, text)
    kept, (delivery,) = await store.turns.step(
        turn.run,
        whole(turn.run, Text("fine")),
        PlanIn(turn.conv_id, sending=True),
        [Planned(source=sentence(f"turn:{turn.run.turn_id}:s1:b0"), body="fine", nonce=1, said="fine", step=1)],
    )
    assert kept.end is not None
    await store.deliveries.settle(delivery, Sent("1"), OwnerNotice((), delivery.place, lambda place: ()))
    return turn.run.turn_id


async def test_an_event_is_stored_once_and_its_mark_with_it(store: Store) -> None:
    once = AcceptedMessage(message=message("first"), session_key=KEY)
    other = AcceptedMessage(message=message("second"), session_key=KEY)
    answers = await store.inbox.accept([once, other, once], Mark("telegram:bot", "7"))
    assert [type(answer) for answer in answers] == [Fresh, Fresh, Duplicate]
    again = await store.inbox.accept([replace(once, message=replace(once.message, text="changed"))])
    assert isinstance(again[0], Duplicate)
    assert await store.inbox.count_waiting(KEY) == 2
    assert await store.inbox.mark("telegram:bot") == "7"
    assert await store.inbox.mark("telegram:other") is None


async def test_where_a_session_was_used_last_is_where_a_person_wrote(tmp_path: Path) -> None:
    """Programs and beats speak from places where an answer reaches nobody."""
    stored = Stored(tmp_path)
    async with opened(tmp_path) as store:
        for channel, kind, what, expected in (
            ("http", ChatKind.API, InboundKind.API, None),
            ("telegram", ChatKind.DIRECT, InboundKind.MESSAGE, "telegram"),
            ("http", ChatKind.API, InboundKind.API, "telegram"),
            ("console", ChatKind.CONSOLE, InboundKind.API, "console"),
            ("telegram", ChatKind.DIRECT, InboundKind.WAKE, "console"),
        ):
            written = message(kind=what)
            place = Place(channel=channel, account="bot", chat="1", kind=kind)
            written = replace(written, origin=replace(written.origin, place=place))
            await store.inbox.accept([AcceptedMessage(message=written, session_key=KEY)])
            ((last,),) = stored.sessions("last_conv")
            assert stored.conversations("channel", conv_id=last) == ([(expected,)] if expected else [])


async def test_the_same_key_on_another_account_is_another_event(store: Store) -> None:
    first = message()
    place = replace(first.origin.place, account="second bot")
    second = replace(first, origin=replace(first.origin, place=place))
    answers = await store.inbox.accept([AcceptedMessage(message=found, session_key=KEY) for found in (first, second)])
    assert [type(answer) for answer in answers] == [Fresh, Fresh]


async def test_an_event_that_cannot_be_read_is_kept_once_and_not_whole(tmp_path: Path, store: Store) -> None:
    event = UnreadEvent(channel="telegram", account="bot", event_key="u:1", raw="{" * 200_000, error="not JSON")
    await store.inbox.accept([event])
    assert isinstance((await store.inbox.accept([event]))[0], Duplicate)
    ((state, payload, reason),) = Stored(tmp_path).messages("state", "payload", "reason")
    assert (state, len(payload), reason) == ("unread", 65_536, "not JSON")


async def test_what_is_old_is_forgotten_and_what_is_open_or_needed_is_not(tmp_path: Path) -> None:
    now = [1_000 * DAY]
    clock, stored = Clock(now=lambda: now[0]), Stored(tmp_path)
    async with opened(tmp_path, clock) as store:
        turn = await _answered(store)
        await accept(store, "waits")
        place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
        asked = replace(message(kind=InboundKind.API), event_key="h:1")
        asked = replace(asked, origin=replace(asked.origin, place=place))
        await store.inbox.accept([AcceptedMessage(message=asked, session_key="s", state="dropped", reason="stop")])
        assert _counts(stored) == {"inbox": 3, "delivery": 1, "event": 4, "turn": 1}

        now[0] += 2 * DAY
        await store.prune()
        assert _counts(stored) == {"inbox": 2, "delivery": 1, "event": 0, "turn": 1}, "HTTP's keys and events go"

        now[0] += 28 * DAY
        await store.prune()
        assert _counts(stored) == {"inbox": 2, "delivery": 1, "event": 0, "turn": 1}, "keys stay for 30 days"

        now[0] += 2 * DAY
        await store.prune()
        assert _counts(stored) == {"inbox": 1, "delivery": 0, "event": 0, "turn": 1}
        assert await store.inbox.count_waiting(KEY) == 1
        view = await store.reads.turn(turn)
        assert view is not None
        assert view.outcome == "completed"


def _counts(stored: Stored) -> dict[str, int]:
    found = stored.everything()
    return {table: len(found[table]) for table in ("inbox", "delivery", "event", "turn")}


async def test_much_that_is_old_is_forgotten_in_small_batches(tmp_path: Path) -> None:
    now = [1_000 * DAY]
    commits = 0

    def count(at: str) -> None:
        nonlocal commits
        commits += at == "after"

    async def sleep(seconds: float) -> None:
        """Between two batches others may write."""

    async with opened(tmp_path, Clock(now=lambda: now[0], sleep=sleep), count) as store:
        batch = [
            AcceptedMessage(message=message(), session_key=None, state="dropped", reason="access") for _ in range(1000)
        ]
        await store.inbox.accept(batch)
        now[0] += 40 * DAY
        commits = 0
        await store.prune()
        assert commits == 6
        assert Stored(tmp_path).messages() == []


async def test_kept_events_come_in_the_order_of_storing_also_when_the_clock_is_set_back(tmp_path: Path) -> None:
    now = [1_000 * DAY]
    async with opened(tmp_path, Clock(now=lambda: now[0])) as store:
        turns = []
        for _ in range(3):
            turns.append(await _answered(store))
            now[0] -= DAY // 24
        newest = await store.reads.last_event()
        events = await store.reads.events_after(0, newest, None, None, 100)
        ids = [f"{turn}/{part}" for turn in turns for part in ("start", "1/0", "1/1", "end")]
        assert [json.loads(event.body)["id"] for event in events] == ids
        assert [event.seq for event in events] == sorted(event.seq for event in events)
        ends = [json.loads(event.body) for event in events if event.type == "agent_end"]
        assert all(end["duration"] >= 0 for end in ends)
        of_one = await store.reads.events_after(events[1].seq, newest, KEY, turns[0], 100)
        assert of_one == events[2:4]
        assert await store.reads.events_after(events[1].seq, events[5].seq, None, None, 2) == events[2:4]
        assert newest == events[-1].seq
        assert await store.reads.end_of(turns[1]) == events[7].seq


async def test_events_are_published_before_their_writer_is_answered(tmp_path: Path) -> None:
    published: list[PersistedAt] = []
    full = False

    def probe(at: str) -> None:
        if full and at == "before":
            raise disk_full()

    async with opened(tmp_path, probe=probe, subscriber=published.extend) as store:
        await accept(store)
        assert published == []
        claiming = asyncio.create_task(claim(store))
        claiming.add_done_callback(lambda _: order.append(len(published)))
        order: list[int] = []
        turn = await claiming
        assert order == [2]
        newest = await store.reads.last_event()
        assert [(one.seq, one.run_id, one.session_key, one.ended) for one in published] == [
            (newest - 1, turn.turn_id, KEY, False),
            (newest, turn.turn_id, KEY, False),
        ]
        full = True
        with pytest.raises(StoreUnavailable):
            await store.stops.abort(turn.turn_id)
        assert len(published) == 2
        full = False
        assert await store.stops.abort(turn.turn_id)
        assert [one.ended for one in published[2:]] == [True]
    published.clear()
    async with opened(tmp_path, subscriber=published.extend) as store:
        await accept(store)
        assert published == [], "what was kept before the restart"


async def test_a_position_is_given_once_also_when_all_events_are_forgotten(tmp_path: Path) -> None:
    now = [1_000 * DAY]
    published: list[PersistedAt] = []
    async with opened(tmp_path, Clock(now=lambda: now[0]), subscriber=published.extend) as store:
        await _answered(store)
        now[0] += 2 * DAY
        await store.prune()
        assert await store.reads.last_event() == 0
        await _answered(store)
        assert [one.seq for one in published] == list(range(1, 9))
