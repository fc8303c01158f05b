"""What a delivery is about reaches the channel, also over a restart; what a channel cannot do it is never asked."""

from pathlib import Path

import pytest

from bot.persistence.inbox import AcceptedMessage, Duplicate
from channels.message import InboundKind
from channels.outgoing import (
    Action,
    Button,
    Delivery,
    DeliveryState,
    NotSent,
    Planned,
    SendResult,
    Sent,
    Unknown,
)
from channels.sources import sentence, tool_message
from tests.bot.store.opened import accept, opened
from tests.service import Hark, running, session_of
from tests.stored import Like

IDEMPOTENT = [Action.EDIT, Action.DELETE, Action.REACT]
FULL = Planned(
    source=tool_message("t", "c"),
    piece=3,
    body='{"text":"Löschen? \u2028 \\"x\\" 😀"}',
    nonce=2**63 - 1,
    said="Löschen? \r\n",
    step=3,
    action=Action.EDIT,
    target="17/ü",
    reply_to="1700000000.000100",
    buttons=(Button("Allow 😀 once", "/approve 7f3 once"), Button('"No"', "\u2028{}")),
)


async def deliver(hark: Hark, *blocks: Planned, sender: str = "1") -> None:
    """Plan blocks in the chat of a person, as the answer to a command, and tell the outbox."""
    store = hark.service.parts.store
    message = hark.message("/help", sender, kind=InboundKind.COMMAND)
    (answer,) = await store.inbox.accept([AcceptedMessage(message=message, session_key=session_of(sender))])
    assert not isinstance(answer, Duplicate)
    kept = await store.commands.answer(answer.seq, blocks)
    hark.service.parts.outbox.send(kept.deliveries)


def states(hark: Hark) -> list[str]:
    """Of what was planned here, in the order of planning."""
    return [state for state, source in hark.stored.deliveries("state", "source") if not source.startswith("refused:")]


async def never(delivery: Delivery) -> SendResult:
    """What must not be asked."""
    raise AssertionError(f"asked for {delivery.action}")


async def test_everything_that_is_planned_reaches_the_channel_after_a_restart(tmp_path: Path) -> None:
    async def not_yet(delivery: Delivery) -> SendResult:
        return NotSent(None, "not connected")

    async with running(tmp_path) as hark:
        hark.channel.on_send = not_yet
        await deliver(hark, FULL)
        await hark.until(lambda: states(hark) == ["planned"], "the plan")
    async with running(tmp_path) as hark:
        await hark.until_texts(1)
        (delivery,) = hark.channel.sent
        assert {name: getattr(delivery, name) for name in Planned.__dataclass_fields__} == {
            name: getattr(FULL, name) for name in Planned.__dataclass_fields__
        }
        assert delivery.place.chat == "1"
        assert (delivery.state, delivery.attempts) == (DeliveryState.SENDING, 1)
        await hark.delivered()
        assert states(hark) == ["sent"]


@pytest.mark.parametrize("action", sorted(set(Action) - {Action.SEND, Action.PREVIEW}))
async def test_an_action_that_a_channel_lacks_is_refused(tmp_path: Path, action: Action) -> None:
    """Of a message the owner is told."""
    async with running(tmp_path, channel={"actions": frozenset(Action) - {action}}) as hark:
        await hark.say("I am the owner")
        await deliver(hark, Planned(source=sentence("a"), body="x", nonce=1, action=action, target="7"), sender="2")
        await deliver(hark, Planned(source=sentence("b"), body="words", nonce=2), sender="2")
        await hark.delivered()
        if action is Action.FILE:
            notice = (await hark.until_texts(2))[-1]
            assert notice.startswith("Telegram refused a message to chat 2, so it was not delivered: ")
            assert f'it cannot carry out the action "{action.value}". /status lists such messages; I tell' in notice
        else:
            assert len(hark.stored.deliveries(source=Like("refused:%"))) == 0
        assert hark.channel.texts("2") == ["words"]
        assert states(hark)[-2:] == ["failed", "sent"]


@pytest.mark.parametrize("action", IDEMPOTENT)
async def test_what_is_idempotent_is_repeated_until_its_outcome_is_known(tmp_path: Path, action: Action) -> None:
    calls: list[int] = []

    async def lose_twice(delivery: Delivery) -> SendResult:
        calls.append(delivery.attempts)
        return Unknown("no answer") if len(calls) < 3 else Sent("7")

    async with running(tmp_path) as hark:
        hark.channel.on_send, hark.channel.on_settle = lose_twice, never
        await deliver(hark, Planned(source=sentence("a"), body="x", nonce=1, action=action, target="7"))
        for count, pause in ((1, 2.0), (2, 4.0)):
            await hark.time.until_pause(pause)
            assert (len(calls), states(hark)) == (count, ["planned"])
            hark.time.advance(pause)
        await hark.delivered()
        assert (calls, states(hark)) == ([1, 2, 3], ["sent"])


@pytest.mark.parametrize("action", sorted(set(Action) - {Action.PREVIEW}))
async def test_a_call_that_a_crash_cut_is_repeated_or_settled(tmp_path: Path, action: Action) -> None:
    async with opened(tmp_path / "state") as store:
        seq = await accept(store, "/help", InboundKind.COMMAND)
        block = Planned(source=sentence("a"), body="x", nonce=1, action=action, target="7")
        kept = await store.commands.answer(seq, [block])
        assert (
            await store.deliveries.begin(kept.deliveries[0].delivery_id, kept.deliveries[0].conv_id, 10**12) is not None
        )
    async with running(tmp_path) as hark:
        await hark.until(lambda: states(hark) == ["sent"], "its end")
        assert [(sent.action, sent.attempts) for sent in hark.channel.sent] == [(action, 2)]
        assert [found.action for found in hark.channel.looked_for] == ([] if action in IDEMPOTENT else [action])
