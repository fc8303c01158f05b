"""The recorded events of tests/channels/fixtures/discord_events.json: sound ones are read by discord.py."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import discord
import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.standins.discord_ledger import Json
from tests.standins.discord_objects import ALICE
from tests.standins.discord_server import DiscordServer
from tests.watch import PATIENCE

CORPUS: Json = json.loads((Path(__file__).parents[1] / "channels/fixtures/discord_events.json").read_text())


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    """A server that discord.py takes for Discord."""
    async with DiscordServer() as built:
        monkeypatch.setattr(Route, "BASE", built.base_url)
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(built.gateway_url))
        yield built


class Bot(discord.Client):
    """A client that notes every event by its name, and waits for one."""

    def __init__(self, **options: Any) -> None:
        intents = discord.Intents(guilds=True, messages=True, message_content=True, reactions=True, typing=True)
        super().__init__(intents=intents, max_messages=None, guild_ready_timeout=0.01, **options)
        self.seen: asyncio.Queue[tuple[str, tuple[Any, ...]]] = asyncio.Queue()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        self.seen.put_nowait((event, args))
        super().dispatch(event, *args, **kwargs)

    async def next(self, event: str) -> Any:
        """The first argument of the next event of this name, None when it has none."""
        async with asyncio.timeout(PATIENCE):
            while True:
                name, args = await self.seen.get()
                if name == event:
                    return args[0] if args else None


@asynccontextmanager
async def running(server: DiscordServer) -> AsyncIterator[Bot]:
    async with Bot() as bot:
        task = asyncio.create_task(bot.start(server.token))
        try:
            await bot.next("ready")
            yield bot
        finally:
            await bot.close()
            await asyncio.wait([task])


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
