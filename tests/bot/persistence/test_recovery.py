"""What a worker left that is gone."""

from bot.persistence.turns import TurnState
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.persistence.contract import CALL, Opens, accept, answer, claim


async def test_only_turns_whose_lease_is_gone_are_taken(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store, "one")
        assert await store.recovery.cut_turns("one") == []
        assert not await store.recovery.recover(turn.turn_id, "one", ())
        await answer(store, turn, CALL)
        await store.turns.start_calls(turn.run, ["c1"], ())
        await store.turns.process_started(turn.run, "c1", 4711, "then")
        assert await store.recovery.leftovers("one") == []
    async with opens() as store:
        assert [found.pid for found in await store.recovery.leftovers("two")] == [4711]
        await store.recovery.forget(await store.recovery.leftovers("two"))
        assert await store.recovery.leftovers("two") == []
        (found,) = await store.recovery.cut_turns("two")
        assert (found.turn_id, found.channel) == (turn.turn_id, "telegram")
        assert await store.recovery.recover(found.turn_id, "two", ())
        assert await store.recovery.cut_turns("two") == []
        again = await claim(store, "two")
        assert (again.turn_id, again.run.attempt) == (turn.turn_id, 2)
        (result,) = (line for line in await store.reads.context(turn.transcript_id) if line.kind == "tool_result")
        assert "unknown" in result.message.parts[0].text  # type: ignore[union-attr]


async def test_twice_the_same_turn_is_the_end_of_it(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        for worker, follower in (("one", "two"), ("two", "three")):
            turn = await claim(store, worker)
            sorry = Planned(source=sentence(f"turn:{turn.turn_id}:error"), body="sorry", nonce=1)
            assert await store.recovery.recover(turn.turn_id, follower, [sorry]) is (worker == "one")
        view = await store.reads.turn(turn.turn_id)
        assert view is not None
        assert (view.state, view.error_kind) == (TurnState.FAILED, "crash")
        said = await store.deliveries.next(turn.conv_id)
        assert said is not None
        assert said.body == "sorry"
        assert await store.reads.last_failure() is not None
