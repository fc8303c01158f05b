"""The recorded events of tests/channels/fixtures/discord_events.json: sound ones are read by discord.py."""

import json
import logging
from pathlib import Path

import pytest

from tests.standins.discord_ledger import Json
from tests.standins.discord_objects import ALICE
from tests.standins.discord_server import DiscordServer
from tests.standins.test_discord_library import running, server

CORPUS: Json = json.loads((Path(__file__).parents[1] / "channels/fixtures/discord_events.json").read_text())
__all__ = ["server"]  # the fixture


async def test_the_library_reads_every_sound_event(server: DiscordServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    events = {one["name"]: one for one in CORPUS["events"]}
    own = [events.pop("ready"), events.pop("guild")]
    async with running(server) as bot:
        for one in [own[1], *events.values()]:
            server.push_raw(one["t"], one["d"])
        server.dm(ALICE, "the end")
        while (await bot.next("message")).content != "the end":
            pass
    assert (len(server.identified), server.resumed, problems(caplog)) == (1, [], [])


def problems(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged but for the voice that nobody needs."""
    return [text for text in caplog.messages if "voice" not in text]


def test_every_event_has_a_name_of_its_own() -> None:
    for kind in ("events", "malformed"):
        names = [one["name"] for one in CORPUS[kind]]
        assert len(names) == len(set(names)) > 80
        assert all(one.keys() == {"name", "t", "d"} for one in CORPUS[kind])


async def test_the_stand_in_tells_events_as_they_were_recorded(server: DiscordServer) -> None:
    """Each field that the stand-in sends is one of a recorded event of the same kind, and the important ones agree."""
    recorded: dict[str, set[str]] = {}
    for one in CORPUS["events"]:
        recorded.setdefault(one["t"], set()).update(one["d"])
    guild = server.add_guild("Home")
    room = server.add_channel(guild)
    async with running(server):
        first = server.say(room, ALICE, "hello")
        thread = server.add_thread(room, "talk", message=first)
        server.archive(thread)
        server.edit(first, "hello!")
        server.react(first)
        server.react(first, remove=True)
        server.typing(room)
        server.dm(ALICE, "psst")
        server.delete(first)
        server.delete(server.say(room, ALICE, "a"), server.say(room, ALICE, "b"))
        server.delete_channel(thread)
        server.delete_channel(server.add_channel(guild, "other"))
        server.remove_guild(guild)
        (session,) = server.sessions.values()
        told = {one["t"]: one["d"] for one in session.events}
    assert told.keys() == recorded.keys() - {"SOMETHING_NEW", "INTERACTION_CREATE", "CHANNEL_UPDATE"}
    for event, data in told.items():
        assert data.keys() <= recorded[event], event
