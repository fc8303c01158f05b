"""Every 30 seconds the service looks into its store for what a signal that was lost has left there."""

from pathlib import Path

from bot.persistence.inbox import AcceptedMessage, Duplicate
from bot.service import SWEEP_EVERY
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.service import Hark, running, session_of


async def unheard(hark: Hark, text: str, kind: InboundKind = InboundKind.MESSAGE) -> int:
    """A message of person 1 that is in the store, and nobody was told; returns its place there."""
    item = AcceptedMessage(message=hark.message(text, kind=kind), session_key=session_of("1"))
    (answer,) = await hark.service.parts.store.inbox.accept([item])
    assert not isinstance(answer, Duplicate)
    return answer.seq


async def test_a_message_that_nobody_was_told_of_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.default = "Here."
        await hark.say("The lanes are open.", sender="2")
        await hark.time.until_pause(SWEEP_EVERY)
        await unheard(hark, "hello?")
        await hark.say("I am heard", sender="2")
        assert hark.channel.texts() == []
        hark.time.advance(SWEEP_EVERY)
        assert await hark.until_texts(1) == ["Here."]


async def test_a_delivery_that_nobody_was_told_of_is_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.time.until_pause(SWEEP_EVERY)
        seq = await unheard(hark, "/help", InboundKind.COMMAND)
        await hark.service.parts.store.commands.answer(
            seq, [Planned(source=sentence("cmd"), body="Some help.", nonce=1)]
        )
        hark.time.advance(SWEEP_EVERY - 1)
        await hark.write("hello", sender="2")
        await hark.until_texts(1, "2")
        assert hark.channel.texts() == []
        hark.time.advance(1)
        assert await hark.until_texts(1) == ["Some help."]
        await hark.delivered()
