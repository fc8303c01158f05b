"""One turn may answer several messages: of one place, in order, and none across a command."""

from pathlib import Path

from agent.events import Outcome
from agent.message import Text
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.turns import Turn, TurnState
from bot.store.store import Store
from channels.message import InboundKind
from tests.bot.store.opened import KEY, accept, answering, claim, message, opened, whole
from tests.stored import Stored


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


async def test_messages_are_taken_together_and_keep_their_lines(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
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


async def test_what_came_from_another_place_is_another_turn(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for chat, text in (("1", "one"), ("1", "two"), ("2", "three"), ("1", "four")):
            await store.inbox.accept([AcceptedMessage(message=message(text, chat=chat), session_key=KEY, gathers=True)])
        assert await texts_of_turns(store) == [["one", "two"], ["three"], ["four"]]


async def test_what_can_be_asked_for_by_itself_is_a_turn_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for n, text in enumerate(("one", "two")):
            await accept(store, text, InboundKind.API, turn_id=f"t{n}", gathers=True)
        assert await texts_of_turns(store) == [["one"], ["two"]]


async def test_a_stop_ends_only_what_was_written_before_it(tmp_path: Path) -> None:
    """It may be carried out after a claim that was made behind it."""
    async with opened(tmp_path) as store:
        for text in ("one", "two"):
            await accept(store, text, gathers=True)
        stop = await accept(store, "/stop", InboundKind.COMMAND)
        await accept(store, "three", gathers=True)
        turn = await claim(store)
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


async def test_a_turn_that_goes_on_answers_what_steered_it_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one", InboundKind.API, turn_id="t1")
        for text in ("two", "three"):
            assert await store.inbox.steer("t1", message(text, InboundKind.API))
        turn = await claim(store)
        assert [message.text for message in turn.messages] == ["one", "two", "three"]
        await store.turns.release(turn.run)
        assert (await claim(store)).messages == turn.messages


async def test_what_steered_a_turn_in_vain_is_answered_after_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one", InboundKind.API, turn_id="t1")
        turn = await claim(store)
        for text in ("two", "three"):
            assert await store.inbox.steer("t1", message(text, InboundKind.API))
        await store.turns.finish(
            turn.run,
            Outcome.FAILED,
            error_kind="network",
            error_message=None,
            where=PlanIn(turn.conv_id),
            blocks=(),
        )
        assert await texts_of_turns(store) == [["two"], ["three"]]
