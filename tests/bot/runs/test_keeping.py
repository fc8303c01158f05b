"""What is said of a summary that is being made."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from bot.persistence.turns import TurnKind
from bot.runs.keeping import Keeping
from channels.message import ChatKind
from tests.watch import PATIENCE


async def test_a_run_that_is_stopped_meanwhile_has_sent_what_it_began_to_send() -> None:
    """A delivery that is begun and never sent would hold back its conversation until the next start."""
    asked, stored, sent = asyncio.Event(), asyncio.Event(), list[str]()

    async def tell(*_: object) -> str:
        asked.set()
        await stored.wait()
        return "begun"

    outbox = SimpleNamespace(notice=lambda *_: (), planning=lambda *_: contextlib.nullcontext(None), send=sent.append)
    given = SimpleNamespace(outbox=outbox, store=SimpleNamespace(compactions=SimpleNamespace(tell=tell)))
    place = SimpleNamespace(kind=ChatKind.DIRECT, channel="telegram")
    whose = {"session_key": "agent:main:telegram:dm:1", "conv_id": 1}
    turn = SimpleNamespace(kind=TurnKind.REPLY, place=place, turn_id="t", run=None, **whose)
    run = asyncio.create_task(Keeping(given, turn, None, print).lasts())  # type: ignore[arg-type]
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    run.cancel()
    await asyncio.sleep(0)
    stored.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert sent == ["begun"]
