"""Freezes at the store: each transaction that starts something refuses it while that is frozen, whoever calls."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.journal import Begun, CallResult
from agent.message import Mark, Message, Text, ToolResult
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.errors import StaleRun
from bot.persistence.freezes import Frozen, What
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.schedules import Firing, Job
from bot.persistence.turns import Turn, TurnState
from bot.store.store import Store
from channels.message import InboundKind
from channels.outgoing import DeliveryState, Planned, Sent
from channels.sources import frozen, sentence
from heartbeat.schedule import At
from tests.bot.persistence.contract import CALL, DAY, Opens, accept, answer, claim, settled
from tests.bot.store.opened import KEY, accept_and_claim, answering, message, whole


async def freeze(store: Store, *whats: What) -> None:
    for what in whats:
        await store.freezes.freeze(what, "Ana (telegram:1)", "telegram:1")


async def refused(store: Store, **wanted: bool) -> Frozen:
    """Try to claim, which a freeze refuses."""
    with pytest.raises(Frozen) as found:
        await claim(store, **wanted)
    return found.value


async def results(store: Store, turn: Turn) -> bool:
    """Store the result of the call; returns whether the run is over because of a freeze."""
    result = CallResult(ToolResult("c1", "act", "did it"), "done")
    return (await store.turns.results(turn.run, [result], batch_done=True, events=())).halted


async def queued(store: Store, turn: Turn) -> None:
    """The turn of a run waits, the run does not hold it any more, and no crash was counted."""
    view = await store.reads.turn(turn.turn_id)
    assert view is not None
    assert view.state is TurnState.QUEUED
    with pytest.raises(StaleRun):
        await store.turns.note(turn.run, Message("user", (Text("still here"),)))
    assert await store.recovery.cut_turns("another") == []


async def test_no_turn_is_claimed_while_all_is_frozen_and_then_in_order(opens: Opens) -> None:
    async with opens() as store:
        await freeze(store, "all")
        await accept(store, "one", "two")
        assert [place.chat for _, place in (await refused(store)).untold] == ["1"]
    async with opens() as store:  # a restart changes nothing of it
        await refused(store)
        assert (await store.freezes.thaw())[0].messages == 2
        turn = await claim(store)
        assert [one.text for one in turn.messages] == ["one"]


@pytest.mark.parametrize("what", ["tools", "network", "beats"])
async def test_other_freezes_let_people_be_answered(what: What, store: Store) -> None:
    await freeze(store, what)
    turn = await accept_and_claim(store, "one")
    assert await answer(store, turn, said=["fine"]) is not None


async def test_who_waits_is_named_until_they_are_told(store: Store) -> None:
    await freeze(store, "all")
    await accept(store, "one")
    held = await refused(store)
    ((conv_id, _),) = held.untold
    told = Planned(source=frozen(held.freeze.since, conv_id), body="frozen", nonce=1)
    await store.deliveries.tell_owner(_notice(held, [told]))
    assert (await refused(store)).untold == []


async def test_results_are_kept_and_no_further_model_call_begins(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await answer(store, turn, CALL)
    assert await store.turns.start_calls(turn.run, ["c1"], ())
    await freeze(store, "all")
    assert await results(store, turn)
    await queued(store, turn)
    await refused(store)
    await store.freezes.thaw()
    again = await claim(store)
    assert again.turn_id == turn.turn_id
    lines = await store.reads.context(turn.transcript_id)
    assert [line.message.tool_results[0].text for line in lines if line.kind == "tool_result"] == ["did it"]


async def test_an_answer_is_kept_and_what_follows_it_does_not_begin(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await freeze(store, "all")
    note = Message("user", (Text("go on"),), mark=Mark.LIMIT)
    step = whole(turn.run, Text("the beginning"), step=1)
    kept, _ = await store.turns.step(turn.run, replace(step, note=note), PlanIn(turn.conv_id), ())
    assert kept.halted
    await queued(store, turn)


async def test_another_try_of_an_answer_does_not_begin(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await freeze(store, "all")
    assert (await store.turns.cut(turn.run, lambda cut: (), heard=None)).halted
    await queued(store, turn)


@pytest.mark.parametrize(
    ("frozen_now", "reaches", "starts"),
    [
        (("all",), None, Begun.HALTED),
        (("tools",), None, Begun.HALTED),
        (("tools",), True, Begun.HALTED),
        (("network",), None, Begun.DEPENDS),
        (("network",), True, Begun.HALTED),
        (("network",), False, Begun.YES),
        (("beats",), True, Begun.YES),
        ((), None, Begun.YES),
    ],
)
async def test_a_call_starts_only_where_nothing_holds_it(
    frozen_now: Sequence[What], reaches: bool | None, starts: Begun, store: Store
) -> None:
    turn = await accept_and_claim(store, "one")
    await answer(store, turn, CALL)
    await freeze(store, *frozen_now)
    assert await store.turns.start_calls(turn.run, ["c1"], (), reach_out=reaches) is starts
    if starts is Begun.HALTED:
        await queued(store, turn)
        assert (await refused(store)).freeze.what == frozen_now[0]
        await store.freezes.thaw()
        again = await claim(store)
        assert (again.turn_id, again.entries) == (turn.turn_id, ())
        assert await store.turns.start_calls(again.run, ["c1"], ())
    else:  # the run holds its turn
        assert await store.turns.start_calls(turn.run, ["c1"], (), reach_out=False)


async def test_a_turn_that_wants_to_reach_out_waits_under_a_narrower_freeze_as_well(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await answer(store, turn, CALL)
    await freeze(store, "network")
    assert await store.turns.start_calls(turn.run, ["c1"], (), reach_out=True) is Begun.HALTED
    await accept(store, "two")
    assert (await refused(store)).freeze.what == "network"  # later messages come behind it
    await freeze(store, "tools")
    assert (await refused(store)).freeze.what == "tools"


async def test_what_turns_say_waits_and_what_the_service_says_does_not(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    before = [Planned(source=sentence("a block"), body="first", nonce=1, said="first", step=1)]
    (planned,) = await store.turns.plan(turn.run, PlanIn(turn.conv_id), before)
    await freeze(store, "all")
    assert await store.deliveries.begin(planned.delivery_id, turn.conv_id, DAY) is None
    assert await store.deliveries.next(turn.conv_id) is None
    told = Planned(source=sentence("cmd", 7), body="frozen", nonce=2)
    (command,) = await store.inbox.accept(
        [AcceptedMessage(message=message("/status", InboundKind.COMMAND), session_key=KEY)]
    )
    kept = await store.commands.answer(command.seq, [told])
    assert (await store.deliveries.next(turn.conv_id)) == kept.deliveries[0]
    assert await settled(store, kept.deliveries[0], Sent("9")) is None
    await store.freezes.thaw()
    first = await store.deliveries.next(turn.conv_id)
    assert first is not None
    assert first.body == "first"


async def test_a_block_of_a_frozen_turn_does_not_begin_with_its_plan(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await freeze(store, "all")
    block = Planned(source=sentence("a block"), body="first", nonce=1, said="first", step=1)
    (planned,) = await store.turns.plan(turn.run, PlanIn(turn.conv_id, sending=True), [block])
    assert planned.state is DeliveryState.PLANNED


@pytest.mark.parametrize("what", ["all", "beats"])
async def test_no_beat_and_no_job_is_fired(what: What, store: Store) -> None:
    job = Job(
        job_id="j",
        name="j",
        schedule=At(at=5),
        prompt="do it",
        origin=message().origin,
        session_key=KEY,
        own=False,
        next_at=5,
    )
    await store.schedules.put(job)
    assert (await store.schedules.due(10))[0] == [job]
    await freeze(store, what)
    assert await store.schedules.due(10) == ([], None)
    run = AcceptedMessage(message=message("do it", InboundKind.JOB), session_key=KEY, turn_id="t1")
    firing = Firing(job_id="j", due_at=5, cause="due", session_key=KEY, turn_id="t1")
    assert await store.schedules.fire(job, [firing], None, run) == "frozen"
    await store.freezes.thaw()
    assert await store.schedules.fire(job, [firing], None, run) == "fired"


async def test_a_fired_beat_is_passed_over_and_people_are_not(store: Store) -> None:
    await accept(store, "beat", kind=InboundKind.WAKE)
    await freeze(store, "beats")
    assert await store.turns.claim(KEY, "one", answering, background=True) is None
    await accept(store, "one")
    turn = await claim(store)
    assert [one.text for one in turn.messages] == ["one"]


async def test_a_beat_under_way_stops_at_its_next_step_and_holds_up_nobody(store: Store) -> None:
    await accept(store, "beat", kind=InboundKind.WAKE)
    beat = await claim(store, background=True)
    await answer(store, beat, CALL)
    assert await store.turns.start_calls(beat.run, ["c1"], ())
    await freeze(store, "beats")
    assert await results(store, beat)
    await queued(store, beat)
    turn = await accept_and_claim(store, "one")
    assert turn.turn_id != beat.turn_id
    assert await answer(store, turn, said=["fine"]) is not None
    assert await store.turns.claim(KEY, "one", answering, background=True) is None
    await store.freezes.thaw()
    assert (await claim(store, background=True)).turn_id == beat.turn_id


async def test_a_freeze_is_kept_with_who_and_where_and_stays_as_it_began(store: Store) -> None:
    await freeze(store, "beats")
    found, _ = await store.freezes.freeze("beats", "Bo", "slack:C1")
    assert [(one.what, one.who, one.place) for one in found] == [("beats", "Ana (telegram:1)", "telegram:1")]
    await freeze(store, "network")
    assert {one.what for one in await store.freezes.all()} == {"beats", "network"}
    assert len((await store.freezes.thaw())[0].freezes) == 2
    assert await store.freezes.all() == []


async def test_a_command_that_was_carried_out_freezes_nothing_anew(store: Store) -> None:
    (seq,) = await accept(store, "/freeze", kind=InboundKind.COMMAND)
    for _ in range(2):
        await store.freezes.freeze("all", "Ana", "telegram:1", (seq, lambda found: ()))
    await store.freezes.thaw()
    await store.freezes.freeze("all", "Ana", "telegram:1", (seq, lambda found: ()))
    assert await store.freezes.all() == []


def _notice(held: Frozen, blocks: Sequence[Planned]) -> OwnerNotice:
    ((_, place),) = held.untold
    return OwnerNotice((), place, lambda where: blocks)
