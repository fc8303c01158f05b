"""How far a conversation was heard, what waits behind its history, and what was overheard there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.persistence.inbox import OVERHEARD, AcceptedMessage, Duplicate, Fresh, Heard
from bot.store.store import Store
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, Quoted, message_key
from channels.outgoing import Planned, Sent
from channels.sources import sentence
from tests.bot.persistence.contract import KEY, Opens, Time, answer, claim, settled
from tests.bot.store.opened import answering

HERE = Place(channel="slack", account="bot", chat="C1", kind=ChatKind.CHANNEL)
THREAD = replace(HERE, thread="5")


def said(number: int | str, place: Place = HERE, sender: str = "Ada", **fields: Any) -> InboundMessage:
    origin = Origin(place=place, sender="1", sender_name=sender, message_id=str(number))
    given = {"event_key": message_key(place.chat, str(number)), "kind": InboundKind.MESSAGE, "sent_at": 0}
    return InboundMessage(**{"origin": origin, "text": f"words {number}", **given, **fields})


def to_it(number: int | str, place: Place = HERE, **fields: Any) -> AcceptedMessage:
    behind = fields.pop("behind", False)
    return AcceptedMessage(message=said(number, place, **fields), session_key=KEY, behind=behind)


def overheard(number: int | str, place: Place = HERE, **fields: Any) -> AcceptedMessage:
    return AcceptedMessage(message=said(number, place, **fields), session_key=None, state="overheard")


async def told(store: Store) -> list[str]:
    """The next turn's lines for the model, and the end of the turn."""
    turn = await claim(store)
    await answer(store, turn)
    return [entry.message.text for entry in turn.entries]


def lines(text: str) -> Sequence[str]:
    """The words of each line inside the fence."""
    fenced = text.partition("<overheard>\n")[2].partition("</overheard>")[0]
    return [line.rpartition(": ")[2] for line in fenced.splitlines()]


