"""`hark pairing`, with a service that runs and without one."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from bot.cli.local import carry_out
from bot.cli.people import settle, show_waiting
from bot.inbound.pairing import digest
from tests.bot.cli.test_commands import NO_OLLAMA, Done, hark
from tests.bot.gateway.house import house
from tests.bot.persistence.test_people import stranger
from tests.bot.store.opened import opened
from tests.stored import Stored

TELEGRAM = "channels: {telegram: {token: '1:x', base_url: 'http://127.0.0.1:9/bot'}}\n"


async def test_the_service_that_runs_is_told(tmp_path: Path) -> None:
    async with house(tmp_path, reply="yes") as at:
        await at.service.parts.store.inbox.accept([stranger("6", digest("ABCDEFGH"))])
        done = await hark(tmp_path, "pairing", "approve", "abcdefgh", "--owner")
        assert done == Done(0, "telegram 6 name 6: is an owner now.\n", "")
        await at.model.called()
        assert at.service.parts.people.owners == [("telegram", "6")]


def test_without_a_service_it_is_stored_for_the_next_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(NO_OLLAMA + TELEGRAM)

    async def ask() -> None:
        async with opened(tmp_path / "state") as store:
            await store.inbox.accept([stranger("6", digest("ABCDEFGH"))])

    asyncio.run(ask())
    assert carry_out(config, partial(settle, "ABCDEFGJ", "allowed")) == 1
    assert capsys.readouterr() == ("", "There is no such code. A code is good for an hour.\n")
    assert carry_out(config, show_waiting) == 0
    assert capsys.readouterr().out == "telegram 6 name 6\n"
    assert carry_out(config, partial(settle, "abcdefgh ", "allowed")) == 0
    assert capsys.readouterr().out == "telegram 6 name 6: may write to me now.\n"
    assert carry_out(config, partial(settle, "ABCDEFGH", "blocked")) == 1
    assert "used before" in capsys.readouterr().err
    stored = Stored(tmp_path / "state")
    assert stored.messages("state", sender="6") == [("waiting",)]
    (six,) = stored.everything()["person"]
    assert "console:owner" in six
    assert carry_out(config, show_waiting) == 0
    assert capsys.readouterr().out == "Nobody waits to be let in.\n"
