"""What the book of messages says of rows that are as they should be, and of rows that are not."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.events import Outcome
from agent.message import Text
from bot.clock import Clock
from bot.persistence.balance import Unexplained
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.store.prune import DAY
from bot.store.store import Store
from channels.message import InboundKind, UnreadEvent
from channels.outgoing import Action, Planned, Refused, SendResult, Sent
from channels.sources import answer, of_turn, sentence
from tests.bot.persistence.test_people import stranger
from tests.bot.store.opened import KEY, accept, accept_and_claim, message, opened, whole
from tests.stored import Stored

ACCOUNT = "telegram:bot"
SENT = Sent("1")


def book(at: Path) -> tuple[int, int, int, list[str]]:
    """What was answered, told and is pending, and why the rest is not explained."""
    found = Stored(at).balance()
    assert [one.account for one in found.accounts] in ([ACCOUNT], [])
    one = found.accounts[0]
    assert one.accepted == one.answered + one.told + one.pending + len(one.unexplained)
    return one.answered, one.told, one.pending, [lost.why for lost in one.unexplained]


async def answered(store: Store, result: SendResult | None = SENT, text: str = "fine") -> str:
    """A message and its answer, which is sent with this result; None: it is not sent yet."""
    turn = await accept_and_claim(store)
    blocks = [Planned(source=answer(turn.turn_id, 1, 0), body=text, nonce=1, said=text, step=1)] if text else []
    where = PlanIn(turn.conv_id, sending=True)
    _, deliveries = await store.turns.step(turn.run, whole(turn.run, Text(text or "NO_REPLY")), where, blocks)
    for one in deliveries if result else ():
        await store.deliveries.settle(one, result, None)
    return turn.turn_id


async def test_each_message_is_answered_told_or_pending(tmp_path: Path, store: Store) -> None:
    await answered(store)
    assert book(tmp_path) == (1, 0, 0, [])
    await answered(store, text="")
    assert book(tmp_path) == (2, 0, 0, []), "silence is an answer"
    await answered(store, Refused("blocked"))
    assert book(tmp_path) == (2, 1, 0, [])
    await answered(store, None)
    assert book(tmp_path) == (2, 1, 1, [])
    seq = await accept(store, "/help", InboundKind.COMMAND)
    assert book(tmp_path) == (2, 1, 2, [])
    await store.commands.answer(seq, [Planned(source=sentence("cmd", seq), body="help", nonce=2)])
    await accept(store, state="dropped", reason=Cause.ACCESS, session_key=None)
    await accept(store, "", InboundKind.EDIT)
    assert book(tmp_path) == (2, 2, 2, []), "an edit is not asked of the bot"
    turn = await accept_and_claim(store)
    assert book(tmp_path) == (2, 2, 3, [])
    notice = [Planned(source=of_turn(turn.turn_id, "error"), body="It failed.", nonce=3)]
    kind = {"error_kind": "timeout", "error_message": None}
    await store.turns.finish(turn.run, Outcome.FAILED, where=PlanIn(turn.conv_id), blocks=notice, **kind)
    assert book(tmp_path) == (2, 2, 3, []), "nobody was told yet"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM inbox WHERE seq=1", "its row is missing"),
        ("DELETE FROM turn", "its turn is missing"),
        ("DELETE FROM delivery", "a delivery of it is missing"),
        ("UPDATE inbox SET state='dropped'", "it was dropped without a cause"),
        ("UPDATE inbox SET state='held'", "it is held without a cause"),
        ("UPDATE inbox SET state='waiting'", "it waits for a turn that has ended"),
        ("UPDATE inbox SET state='taken'", "its turn has ended without it"),
        ("UPDATE inbox SET turn_id=NULL", "no turn has taken it"),
        ("UPDATE turn SET state='running'", "it is done, but its turn goes on"),
        ("UPDATE turn SET state='failed'", "its turn has failed, and nobody was told"),
        ("UPDATE delivery SET state='failed'", "a delivery of it was given up without a cause"),
        ("UPDATE delivery SET source_kind='request', subject='x'", "a request of its turn is missing"),
        ("UPDATE delivery SET state='expired', cause='not said'", "its turn ended without an answer"),
    ],
)
async def test_what_rows_do_not_explain_is_named(tmp_path: Path, change: str, why: str) -> None:
    async with opened(tmp_path) as store:
        await answered(store)
    Stored(tmp_path).spoil(change)
    assert Stored(tmp_path).balance().unexplained == (Unexplained(ACCOUNT, "1", why),)
    assert book(tmp_path) == (0, 0, 0, [why])


@pytest.mark.parametrize("cause", [Cause.UNSENT, Cause.UNDONE])
async def test_what_was_kept_from_being_sent_is_told(tmp_path: Path, cause: Cause) -> None:
    async with opened(tmp_path) as store:
        await answered(store, None)
    Stored(tmp_path).spoil("UPDATE delivery SET state='expired', cause=?", cause)
    assert book(tmp_path) == (0, 1, 0, [])


async def test_a_row_that_nothing_names_is_put_to_the_account_of_those_beside_it(tmp_path: Path) -> None:
    place = replace(message().origin.place, channel="slack")
    async with opened(tmp_path) as store:
        for _ in range(3):
            await accept(store)
        there = replace(message(), origin=replace(message().origin, place=place))
        for _ in range(2):
            await accept(store)
        await store.inbox.accept([AcceptedMessage(message=there, session_key=KEY)])
    for seq in (2, 5):
        Stored(tmp_path).spoil("DELETE FROM inbox WHERE seq=?", seq)
    found = Stored(tmp_path).balance().unexplained
    assert {(one.message, one.account) for one in found} == {("2", ACCOUNT), ("5", "unknown")}


async def test_a_request_that_is_missing_is_named_with_the_message_that_waits_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept_and_claim(store)
    Stored(tmp_path).spoil("UPDATE turn SET state='parked', parked_on='x'")
    assert book(tmp_path) == (0, 0, 0, ["the request that it waits for is missing"])


async def test_an_answer_to_a_command_that_is_missing_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        seq = await accept(store, "/help", InboundKind.COMMAND)
        await store.commands.answer(seq, [Planned(source=sentence("other"), body="help", nonce=2)])
    assert book(tmp_path) == (0, 0, 1, [])
    Stored(tmp_path).spoil("DELETE FROM delivery")
    assert book(tmp_path) == (0, 0, 0, ["a delivery of it is missing"])


async def test_a_delivery_of_no_message_is_named_by_its_own_number(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await answered(store)
        await store.inbox.accept([stranger("6", "digest")])
        assert Stored(tmp_path).balance().unexplained == ()
    Stored(tmp_path).spoil("DELETE FROM turn")
    Stored(tmp_path).spoil("DELETE FROM delivery WHERE delivery_id=1")
    found = Stored(tmp_path).balance().unexplained
    assert [(one.message, one.why) for one in found] == [
        ("1", "its turn is missing"),
        ("d1", "this delivery is missing"),
    ]


async def test_what_is_offered_twice_leaves_no_gap(tmp_path: Path, store: Store) -> None:
    """A refused insertion uses up a number."""
    unread = UnreadEvent(channel="telegram", account="bot", event_key="u:1", raw="{", error="no JSON")
    shut_out = replace(stranger("6", "digest"), code="")
    await store.inbox.accept([unread, unread, shut_out, shut_out])
    turn = await accept_and_claim(store)
    preview = Planned(source=answer(turn.turn_id, 1, 0), body="f", nonce=1, action=Action.PREVIEW)
    where = PlanIn(turn.conv_id)
    for _ in range(2):
        await store.turns.plan(turn.run, where, [preview])
    for nonce in (2, 3):
        await store.turns.plan(turn.run, where, [replace(preview, body="fine", said="fine", step=1, nonce=nonce)])
    await accept(store)
    assert not Stored(tmp_path).balance().unexplained
    assert [seq for (seq,) in Stored(tmp_path).messages("seq")] == [1, 2, 3, 4]


async def test_what_was_pruned_stays_counted_and_what_was_not_explained_stays_named(tmp_path: Path) -> None:
    now = [1_000 * DAY]

    async def sleep(seconds: float) -> None:
        """Between two batches others may write."""

    async with opened(tmp_path, Clock(now=lambda: now[0], sleep=sleep)) as store:
        for _ in range(3):
            await answered(store)
        Stored(tmp_path).spoil("DELETE FROM delivery WHERE delivery_id=2")
        (accepted,) = Stored(tmp_path).balance().unexplained
        await store.balances.write_off(accepted, "console:owner")
        assert book(tmp_path) == (2, 1, 0, [])
        await accept(store, state="dropped", reason=Cause.ACCESS, session_key=None)
        lost = await answered(store)
        Stored(tmp_path).spoil("UPDATE inbox SET state='dropped' WHERE turn_id=?", lost)
        await answered(store)
        expected = (3, 2, 0, ["it was dropped without a cause"])
        assert book(tmp_path) == expected
        now[0] += 40 * DAY
        await accept(store)
        await store.prune()
        assert len(Stored(tmp_path).messages()) == 1
        assert Stored(tmp_path).deliveries() == []
        assert book(tmp_path) == (3, 2, 1, ["its row is missing"])
        (one,) = Stored(tmp_path).balance().unexplained
        await store.balances.write_off(one, "console:owner")
        assert book(tmp_path) == (3, 3, 1, [])
        assert len(Stored(tmp_path).everything()["gone"]) == 2, "numbers that follow each other are one row"
