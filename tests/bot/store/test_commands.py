"""/stop and /new: what they end, and what they leave alone."""

from pathlib import Path

from bot.store.values import Stopped, TurnState
from channels.message import InboundKind
from tests.bot.store.opened import KEY, accept, claim, message, opened


async def test_a_turn_that_waits_is_ended_once_though_it_was_steered(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, turn_id="t1")
        assert await store.inbox.steer("t1", message("more", InboundKind.API))
        stop = await accept(store, "/stop", InboundKind.COMMAND)
        kept = await store.commands.stop(stop, KEY, lambda stopped: ())
        assert [event.run.turn_id for event in kept.stopped.events] == ["t1"]
        assert kept.stopped.dropped == 1
        assert not kept.stopped.running
        assert (await store.reads.totals()).waiting == 0


async def test_what_steers_a_turn_that_is_stopped_does_not_wait_for_ever(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, turn_id="t1")
        stop = await accept(store, "/stop", InboundKind.COMMAND)
        assert await store.inbox.steer("t1", message("more", InboundKind.API))
        await store.commands.stop(stop, KEY, lambda stopped: ())
        states = await store._database.read(lambda db: db.execute("SELECT state FROM inbox ORDER BY seq").fetchall())
        assert states == [("dropped",), ("done",), ("dropped",)]


async def test_a_turn_of_a_later_message_goes_on(tmp_path: Path) -> None:
    """A command that could not be written at once finds the next message running already."""
    async with opened(tmp_path) as store:
        early = await accept(store, "/stop", InboundKind.COMMAND)
        await accept(store, "the next")
        claimed = await claim(store)
        assert (await store.commands.stop(early, KEY, lambda stopped: ())).stopped == Stopped()
        view = await store.reads.turn(claimed.run.turn_id)
        assert view is not None
        assert view.state is TurnState.RUNNING
        late = await accept(store, "/stop", InboundKind.COMMAND)
        assert (await store.commands.stop(late, KEY, lambda stopped: ())).stopped.running
