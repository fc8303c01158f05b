"""From waiting to steering: only into an open turn of the same session and place, and never past a command."""

from dataclasses import replace
from pathlib import Path

from agent.events import Outcome
from bot.clock import Clock
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.store.store import Store
from channels.message import ChatMoved, InboundKind, InboundMessage
from tests.bot.store.opened import KEY, accept, answering, claim, message, opened
from tests.watch import ManualTime, Watch


async def keep(store: Store, asked: InboundMessage, delay: int = 0) -> int:
    """Accept a message; returns its seq."""
    (answer,) = await store.inbox.accept([AcceptedMessage(message=asked, session_key=KEY, delay=delay)])
    return answer.seq


async def test_what_waits_is_read_before_the_next_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one")
        turn = await claim(store)
        seqs = [await accept(store, text) for text in ("two", "three")]
        assert [await store.inbox.steer(turn.turn_id, seq) for seq in reversed(seqs)] == [True, True]
        assert not await store.inbox.steer(turn.turn_id, seqs[0])
        lines = (await store.turns.results(turn.run, (), batch_done=True, events=())).entries
        assert [line.message.text for line in lines] == ["two", "three"]
        assert not await store.inbox.steer(turn.turn_id, seqs[0])
        assert await store.inbox.count_waiting(KEY) == 0


async def test_a_turn_that_has_ended_reads_nothing_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one")
        turn = await claim(store)
        seq = await accept(store, "two")
        await store.turns.finish(
            turn.run,
            Outcome.FAILED,
            error_kind="network",
            error_message=None,
            where=PlanIn(turn.conv_id),
            blocks=(),
        )
        assert not await store.inbox.steer(turn.turn_id, seq)
        assert (await claim(store)).messages[0].text == "two"


async def test_nothing_steers_from_elsewhere(tmp_path: Path) -> None:
    """From another place it would be answered where its writer does not look."""
    async with opened(tmp_path) as store:
        await accept(store, "one")
        turn = await claim(store)
        elsewhere = await keep(store, message("two", chat="2"))
        (other,) = await store.inbox.accept([AcceptedMessage(message=message("three"), session_key="another")])
        asked_for = await accept(store, "four", InboundKind.API, turn_id="t4")
        command = await accept(store, "/status", InboundKind.COMMAND)
        behind = await accept(store, "five")
        for seq in (elsewhere, other.seq, asked_for, command, behind, 99):
            assert not await store.inbox.steer(turn.turn_id, seq)
        assert await store.inbox.count_waiting(KEY) == 3


async def test_what_steers_can_be_edited_and_follows_its_chat(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one")
        turn = await claim(store)
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
        await accept(store, "one")
        turn = await claim(store)
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
