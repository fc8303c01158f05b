"""From waiting to steering: only into an open turn of the same session and place, and never past a command."""

from dataclasses import replace
from pathlib import Path

from agent.message import Text
from bot.clock import Clock
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.turns import Ending, Stopped, Turn, TurnState
from bot.store.store import Store
from channels.message import ChatMoved, InboundKind, InboundMessage
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, accept_and_claim, answering, claim, fail, message, opened, whole
from tests.stored import Stored
from tests.watch import ManualTime, Watch


async def keep(store: Store, asked: InboundMessage, delay: int = 0) -> int:
    """Accept a message; returns its seq."""
    (answer,) = await store.inbox.accept([AcceptedMessage(message=asked, session_key=KEY, delay=delay)])
    return answer.seq


async def test_what_waits_is_read_before_the_next_answer(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    seqs = [await accept(store, text) for text in ("two", "three")]
    assert [await store.inbox.steer(turn.turn_id, seq) for seq in reversed(seqs)] == [True, True]
    assert not await store.inbox.steer(turn.turn_id, seqs[0])
    lines = (await store.turns.results(turn.run, (), batch_done=True, events=())).entries
    assert [line.message.text for line in lines] == ["two", "three"]
    assert not await store.inbox.steer(turn.turn_id, seqs[0])
    assert await store.inbox.count_waiting(KEY) == 0


async def test_a_turn_that_has_ended_reads_nothing_more(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    seq = await accept(store, "two")
    await fail(store, turn)
    assert not await store.inbox.steer(turn.turn_id, seq)
    assert (await claim(store)).messages[0].text == "two"


async def test_nothing_steers_from_elsewhere(store: Store) -> None:
    """From another place it would be answered where its writer does not look."""
    turn = await accept_and_claim(store, "one")
    elsewhere = await keep(store, message("two", chat="2"))
    (other,) = await store.inbox.accept([AcceptedMessage(message=message("three"), session_key="another")])
    asked_for = await accept(store, "four", InboundKind.API, turn_id="t4")
    command = await accept(store, "/status", InboundKind.COMMAND)
    behind = await accept(store, "five")
    for seq in (elsewhere, other.seq, asked_for, command, behind, 99):
        assert not await store.inbox.steer(turn.turn_id, seq)
    assert await store.inbox.count_waiting(KEY) == 3


async def test_what_steers_can_be_edited_and_follows_its_chat(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    asked = message("two")
    assert await store.inbox.steer(turn.turn_id, await keep(store, asked))
    moved = ChatMoved(channel="telegram", account="bot", old_chat="1", new_chat="9")
    await store.inbox.accept([moved])
    await keep(store, replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="two, I mean three"))
    lines = (await store.turns.results(turn.run, (), batch_done=True, events=())).entries
    assert [line.message.text for line in lines] == ["two, I mean three"]


async def test_what_is_not_ready_can_steer_and_be_edited(tmp_path: Path) -> None:
    time = ManualTime(Watch())
    async with opened(tmp_path, Clock(now=time.now)) as store:
        turn = await accept_and_claim(store, "one")
        asked, early = message("two"), message("three")
        await keep(store, asked, 60_000)
        assert await store.inbox.steer(turn.turn_id, await keep(store, early, 60_000))
        await keep(store, replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="two, I mean four"))
        lines = (await store.turns.results(turn.run, (), batch_done=True, events=())).entries
        assert [line.message.text for line in lines] == ["three"]
        await store.turns.release(turn.run)
        again = await claim(store)
        assert not again.more
        await store.stops.abort(again.turn_id)
        assert await store.turns.claim(KEY, "worker", answering) is None
        assert await store.inbox.waiting_sessions(9) == []
        time.advance(60)
        assert await store.inbox.waiting_sessions(9) == [(KEY, False, "telegram:1")]
        assert (await claim(store)).messages[0].text == "two, I mean four"


# One turn may answer several messages: of one place, in order, and none across a command.


async def answer(store: Store, turn: Turn) -> None:
    """Say something and end the turn."""
    await store.turns.step(turn.run, whole(turn.run, Text("answer")), PlanIn(turn.conv_id), ())


async def texts_of_turns(store: Store) -> list[list[str]]:
    """What each turn answers, until nothing waits."""
    turns = []
    while (turn := await store.turns.claim(KEY, "worker", answering)) is not None:
        turns.append([message.text for message in turn.messages])
        await answer(store, turn)
    return turns


async def test_messages_are_taken_together_and_keep_their_lines(store: Store) -> None:
    for text in ("one", "two", "three"):
        await accept(store, text, gathers=text != "three")
    turn = await claim(store)
    assert [message.text for message in turn.messages] == ["one", "two"]
    assert [line.message.text for line in turn.entries] == ["one", "two"]
    assert turn.more
    await answer(store, turn)
    newest = await store.reads.last_event()
    assert (await store.reads.last_exchange(KEY, newest)).question == "one\n\ntwo"  # type: ignore[union-attr]
    assert await texts_of_turns(store) == [["three"]]


async def test_what_came_from_another_place_is_another_turn(store: Store) -> None:
    for chat, text in (("1", "one"), ("1", "two"), ("2", "three"), ("1", "four")):
        await store.inbox.accept([AcceptedMessage(message=message(text, chat=chat), session_key=KEY, gathers=True)])
    assert await texts_of_turns(store) == [["one", "two"], ["three"], ["four"]]


async def test_what_can_be_asked_for_by_itself_is_a_turn_of_its_own(store: Store) -> None:
    for n, text in enumerate(("one", "two")):
        await accept(store, text, InboundKind.API, turn_id=f"t{n}", gathers=True)
    assert await texts_of_turns(store) == [["one"], ["two"]]


async def test_a_stop_ends_only_what_was_written_before_it(store: Store) -> None:
    """It may be carried out after a claim that was made behind it."""
    for text in ("one", "two"):
        await accept(store, text, gathers=True)
    stop = await accept(store, "/stop", InboundKind.COMMAND)
    turn = await accept_and_claim(store, "three", gathers=True)
    assert [message.text for message in turn.messages] == ["one", "two"]
    stopped = (await store.stops.stop(stop, KEY, lambda stopped: ())).stopped
    assert (stopped.running, stopped.dropped) == (True, 0)
    assert await texts_of_turns(store) == [["three"]]


async def test_one_damaged_message_costs_only_itself(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        seqs = [await accept(store, text, gathers=True) for text in ("one", "two", "three")]
    spoil(tmp_path, seqs[0])
    async with opened(tmp_path) as store:
        turn = await claim(store)
        assert [message.text for message in turn.messages] == ["two", "three"]
        await store.turns.release(turn.run)
    spoil(tmp_path, seqs[1])
    async with opened(tmp_path) as store:
        turn = await claim(store)
        assert ([message.text for message in turn.messages], turn.entries) == (["three"], ())
        await store.turns.release(turn.run)
    spoil(tmp_path, seqs[2])
    async with opened(tmp_path) as store:
        assert await texts_of_turns(store) == []
        view = await store.reads.turn(turn.turn_id)
        assert view is not None
        assert (view.state, view.error_kind) == (TurnState.FAILED, "unreadable")


def spoil(home: Path, seq: int) -> None:
    Stored(home).spoil("UPDATE inbox SET payload='{' WHERE seq=?", seq)


async def test_a_turn_that_goes_on_answers_what_steered_it_too(store: Store) -> None:
    await accept(store, "one", InboundKind.API, turn_id="t1")
    for text in ("two", "three"):
        assert await store.inbox.steer("t1", message(text, InboundKind.API))
    turn = await claim(store)
    assert [message.text for message in turn.messages] == ["one", "two", "three"]
    await store.turns.release(turn.run)
    assert (await claim(store)).messages == turn.messages


async def test_what_steered_a_turn_in_vain_is_answered_after_it(store: Store) -> None:
    turn = await accept_and_claim(store, "one", InboundKind.API, turn_id="t1")
    for text in ("two", "three"):
        assert await store.inbox.steer("t1", message(text, InboundKind.API))
    await fail(store, turn)
    assert await texts_of_turns(store) == [["two"], ["three"]]


# /stop and /new: what they end, and what they leave alone.


async def test_a_turn_that_waits_is_ended_once_though_it_was_steered(store: Store) -> None:
    await accept(store, turn_id="t1")
    assert await store.inbox.steer("t1", message("more", InboundKind.API))
    stop = await accept(store, "/stop", InboundKind.COMMAND)
    kept = await store.stops.stop(stop, KEY, lambda stopped: ())
    assert kept.stopped.turns == ("t1",)
    assert kept.stopped.dropped == 1
    assert not kept.stopped.running
    assert (await store.reads.totals()).waiting == 0


async def test_what_steers_a_turn_that_is_stopped_does_not_wait_for_ever(tmp_path: Path, store: Store) -> None:
    await accept(store, turn_id="t1")
    stop = await accept(store, "/stop", InboundKind.COMMAND)
    assert await store.inbox.steer("t1", message("more", InboundKind.API))
    await store.stops.stop(stop, KEY, lambda stopped: ())
    assert Stored(tmp_path).messages("state") == [("dropped",), ("done",), ("dropped",)]


async def test_a_turn_of_a_later_message_goes_on(store: Store) -> None:
    """A command that could not be written at once finds the next message running already."""
    early = await accept(store, "/stop", InboundKind.COMMAND)
    claimed = await accept_and_claim(store, "the next")
    assert (await store.stops.stop(early, KEY, lambda stopped: ())).stopped == Stopped()
    view = await store.reads.turn(claimed.run.turn_id)
    assert view is not None
    assert view.state is TurnState.RUNNING
    late = await accept(store, "/stop", InboundKind.COMMAND)
    assert (await store.stops.stop(late, KEY, lambda stopped: ())).stopped.running


async def test_what_is_written_after_a_stop_is_not_dropped_by_it(store: Store) -> None:
    """Also when the command is carried out late."""
    await accept(store, "before")
    stop = await accept(store, "/stop", InboundKind.COMMAND)
    await accept(store, "after")
    assert (await store.stops.stop(stop, KEY, lambda stopped: ())).stopped.dropped == 1
    assert (await claim(store)).messages[0].text == "after"


async def test_a_command_has_its_effect_once(tmp_path: Path, store: Store) -> None:
    """Recovery and whoever was told of it may both come to carry it out."""
    await accept(store)
    new = await accept(store, "/new", InboundKind.COMMAND)
    block = Planned(source=sentence("cmd"), body="A new conversation.", nonce=1)
    first = await store.stops.stop(new, KEY, lambda stopped: [block], ending=Ending(renew="second transcript"))
    assert len(first.deliveries) == 1
    before = Stored(tmp_path).everything()
    again = await store.stops.stop(new, KEY, lambda stopped: [block], ending=Ending(renew="third transcript"))
    assert (again.stopped, again.deliveries) == (Stopped(), ())
    assert Stored(tmp_path).everything() == before


# An edit replaces the words of a message that waits, if its author is let in.


async def test_an_edit_that_is_refused_changes_nothing(tmp_path: Path, store: Store) -> None:
    """Its author was let in when the message came, and is not any more."""
    asked = message("a question")
    edit = replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="another")
    refused = AcceptedMessage(message=edit, session_key=None, state="dropped", reason="access")
    await store.inbox.accept([AcceptedMessage(message=asked, session_key=KEY), refused])
    assert (await claim(store)).messages[0].text == "a question"
    assert Stored(tmp_path).messages("reason") == [(None,), ("access",)]
