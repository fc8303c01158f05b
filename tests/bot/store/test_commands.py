"""/stop and /new: what they end, and what they leave alone."""

from pathlib import Path

from bot.persistence.turns import Ending, Stopped, TurnState
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, claim, message, opened
from tests.stored import Stored


async def test_a_turn_that_waits_is_ended_once_though_it_was_steered(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, turn_id="t1")
        assert await store.inbox.steer("t1", message("more", InboundKind.API))
        stop = await accept(store, "/stop", InboundKind.COMMAND)
        kept = await store.stops.stop(stop, KEY, lambda stopped: ())
        assert kept.stopped.turns == ("t1",)
        assert kept.stopped.dropped == 1
        assert not kept.stopped.running
        assert (await store.reads.totals()).waiting == 0


async def test_what_steers_a_turn_that_is_stopped_does_not_wait_for_ever(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, turn_id="t1")
        stop = await accept(store, "/stop", InboundKind.COMMAND)
        assert await store.inbox.steer("t1", message("more", InboundKind.API))
        await store.stops.stop(stop, KEY, lambda stopped: ())
        assert Stored(tmp_path).messages("state") == [("dropped",), ("done",), ("dropped",)]


async def test_a_turn_of_a_later_message_goes_on(tmp_path: Path) -> None:
    """A command that could not be written at once finds the next message running already."""
    async with opened(tmp_path) as store:
        early = await accept(store, "/stop", InboundKind.COMMAND)
        await accept(store, "the next")
        claimed = await claim(store)
        assert (await store.stops.stop(early, KEY, lambda stopped: ())).stopped == Stopped()
        view = await store.reads.turn(claimed.run.turn_id)
        assert view is not None
        assert view.state is TurnState.RUNNING
        late = await accept(store, "/stop", InboundKind.COMMAND)
        assert (await store.stops.stop(late, KEY, lambda stopped: ())).stopped.running


async def test_what_is_written_after_a_stop_is_not_dropped_by_it(tmp_path: Path) -> None:
    """Also when the command is carried out late."""
    async with opened(tmp_path) as store:
        await accept(store, "before")
        stop = await accept(store, "/stop", InboundKind.COMMAND)
        await accept(store, "after")
        assert (await store.stops.stop(stop, KEY, lambda stopped: ())).stopped.dropped == 1
        assert (await claim(store)).messages[0].text == "after"


async def test_a_command_has_its_effect_once(tmp_path: Path) -> None:
    """Recovery and whoever was told of it may both come to carry it out."""
    async with opened(tmp_path) as store:
        await accept(store)
        new = await accept(store, "/new", InboundKind.COMMAND)
        block = Planned(source=sentence("cmd"), body="A new conversation.", nonce=1)
        first = await store.stops.stop(new, KEY, lambda stopped: [block], ending=Ending(renew="second transcript"))
        assert len(first.deliveries) == 1
        before = Stored(tmp_path).everything()
        again = await store.stops.stop(new, KEY, lambda stopped: [block], ending=Ending(renew="third transcript"))
        assert (again.stopped, again.deliveries) == (Stopped(), ())
        assert Stored(tmp_path).everything() == before
