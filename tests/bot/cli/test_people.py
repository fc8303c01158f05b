"""`hark people`, with a service that runs and without one."""

import json
from pathlib import Path

from bot.inbound.pairing import digest
from tests.bot.cli.test_commands import NO_OLLAMA, Done, hark
from tests.bot.cli.test_pairing import TELEGRAM
from tests.bot.gateway.house import House
from tests.bot.persistence.test_people import stranger
from tests.bot.store.opened import opened
from tests.stored import Stored


async def test_the_service_that_runs_is_told(tmp_path: Path, at: House) -> None:
    assert (await hark(tmp_path, "people", "block", "telegram:6")).code == 0
    found = json.loads((await hark(tmp_path, "people", "--json")).out)
    assert [(one["sender"], one["standing"], one["by"]) for one in found] == [("6", "blocked", "console:owner")]
    assert await hark(tmp_path, "people", "revoke", "telegram:6") == Done(0, "telegram 6: is a stranger again.\n", "")
    done = await hark(tmp_path, "people", "revoke", "telegram:6")
    assert (done.code, done.out) == (1, "")
    assert "Nothing is stored of telegram:6" in done.error
    assert at.stored.everything()["person"] == []


async def test_without_a_service_it_is_stored_for_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA + TELEGRAM)
    async with opened(tmp_path / "state") as store:
        await store.inbox.accept([stranger("6", digest("ABCDEFGH"))])
    shown = await hark(tmp_path, "people")
    assert (shown.code, shown.out.startswith("waits: telegram 6 name 6, since ")) == (0, True)
    done = await hark(tmp_path, "people", "owner", "telegram:6")
    assert done == Done(0, "telegram 6 name 6: is an owner now.\n", "")
    assert Stored(tmp_path / "state").messages("state", sender="6") == [("waiting",)]
    refused = await hark(tmp_path, "people", "block", "telegram:six")
    assert (refused.code, "a Telegram user id" in refused.error) == (1, True)
