"""The Discord stand-in driven by discord.py, so that it is not a server only for raw calls."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.standins import discord_objects as objects
from tests.standins.discord_files import File
from tests.standins.discord_ledger import Rule
from tests.standins.discord_objects import ALICE, BOB, OTHER_BOT, Intent
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


async def test_a_conversation_in_a_guild(server: DiscordServer) -> None:
    guild = server.add_guild("Home", BOB)
    room = server.add_channel(guild, "general")
    early = server.say(room, BOB, "from before")
    async with running(server) as bot:
        assert bot.user is not None
        assert bot.user.id == server.bot.id
        known = bot.get_channel(int(room["id"]))
        assert isinstance(known, discord.TextChannel)
        assert known.last_message_id == int(early["id"])
        server.say(room, ALICE, f"{server.bot.mention} hello")
        message = await bot.next("message")
        assert (message.content, message.author.display_name) == (f"<@{server.bot.id}> hello", "Alice")
        assert bot.user in message.mentions

        answer = await message.reply("hi", mention_author=False)
        echo = await bot.next("message")
        assert (echo.id, echo.nonce, echo.reference.message_id) == (answer.id, answer.nonce, message.id)
        await answer.edit(content="hi!", suppress=True)
        assert (await bot.next("raw_message_edit")).cached_message is None
        await message.add_reaction("👀")
        await message.remove_reaction("👀", bot.user)
        async with known.typing():
            pass
        assert [one.content async for one in known.history(limit=2)] == ["hi!", message.content]
        await answer.delete()
        assert (await bot.next("raw_message_delete")).message_id == answer.id
    assert [one.method for one in server.sent] == ["send", "edit", "react", "unreact", "delete"]
    assert server.pinged() == []


async def test_direct_messages_bring_their_channel_with_the_first_one(server: DiscordServer) -> None:
    server.add_guild("Home")
    async with running(server) as bot:
        assert list(bot.private_channels) == []
        server.dm(ALICE, "psst")
        message = await bot.next("message")
        assert (message.content, message.guild) == ("psst", None)
        await message.channel.send("yes?")
        alice = await bot.fetch_user(ALICE.id)
        assert (await alice.create_dm()).id == message.channel.id
        await alice.send("me again")
    assert server.texts() == ["yes?", "me again"]


async def test_a_cut_connection_is_resumed_and_nothing_is_missed(server: DiscordServer) -> None:
    room = server.add_channel(server.add_guild("Home"))
    async with running(server) as bot:
        for cut in (lambda: server.close_gateway(4000), lambda: server.close_gateway(1006), server.reconnect):
            cut()
            await server.wait_for(lambda: not server.connected, "the end of the connection")
            server.say(room, ALICE, "meanwhile")
            assert (await bot.next("message")).content == "meanwhile"
            await bot.next("resumed")
    assert (len(server.identified), len(server.resumed)) == (1, 3)


async def test_an_invalid_session_is_begun_anew(server: DiscordServer) -> None:
    room = server.add_channel(server.add_guild("Home"))
    async with running(server) as bot:
        server.invalidate()
        await bot.next("ready")
        server.close_gateway(4000)
        server.forget_sessions()
        missed = server.say(room, ALICE, "nobody is told of this")
        await bot.next("ready")
        known = bot.get_channel(int(room["id"]))
        assert isinstance(known, discord.TextChannel)
        assert known.last_message_id == int(missed["id"])
        assert [one.content async for one in known.history(after=discord.Object(int(room["id"])))] == [
            missed["content"]
        ]
    assert (len(server.identified), len(server.resumed)) == (3, 1)


async def test_a_silent_gateway_is_noticed_by_its_heartbeats(server: DiscordServer) -> None:
    server.add_guild("Home")
    server.heartbeat_interval = 0.05
    async with Bot(heartbeat_timeout=0.1) as bot:
        task = asyncio.create_task(bot.start(server.token))
        await bot.next("ready")
        server.gateway_silent = True
        await bot.next("disconnect")
        server.gateway_silent = False
        await bot.next("resumed")
        await bot.close()
        await asyncio.wait([task])


async def test_commands_buttons_and_modals(server: DiscordServer) -> None:
    room = server.add_channel(server.add_guild("Home"))
    async with running(server) as bot:
        tree = discord.app_commands.CommandTree(bot)

        @tree.command(name="note", description="Keeps a note")
        async def note(interaction: discord.Interaction, text: str) -> None:
            await interaction.response.defer(ephemeral=False)
            await interaction.edit_original_response(content=f"kept {text}", view=Buttons())
            await interaction.followup.send("anything else?", ephemeral=True)

        await tree.sync()
        used = server.slash(ALICE, room, "note", {"text": "milk"})
        await server.wait_sent(2)
        assert used.original is not None
        assert used.original["content"] == "kept milk"
        assert [one["content"] for one in used.hidden] == ["anything else?"]
        (standing,) = server.messages(room)

        pressed = server.click(ALICE, standing, "ask")
        await server.wait_for(lambda: pressed.modal is not None, "a modal")
        server.submit(ALICE, pressed, words="two litres")
        await server.wait_text("two litres")
        assert server.messages(room)[0]["content"] == "kept milk: two litres"
        direct = server.slash(BOB, server.open_dm(BOB), "note", {"text": "tea"})
        await server.wait_sent(4)
        assert direct.answer == 5
    assert [one.method for one in server.sent] == ["respond", "follow_up", "edit", "respond", "follow_up"]


class Ask(discord.ui.Modal, title="More"):
    words: discord.ui.TextInput[Any] = discord.ui.TextInput(label="Words", custom_id="words")

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.edit_message(content=f"kept milk: {self.words.value}")


class Buttons(discord.ui.View):
    @discord.ui.button(label="More", custom_id="ask")
    async def more(self, interaction: discord.Interaction, button: discord.ui.Button[Any]) -> None:
        await interaction.response.send_modal(Ask(custom_id="more"))


async def test_threads_and_forum_posts(server: DiscordServer) -> None:
    guild = server.add_guild("Home")
    room, forum = server.add_channel(guild), server.add_channel(guild, "ideas", kind=objects.FORUM)
    asked = server.say(room, ALICE, "a long story")
    async with running(server) as bot:
        known, ideas = bot.get_channel(int(room["id"])), bot.get_channel(int(forum["id"]))
        assert isinstance(known, discord.TextChannel)
        assert isinstance(ideas, discord.ForumChannel)
        message = await known.fetch_message(int(asked["id"]))
        thread = await message.create_thread(name="story")
        assert thread.id == message.id
        await thread.send("in the thread")
        post = server.add_thread(forum, "Idea", ALICE, text="Let us fly")
        assert (await bot.next("thread_create")).id == thread.id
        created = await bot.next("thread_create")
        assert (created.id, created.parent) == (int(post["id"]), ideas)
        assert (created.message_count, server.stored[post["id"]].keys()) == (0, {post["id"]})
        made = await ideas.create_thread(name="Mine", content="Let us swim")
        assert made.thread.id == made.message.id
        await thread.edit(archived=True)
        assert [one.id async for one in known.archived_threads()] == [thread.id]
        assert {one.id for one in await bot.guilds[0].active_threads()} == {int(post["id"]), made.thread.id}
    assert server.texts() == ["in the thread", "Let us swim"]


async def test_files_up_and_down(server: DiscordServer) -> None:
    server.add_guild("Home")
    async with running(server) as bot:
        server.dm(ALICE, "look", files=[File("photo.png", b"png", "image/png")])
        message = await bot.next("message")
        assert await message.attachments[0].read() == b"png"
        sent = await message.channel.send(file=discord.File(io.BytesIO(b"words"), "words.txt", description="some"))
        assert (sent.attachments[0].description, await sent.attachments[0].read()) == ("some", b"words")
        kept = await sent.edit(content="and more", attachments=[sent.attachments[0]])
        assert [one.filename for one in kept.attachments] == ["words.txt"]


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
        server.forward(room, BOB, first)
        assert (await bot.next("message")).message_snapshots[0].content == "see"
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


async def test_intents_that_are_not_granted_end_the_connection(server: DiscordServer) -> None:
    server.granted = Intent(0)
    async with Bot() as bot:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await bot.start(server.token)
        assert not (await bot.application_info()).flags.gateway_message_content_limited


async def test_errors_reach_the_library_as_its_own(server: DiscordServer) -> None:
    server.tolerate(Rule.TOKEN)
    async with Bot() as bot:
        with pytest.raises(discord.LoginFailure):
            await bot.login("wrong")
    async with Bot() as bot:
        await bot.login(server.token)
        server.add_guild("Home")
        alice = await bot.fetch_user(ALICE.id)
        server.block(ALICE)
        with pytest.raises(discord.Forbidden) as refused:
            await alice.send("hello?")
        assert refused.value.code == 50007
        server.block(ALICE, blocked=False)
        server.fail_next("POST /channels/*/messages", status=429, retry_after=0.01)
        assert (await alice.send("hello")).content == "hello"
        server.fail_next("POST /channels/*/messages", status=400, code=50006, message="Cannot send an empty message")
        with pytest.raises(discord.HTTPException, match="50006"):
            await alice.send("hello again")
