"""/allowlist and /whoami: whom owners let in by name, and who somebody is to the bot; and what /memory lists."""

from pathlib import Path

import pytest

from tests.bot.inbound.test_commands import command
from tests.service import Hark, running

CLOSED = {"owners": ["telegram:1"], "channels": {"telegram": {"dm": {"policy": "pairing", "allow_from": ["7"]}}}}


@pytest.mark.parametrize("policy", ["pairing", "allowlist"])
async def test_who_is_added_is_let_in_until_they_are_removed(tmp_path: Path, policy: str) -> None:
    config = {"owners": ["telegram:1"], "channels": {"telegram": {"dm": {"policy": policy, "allow_from": ["7"]}}}}
    async with running(tmp_path, config=config) as hark:
        (listed,) = (await command(hark, "/allowlist")).splitlines()
        assert listed.startswith("- let in: telegram 7, by the configuration")
        assert "`telegram` is nobody" in await command(hark, "/allowlist add telegram")
        assert "is an owner" in await command(hark, "/allowlist add telegram:1")
        assert (await command(hark, "/allowlist add telegram:6")).startswith("telegram 6: may write to me now.")
        assert "telegram 6" in await command(hark, "/allowlist list")
        assert len((await hark.say("hello", "6")).texts) == 1
    async with running(tmp_path, config=config) as hark:
        assert len((await hark.say("hello", "6")).texts) == 1
        assert (await command(hark, "/allowlist remove telegram:6")).startswith("telegram 6: is a stranger again.")
        before = len(hark.model.requests)
        await hark.write("hello", sender="6")
        await command(hark, "/status")
        assert len(hark.model.requests) == before
        assert "Nothing is stored of telegram:9" in await command(hark, "/allowlist remove telegram:9")


async def test_adding_somebody_takes_back_that_they_were_shut_out_and_answers_what_they_wrote(tmp_path: Path) -> None:
    async with running(tmp_path, config=CLOSED) as hark:
        await command(hark, "/people block telegram:6")
        await command(hark, "/allowlist add telegram:6")
        assert len((await hark.say("hello", "6")).texts) == 1
        await hark.write("may I?", sender="8")
        await hark.until_texts(1, "8")
        hark.model.add("You may.")
        await command(hark, "/allowlist add telegram:8")
        assert (await hark.until_texts(3, "8"))[1:] == ["You are let in. Welcome!", "You may."]


async def test_whoami_says_who_somebody_is(tmp_path: Path) -> None:
    config = CLOSED | {"approvals": {"approvers": ["telegram:7"]}}
    async with running(tmp_path, config=config) as hark:
        await command(hark, "/allowlist add telegram:6")
        here = "This is the session `agent:main:telegram:direct:{}`."
        assert await command(hark, "/whoami") == f"You are `telegram:1`, an owner of this bot. {here.format(1)}"
        decides = "a guest, and may decide what I ask for"
        assert await command(hark, "/whoami", "7") == f"You are `telegram:7`, {decides}. {here.format(7)}"
        assert (await command(hark, "/whoami", "6")).startswith("You are `telegram:6`, a guest, let in by an owner.")


async def test_memory_lists_the_files_of_the_room(hark: Hark) -> None:
    workspace = hark.service.parts.workspace
    assert "memory/" not in await command(hark, "/memory")
    (workspace / "MEMORY.md").write_text("# What I know\nThey like `lorem`.")
    (workspace / "memory").mkdir(exist_ok=True)
    for day in range(1, 33):
        (workspace / "memory" / f"2026-07-{day:02}.md").write_text(f"Day {day}")
    (workspace / "memory" / "link.md").symlink_to("/etc/passwd")
    lines = (await command(hark, "/memory")).splitlines()
    assert lines[0] == "- MEMORY.md, 32 bytes: `What I know`"
    assert lines[1] == "- memory/2026-07-32.md, 6 bytes: `Day 32`", "a link is no file"
    assert lines[-1] == "- and 2 older files in memory/"
