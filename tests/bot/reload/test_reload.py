"""What a running service takes over of a configuration that has changed, and what it says about it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.people.people import People
from bot.reload.reload import Reloaded
from tests.bot.reload.house import HOME, House, Json, house

USES = "changes nothing"


def document(**sections: Json) -> Json:
    return {**HOME, **{name: {**HOME.get(name, {}), **value} for name, value in sections.items()}}


@pytest.fixture
async def hark(tmp_path: Path) -> AsyncIterator[House]:
    """A service on the usual file."""
    async with house(tmp_path, HOME) as made:
        yield made


async def test_a_file_that_an_editor_has_replaced_is_noticed_and_each_key_is_said_once(
    tmp_path: Path, hark: House
) -> None:
    await hark.looks(2)
    (tmp_path / "new").write_text('{"queue": {"debounce_ms": 40}, "gateway": {"port": 0}, "heartbeat": {"every": 0}}')
    os.replace(tmp_path / "new", tmp_path / "config.yaml")
    await hark.looks(5)
    assert hark.lines("queue.debounce_ms") == ["queue.debounce_ms took effect"]
    assert hark.lines("gateway.port") == ["gateway.port needs a restart"]
    assert hark.lines("owners") == ["owners took effect"]
    assert hark.reload.routing.queue.debounce_ms == 40


async def test_a_file_that_is_being_written_is_read_when_it_is_whole(hark: House) -> None:
    await hark.looks(1)
    hark.write("queue: {debounce_ms: 5")
    await hark.looks(1)
    hark.write("queue: {debounce_ms: 50}")
    await hark.looks(3)
    assert not hark.lines(USES)
    assert hark.reload.routing.queue.debounce_ms == 50


async def test_a_broken_file_changes_nothing_and_is_said_once(hark: House) -> None:
    hark.write({**HOME, "queue": {"debounce_ms": 7, "moode": 1}, "owners": [1]})
    await hark.looks(6)
    assert len(hark.lines(USES)) == 1
    assert "queue.moode" in hark.lines(USES)[0]
    assert "owners" in hark.lines(USES)[0]
    assert hark.reload.routing.queue.debounce_ms == 0
    hark.write(document(queue={"debounce_ms": 7}))
    await hark.looks(3)
    assert len(hark.lines(USES)) == 1
    assert hark.lines("took effect") == ["queue.debounce_ms took effect"]


async def test_what_stands_elsewhere_is_watched_too(tmp_path: Path) -> None:
    """Files that keys name, also one that is missing at first, and the variables beside the configuration."""
    (tmp_path / "prompt.txt").write_text("Be short.")
    (tmp_path / ".env").write_text("PAUSE=10\n")
    written = document(heartbeat={"every": 0, "prompt": "file:prompt.txt"}, queue={"debounce_ms": "${PAUSE}"})
    async with house(tmp_path, written) as hark:
        await hark.looks(1)
        (tmp_path / "prompt.txt").write_text("Be long.")
        (tmp_path / ".env").write_text("PAUSE=20\n")
        await hark.looks(3)
        assert sorted(hark.lines("took effect")) == ["heartbeat.prompt took effect", "queue.debounce_ms took effect"]
        assert hark.reload.dispatcher.beats.settings.prompt == "Be long."
        (tmp_path / "prompt.txt").unlink()
        await hark.looks(3)
        assert len(hark.lines(USES)) == 1
        (tmp_path / "prompt.txt").write_text("Be kind.")
        await hark.looks(3)
        assert hark.reload.dispatcher.beats.settings.prompt == "Be kind."


async def test_a_variable_that_no_key_names_is_said_to_need_a_restart(tmp_path: Path, hark: House) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-ant-1234567890\n")
    await hark.looks(3)
    assert len(hark.lines(".env")) == 1
    assert "restart" in hark.lines(".env")[0]
    assert "sk-ant" not in str(hark.log)


async def test_what_was_put_back_needs_no_restart_any_more(hark: House) -> None:
    hark.write(document(gateway={"port": 9}))
    assert (await hark.reload.again()).waiting == ("gateway.port",)
    hark.write(document(gateway={"port": 9}, queue={"debounce_ms": 1}))
    assert await hark.reload.again() == Reloaded(("queue.debounce_ms",), ("gateway.port",))
    assert len(hark.lines("gateway.port")) == 1
    hark.write(document(gateway={"port": 10}))
    await hark.reload.again()
    assert len(hark.lines("gateway.port needs a restart")) == 2
    hark.write(HOME)
    assert (await hark.reload.again()).waiting == ()
    assert hark.lines("gateway.port")[-1] == "gateway.port is as it was again"


async def test_what_names_a_provider_that_needs_a_restart_waits_with_it(hark: House) -> None:
    mine = {"mine": {"api": "openai-chat", "base_url": "http://127.0.0.1:9"}}
    new = document(providers=mine, agent={"fallbacks": [{"model": "mine/m"}]}, queue={"debounce_ms": 3})
    hark.write(new)
    done = await hark.reload.again()
    assert not done.applied
    assert set(done.waiting) == {"providers.mine", "agent.fallbacks", "queue.debounce_ms"}
    assert not hark.reload.fleet.fallbacks
    assert hark.reload.routing.queue.debounce_ms == 0


async def test_a_file_that_commands_could_read_waits_for_the_restart_that_hides_it(tmp_path: Path, hark: House) -> None:
    (tmp_path / "key.txt").write_text("k-123456789")
    hark.write(document(web={"search": {"api_key": "file:key.txt"}}))
    assert await hark.reload.again() == Reloaded((), ("web.search.api_key",))


async def test_new_secrets_are_kept_out_of_everything(hark: House) -> None:
    hark.write(document(web={"search": {"api_key": "a-new-and-secret-word"}}))
    await hark.reload.again()
    assert hark.reload.known.redactor.clean("a-new-and-secret-word") == "[secret]"


async def test_who_becomes_an_owner_is_one_with_the_next_message_and_who_was_one_is_none(hark: House) -> None:
    people: People = hark.service.parts.people
    hark.write({**HOME, "owners": ["telegram:2"]})
    await hark.reload.again()
    assert people.owners == [("telegram", "2")]
    assert people.configured == ("telegram:2",)


async def test_the_heartbeat_beats_by_its_new_interval(hark: House) -> None:
    hark.write(document(heartbeat={"every": "90s"}))
    await hark.reload.again()
    job = await hark.reload.dispatcher.beats.job()
    assert job is not None
    assert job.next_at is not None
    assert 0 < job.next_at - hark.time.now() <= 90_000