async def test_a_cursor_never_goes_back_and_is_there_after_a_restart(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        first = await store.history.known("slack", "bot", 0)
        assert (first.fresh, first.first, list(first.conversations)) == (True, time.at, [])
        await store.inbox.accept([Heard(HERE, "10"), Heard(HERE, "9"), Heard(THREAD, "7")])
        time.at += 1000
    async with opens(time.clock()) as store:
        known = await store.history.known("slack", "bot", 0)
        assert (known.fresh, known.first) == (False, first.first)
        assert {(one.place.thread, one.cursor, one.listed) for one in known.conversations} == {
            ("", "10", True),
            ("5", "7", False),
        }
        assert (await store.history.known("slack", "another", 0)).conversations == []


async def test_threads_are_listed_while_the_bot_has_spoken_there(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        (fresh,) = await store.inbox.accept(
            [replace(to_it(5, THREAD), say=(Planned(source=sentence("a"), body="hi", nonce=1),))]
        )
        assert isinstance(fresh, Fresh)
        await settled(store, fresh.said[0], Sent("9"))
        for since, listed in ((time.at, ["5"]), (time.at + 1, [])):
            known = await store.history.known("slack", "bot", since)
            assert [one.place.thread for one in known.conversations if one.listed] == listed


async def test_what_waits_behind_a_history_is_released_in_the_order_of_the_platform(store: Store) -> None:
    opened_by = to_it(8, replace(HERE, thread="8"), behind=True)
    await store.inbox.accept([to_it(12, behind=True), to_it(9, behind=True), opened_by, to_it(6, THREAD, behind=True)])
    assert await store.inbox.waiting_sessions(9) == []
    known = await store.history.known("slack", "bot", 0)
    assert {(one.place.thread, one.held) for one in known.conversations} == {("", True), ("5", True)}
    read = await store.inbox.accept([Heard(HERE, "9"), to_it(7), to_it(9, text="in other words")])
    assert [type(one) for one in read] == [Fresh, Fresh, Fresh]
    assert await store.history.release(HERE) == (KEY,)
    assert await store.history.release(HERE) == ()
    order = ["words 7", "in other words", "words 8", "words 12"]
    assert [found for _ in order for found in await told(store)] == order
    assert await store.inbox.waiting_sessions(9) == []
    (again,) = await store.inbox.accept([to_it(12)])
    assert isinstance(again, Duplicate)
    known = await store.history.known("slack", "bot", 0)
    assert {one.place.thread: one.cursor for one in known.conversations} == {"": "12", "5": ""}


async def test_a_stop_drops_what_waits_behind_a_history_before_it(store: Store) -> None:
    stop = to_it(9, kind=InboundKind.COMMAND, text="/stop")
    *_, command, _ = await store.inbox.accept([to_it(8, behind=True), stop, to_it(10, behind=True)])
    kept = await store.stops.stop(command.seq, KEY, lambda stopped: ())
    assert kept.stopped.dropped == 1
    assert isinstance((await store.inbox.accept([to_it(8)]))[0], Duplicate)
    await store.history.release(HERE)
    assert await told(store) == ["words 10"]


async def test_who_is_shut_out_takes_nothing_along_that_waits_behind_a_history(store: Store) -> None:
    """What they wrote where everybody may write is not what waits for their code."""
    direct = replace(HERE, chat="D1", kind=ChatKind.DIRECT)
    asked = replace(to_it(7, direct), state="held", reason="pairing", code="digest")
    await store.inbox.accept([to_it(8, behind=True), asked])
    assert await store.people.settle("digest", "blocked", ()) is not None
    assert await store.history.release(HERE) == (KEY,)
    assert await told(store) == ["words 8"]


async def test_a_thread_is_joined_also_while_what_asked_waits_behind_a_history(store: Store) -> None:
    lifted = to_it(5, THREAD, behind=True)
    await store.inbox.accept([lifted, replace(to_it(6, THREAD, behind=True), follows="joined")])
    for place in (HERE, THREAD):
        assert await store.history.release(place) == (KEY,)
    assert [*await told(store), *await told(store)] == ["words 5", "words 6"]


async def test_an_edit_reaches_a_message_that_waits_behind_a_history(store: Store) -> None:
    edit = to_it(8, kind=InboundKind.EDIT, event_key="e:8", text="better words")
    await store.inbox.accept([to_it(8, behind=True), edit])
    await store.history.release(HERE)
    assert await told(store) == ["better words"]


async def test_what_was_overheard_before_a_message_stands_before_it_once(store: Store) -> None:
    await store.inbox.accept([overheard(9), overheard(10), overheard(9), to_it(11), overheard(12)])
    (first,) = await told(store)
    assert lines(first) == ["words 9", "words 10"]
    assert first.endswith("</overheard>\nwords 11")
    await store.inbox.accept([to_it(13, THREAD), to_it(14)])
    assert await told(store) == ["words 13"]
    (second,) = await told(store)
    assert lines(second) == ["words 12"]


async def test_what_a_thread_hangs_on_stays_however_much_is_said_in_it(store: Store) -> None:
    """It is longer than a line, too; and nothing is told again to whoever knows it."""
    asked = replace(to_it(99, THREAD), asks_around=True)
    await store.inbox.accept([*(overheard(number, THREAD) for number in range(10, 10 + OVERHEARD)), asked])
    assert await store.inbox.waiting_sessions(9) == []
    assert await store.history.begins(THREAD) == "99"
    root = said(5, text="r" * 9000)
    assert await store.history.release(THREAD, [root, said(59, THREAD)]) == (KEY,)
    (first,) = await told(store)
    found = lines(first)
    assert (len(found), len(found[0]), found[1], found[-1]) == (OVERHEARD + 1, 8000, "words 10", "words 59")
    again = replace(to_it(100, THREAD), asks_around=True)
    (fresh,) = await store.inbox.accept([again])
    assert isinstance(fresh, Fresh)
    assert (fresh.state, await store.history.begins(THREAD)) == ("waiting", "")
    assert await told(store) == ["words 100"]


async def test_a_thread_that_is_opened_by_its_answer_brings_what_was_said_around_it(store: Store) -> None:
    """Its session has heard nothing yet; the next thread has not either."""
    await store.inbox.accept([overheard(9)])
    for number in (10, 11):
        place = replace(HERE, thread=str(number))
        await store.inbox.accept([replace(to_it(number, place), session_key=f"{KEY}:{number}")])
        turn = await store.turns.claim(f"{KEY}:{number}", "one", answering)
        assert turn is not None
        assert lines(turn.entries[0].message.text) == ["words 9"]


async def test_edits_and_deletions_change_what_was_overheard(store: Store) -> None:
    await store.inbox.accept([overheard(7), overheard(8, THREAD), overheard(9), overheard(10)])
    edit = overheard(7, kind=InboundKind.EDIT, event_key="e:7", text="other words")
    deletion = overheard(9, kind=InboundKind.DELETE, event_key="d:9", text="")
    in_thread = overheard(8, kind=InboundKind.DELETE, event_key="d:8", text="")
    await store.inbox.accept([edit, deletion, in_thread, overheard(11, kind=InboundKind.EDIT, event_key="e:11")])
    await store.inbox.accept([to_it(20), to_it(21, THREAD)])
    (first,) = await told(store)
    assert lines(first) == ["other words", "words 10"]
    assert await told(store) == ["words 21"]


async def test_what_is_overheard_is_bounded(store: Store) -> None:
    quoted = {"replied": Quoted(author="Eve", text="q" * 9000), "text": "w" * 9000}
    await store.inbox.accept([overheard(number, **quoted) for number in range(100, 300)])
    await store.inbox.accept([overheard(99, THREAD), overheard(1000, text="newest"), overheard(1, text="late")])
    await store.inbox.accept([to_it(2000)])
    (text,) = await told(store)
    assert (len(lines(text)), lines(text)[-1]) == (OVERHEARD, "newest")
    assert len(text) < OVERHEARD * 600
