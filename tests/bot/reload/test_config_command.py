"""/config shows what is configured and changes it, for owners alone."""

import asyncio
from pathlib import Path

import pytest

from bot.restart import BACK
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from tests.bot.reload.house import HOME, WAITS, House, house
from tests.standins.script import Gate, Say
from tests.watch import lanes_idle


async def write(hark: House, text: str, number: int, sender: str = "1") -> None:
    """Write a message with this number."""
    place = Place(channel="telegram", account="bot", chat=sender, kind=ChatKind.DIRECT)
    origin = Origin(place=place, sender=sender, message_id=str(number))
    at, key = hark.time.now(), f"m:{sender}:{number}"
    message = InboundMessage(origin=origin, event_key=key, kind=InboundKind.MESSAGE, text=text, sent_at=at)
    assert hark.channel.sink is not None
    await hark.channel.sink.accept([message], None)


async def said(hark: House, text: str, number: int, sender: str = "1") -> str:
    """What is answered to a command. number: of the message."""
    count = len(hark.channel.texts(sender))
    await write(hark, text, number, sender)
    await hark.channel.watch.until(lambda: len(hark.channel.texts(sender)) > count, f"an answer to {text}")
    return hark.channel.texts(sender)[count]


async def test_it_lists_what_is_no_default_without_secrets(tmp_path: Path) -> None:
    document = {**HOME, "web": {"search": {"api_key": "k-very-secret-word"}}}
    async with house(tmp_path, document) as hark:
        found = await said(hark, "/config", 1)
        assert "queue.debounce_ms: 0" in found
        assert "web.search.api_key: ***" in found
        assert "secret-word" not in found
        assert "max_concurrent" not in found
        assert str(tmp_path) not in found
        assert "16" in await said(hark, "/config get agent.max_concurrent", 2)
        assert "unknown key" in await said(hark, "/config get agent.nam", 3)


async def test_what_is_set_takes_effect_and_is_said_to(tmp_path: Path) -> None:
    async with house(tmp_path, HOME) as hark:
        assert await said(hark, "/config set queue.debounce_ms 70", 1) == "`queue.debounce_ms` took effect."
        assert hark.reload.routing.queue.debounce_ms == 70
        assert await said(hark, "/config set queue.debounce_ms 70", 2) == "`queue.debounce_ms` was that already."
        assert "allowed" in await said(hark, "/config set queue.debounce_ms soon", 3)
        assert hark.reload.file is not None
        assert hark.reload.file.load().queue.debounce_ms == 70
        assert len(hark.lines("took effect")) == 1


async def test_what_needs_a_restart_begins_one(tmp_path: Path) -> None:
    async with house(tmp_path, HOME) as hark:
        hark.service.parts.restart.on_due = hark.channel.watch.changed
        found = await said(hark, "/config set agent.name Otto", 1)
        assert found.startswith("`agent.name` is written, and needs a restart. I restart as soon as nothing runs")
        await hark.time.until_pause(WAITS)
        hark.time.advance(WAITS)
        await hark.channel.watch.until(lambda: hark.service.parts.restart.is_due, "the restart")
    async with house(tmp_path, {**HOME, "agent": {"drain_seconds": 0, "name": "Otto"}}) as hark:
        await hark.channel.watch.until(lambda: hark.channel.texts(), "the answer of the next process")
        assert hark.channel.texts() == [BACK]


async def test_no_secret_and_nothing_that_stands_elsewhere_is_set_in_a_chat(tmp_path: Path) -> None:
    async with house(tmp_path, HOME) as hark:
        before = (tmp_path / "config.yaml").read_text()
        tries = (
            "gateway.token 123456789",
            "agent.name command:id",
            "agent.name file:/etc/passwd",
            "agent.name ${HOME}",
            "owners ['file:/etc/passwd']",
            "providers.mine {api: openai-chat, api_keys: [abcdefgh]}",
        )
        for number, words in enumerate(tries):
            assert "not set in a chat" in await said(hark, f"/config set {words}", number + 1)
        assert (tmp_path / "config.yaml").read_text() == before


async def test_a_restart_with_a_broken_configuration_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with house(tmp_path, HOME) as hark:
        hark.write("queue: {moode: 1}")
        found = await said(hark, "/restart", 1)
        assert found.startswith("I do not restart")
        assert "queue.moode" in found
        hark.write({**HOME, "state": "elsewhere"})
        assert "another state folder" in await said(hark, "/restart", 2)
        assert not hark.service.parts.restart.is_due


async def test_a_configuration_that_breaks_while_a_restart_waits_ends_it_with_a_word(tmp_path: Path) -> None:
    async with house(tmp_path, HOME) as hark:
        await said(hark, "/restart", 1)
        hark.write("queue: {moode: 1}")
        await hark.time.until_pause(WAITS)
        hark.time.advance(WAITS)
        await hark.channel.watch.until(lambda: len(hark.channel.texts()) == 2, "the reason")
        assert hark.channel.texts()[1].startswith("I do not restart")
        assert not hark.service.parts.restart.is_due
    async with house(tmp_path, HOME) as hark:  # nobody waits any more
        assert "queue.debounce_ms" in await said(hark, "/config", 2)
        assert hark.channel.texts() == hark.channel.texts()[:1]


@pytest.mark.parametrize("ends", [True, False])
async def test_what_runs_is_waited_for_and_not_for_ever(tmp_path: Path, ends: bool) -> None:
    gate = Gate()
    async with house(tmp_path, {**HOME, "agent": {"drain_seconds": (99 if ends else 2.9) * WAITS}}) as hark:
        restart, watch = hark.service.parts.restart, hark.channel.watch
        restart.on_due = watch.changed
        hark.model.add(Say("at last", gate=gate))
        await write(hark, "hello", 1)
        await watch.until(lambda: hark.model.requests, "the run")
        await said(hark, "/restart", 2)
        for _ in range(2):
            await hark.time.until_pause(WAITS)
            hark.time.advance(WAITS)
        await hark.time.until_pause(WAITS)
        assert not restart.is_due
        if ends:
            gate.open()
            await watch.until(lambda: len(hark.channel.texts()) == 2, "the answer")
            await lanes_idle()
            await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name().startswith("deliver-")))
        hark.time.advance(WAITS)
        await watch.until(lambda: restart.is_due, "the restart")
        assert not ends or not hark.service.parts.lanes.active


async def test_for_others_both_are_words(tmp_path: Path) -> None:
    document = {**HOME, "channels": {**HOME["channels"], "telegram": {"enabled": False, "dm": {"policy": "open"}}}}
    async with house(tmp_path, document) as hark:
        hark.model.add("no idea")
        hark.model.add("neither")
        assert await said(hark, "/config", 1, sender="2") == "no idea"
        assert await said(hark, "/restart", 2, sender="2") == "neither"
