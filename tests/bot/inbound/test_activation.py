"""/activation in the real service: what is answered in a group or a thread, as an owner sets it from there."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.persistence.inbox import AcceptedMessage
from tests.bot.inbound.test_groups import CHAT, hear, said, settings
from tests.scripted_model import texts
from tests.service import Hark, running


async def activate(hark: Hark, mode: str, thread: str = "") -> None:
    (answer,) = await hear(hark, said(hark, f"!activation {mode}", "1", thread))
    assert answer == f"Activation is {mode}."


async def heard(hark: Hark, thread: str = "") -> list[bool]:
    """Whether a message is answered that does not name the bot, one that does, and a command."""
    plain, named = said(hark, "hello", thread=thread), said(hark, "hello", thread=thread, mentioned=True)
    return [bool(await hear(hark, one)) for one in (plain, named, said(hark, "!status", thread=thread))]


@pytest.mark.parametrize(
    ("mode", "answered"),
    [("mention", [False, True, True]), ("always", [True, True, True]), ("off", [False, False, True])],
)
@pytest.mark.parametrize("require_mention", [True, False])
async def test_it_answers_what_was_set_also_after_a_restart(
    tmp_path: Path, mode: str, answered: list[bool], require_mention: bool
) -> None:
    config = settings({"require_mention": require_mention})
    async with running(tmp_path, config=config) as hark:
        assert await heard(hark) == [not require_mention, True, True]
        await activate(hark, mode)
        assert await heard(hark) == answered
    async with running(tmp_path, config=config) as hark:
        assert await heard(hark) == answered
        (status,) = await hear(hark, said(hark, "!status"))
        assert f"**Activation** {mode}" in status
        assert await hear(hark, said(hark, "!activation", "1")) == [f"Activation is {mode}."]


async def test_a_thread_that_it_takes_part_in_is_quieted_and_no_other(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        for thread in ("7", "8"):
            assert len(await hear(hark, said(hark, "hello", thread=thread, mentioned=True))) == 1
        await activate(hark, "mention", "7")
        assert await heard(hark, "7") == [False, True, True]
        assert await heard(hark, "8") == [True, True, True]
        assert await heard(hark) == [False, True, True]
        await hear(hark, said(hark, "the door is blue", thread="7"))
        await hear(hark, said(hark, "what colour?", thread="7", mentioned=True))
        asked = [text for request in hark.model.requests for text in texts(request, "user") if "what colour?" in text]
        assert "the door is blue" in asked[0], "what it does not answer is overheard"


async def test_only_owners_set_it_and_only_among_others(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        hark.model.add("What is that?")
        await hear(hark, said(hark, "/activation always", "2", mentioned=True))
        assert await heard(hark) == [False, True, True]
        sent = len(hark.channel.texts())
        await hark.write("/activation off")
        assert "Directly I always answer" in (await hark.until_texts(sent + 1))[sent]
        assert len((await hark.say("hello")).texts) == 1


async def test_what_is_for_somebody_else_is_not_answered_whatever_is_set(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        await activate(hark, "always")
        other = (said(hark, "@ada?", names_others=True), said(hark, "/stop@other_bot"))
        assert await hear(hark, *other) == []


async def test_settings_that_cannot_be_read_are_as_if_nothing_was_set(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        await activate(hark, "off")
        broken = "UPDATE session SET settings='{' WHERE session_key LIKE '%group%'"
        await hark.service.parts.store.writer.write(lambda db: db.execute(broken))  # type: ignore[attr-defined]
        item = AcceptedMessage(message=said(hark, "hello"), session_key=f"agent:main:telegram:group:{CHAT}")
        (answer,) = await hark.service.parts.store.inbox.accept([replace(item, follows="shut")])
        assert answer.state == "overheard"  # type: ignore[union-attr]
