"""The Discord stand-in driven by discord.py, so that it is not a server only for raw calls."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.standins import discord_objects as objects
from tests.standins.discord_objects import ALICE, BOB, OTHER_BOT
from tests.standins.discord_server import DiscordServer
from tests.watch import PATIENCE


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

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Without the five seconds that the library waits before a second IDENTIFY."""

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


async def test_what_people_do_is_told(server: DiscordServer) -> None:
    guild = server.add_guild("Home", BOB)
    room = server.add_channel(guild)
    async with running(server) as bot:
        first = server.say(room, ALICE, "see https://example.org/")
        server.preview(first)
        assert (await bot.next("raw_message_edit")).data["edited_timestamp"] is None
        server.edit(first, "see")
        assert (await bot.next("raw_message_edit")).data["edited_timestamp"] is not None
        server.react(first, "🎉", BOB)
        assert str((await bot.next("raw_reaction_add")).emoji) == "🎉"
        second = server.say(room, BOB, "yes", reply_to=first)
        assert (await bot.next("message")).reference.resolved.id == int(first["id"])
        server.typing(room, BOB)
        await bot.next("raw_typing")
        server.delete(first, second)
        assert (await bot.next("raw_bulk_message_delete")).message_ids == {int(first["id"]), int(second["id"])}
        server.webhook_says(room, "build passed")
        hooked = await bot.next("message")
        assert (hooked.webhook_id, hooked.author.bot) == (hooked.author.id, True)
        server.add_member(guild, OTHER_BOT)
        server.say(room, OTHER_BOT, "I am a bot")
        assert (await bot.next("message")).author.bot
        server.say(room, BOB, type=objects.BOOSTED)
        assert (await bot.next("message")).is_system()
        server.outage(guild)
        await bot.next("guild_unavailable")
        server.outage(guild, over=True)
        await bot.next("guild_available")
        server.change_channel(room, name="lounge")
        await bot.next("guild_channel_update")
        server.delete_channel(room)
        await bot.next("guild_channel_delete")
        server.remove_guild(guild)
        await bot.next("guild_remove")
