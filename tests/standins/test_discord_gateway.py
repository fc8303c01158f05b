"""The gateway of the Discord stand-in by raw WebSockets: who may connect, what is told to whom, what is replayed."""

import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from tests.standins.discord_ledger import Json, Rule
from tests.standins.discord_objects import ALICE, BOB, Intent, Permission
from tests.standins.discord_raw import Clock, Raw, broken_rules, clock, discord, raw
from tests.standins.discord_server import DiscordServer

__all__ = ["clock", "discord", "raw"]  # fixtures
QUERY = "?v=10&encoding=json"
USUAL = Intent.GUILDS | Intent.GUILD_MESSAGES | Intent.DIRECT_MESSAGES | Intent.MESSAGE_CONTENT
PROPERTIES = {"os": "linux", "browser": "raw", "device": "raw"}


class Socket:
    """One WebSocket of a client; `stream` decompresses what arrives."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, server: DiscordServer, *, stream: bool) -> None:
        self.socket = socket
        self.server = server
        self.inflate = zlib.decompressobj() if stream else None
        self.binary = 0

    async def next(self) -> Json:
        """The next payload, or {"close": code}."""
        frame = await self.socket.receive(timeout=5)
        if frame.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            return {"close": self.socket.close_code}
        data: Any = frame.data
        if frame.type == aiohttp.WSMsgType.BINARY:
            self.binary += 1
            assert self.inflate is not None
            data = self.inflate.decompress(data)
        payload: Json = json.loads(data)
        return payload

    async def event(self, name: str) -> Json:
        """The data of the next event, which must be this one."""
        payload = await self.next()
        assert payload.get("t") == name, payload
        data: Json = payload["d"]
        return data

    async def send(self, op: int, data: Any = None) -> None:
        await self.socket.send_str(json.dumps({"op": op, "d": data}))

    async def answer(self, op: int, data: Any = None) -> Json:
        await self.send(op, data)
        return await self.next()

    async def identify(self, intents: int = USUAL, **more: Any) -> Json:
        """READY, or what came instead."""
        data = {"token": self.server.token, "properties": PROPERTIES, "intents": int(intents)} | more
        payload = await self.answer(2, data)
        return payload.get("d", payload)  # type: ignore[no-any-return]

    async def resume(self, session_id: str, seq: int) -> Json:
        return await self.answer(6, {"token": self.server.token, "session_id": session_id, "seq": seq})


Connect = Callable[..., Awaitable[Socket]]


@pytest.fixture
async def connect(discord: DiscordServer) -> AsyncIterator[Connect]:
    """Open WebSockets, HELLO already read."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession())

        async def opened(url: str = "", query: str = QUERY) -> Socket:
            raw_socket = await stack.enter_async_context(http.ws_connect((url or discord.gateway_url) + query))
            socket = Socket(raw_socket, discord, stream="zlib-stream" in query)
            assert await socket.next() == {"op": 10, "d": {"heartbeat_interval": 41250, "_trace": []}}
            return socket

        yield opened


@pytest.mark.parametrize(
    ("code", "rule", "changes"),
    [
        (4004, Rule.TOKEN, {"token": "wrong"}),
        (4013, Rule.GATEWAY, {"intents": 1 << 30}),
        (4014, None, {"intents": int(Intent.GUILD_MEMBERS)}),
        (4010, Rule.GATEWAY, {"shard": [1, 2]}),
        (4002, Rule.GATEWAY, {"telepathy": True}),
        (4002, Rule.GATEWAY, {"properties": None}),
        (4002, Rule.GATEWAY, {"intents": "all"}),
    ],
)
async def test_who_may_identify(
    code: int, rule: Rule | None, changes: Json, discord: DiscordServer, connect: Connect
) -> None:
    socket = await connect()
    data = {"token": discord.token, "properties": PROPERTIES, "intents": int(USUAL)} | changes
    assert await socket.answer(2, data) == {"close": code}
    assert broken_rules(discord) == ([rule] if rule else [])
    assert discord.identified == []


async def test_payloads_out_of_place(discord: DiscordServer, connect: Connect) -> None:
    discord.add_guild()
    for code, ready, op, data in (
        (4003, False, 3, {"status": "online"}),
        (4001, False, 99, None),
        (4001, True, 5, None),
        (4005, True, 2, {}),
        (4005, True, 6, {}),
        (4002, False, 6, {"session_id": "x"}),
        (4007, True, 1, 99),
    ):
        socket = await connect()
        if ready:
            await socket.identify()
            await socket.event("GUILD_CREATE")
        assert await socket.answer(op, data) == {"close": code}, (code, op)
    assert broken_rules(discord) == [Rule.GATEWAY] * 7
    socket = await connect()
    await socket.socket.send_str("not json")
    assert await socket.next() == {"close": 4002}
    old = await connect(query="?v=6&encoding=json")
    assert await old.next() == {"close": 4012}


async def test_who_sends_no_heartbeat_is_cut_off(discord: DiscordServer) -> None:
    discord.heartbeat_interval = 0.02
    async with aiohttp.ClientSession() as http, http.ws_connect(discord.gateway_url + QUERY) as socket:
        await socket.receive()
        await socket.receive()
        assert (socket.close_code, broken_rules(discord)) == (4009, [Rule.GATEWAY])


async def test_at_most_120_payloads_a_minute(discord: DiscordServer, connect: Connect, clock: Clock) -> None:
    socket = await connect()
    await socket.identify()
    for _ in range(119):
        await socket.send(3, {"status": "online"})
    clock.now += 0.001
    assert await socket.answer(1, 1) == {"close": 4008}
    assert broken_rules(discord) == [Rule.GATEWAY_RATE]
    assert discord.sessions  # and can be resumed


async def test_what_was_missed_is_replayed(discord: DiscordServer, connect: Connect) -> None:
    room = discord.add_channel(discord.add_guild())
    socket = await connect()
    ready = await socket.identify()
    await socket.event("GUILD_CREATE")
    discord.say(room, ALICE, "one")
    await socket.event("MESSAGE_CREATE")
    discord.say(room, ALICE, "two")
    discord.close_gateway(4000)
    assert (await socket.event("MESSAGE_CREATE"))["content"] == "two"
    assert await socket.next() == {"close": 4000}
    discord.say(room, ALICE, "three")
    again = await connect(discord.resume_url)
    replayed = [await again.resume(ready["session_id"], 3), await again.next(), await again.next()]
    told = [(one["s"], one["t"], one["d"].get("content")) for one in replayed]
    assert told == [(4, "MESSAGE_CREATE", "two"), (5, "MESSAGE_CREATE", "three"), (6, "RESUMED", None)]
    assert broken_rules(discord) == []

    wrong = await connect(discord.resume_url)
    assert await wrong.resume(ready["session_id"], 99) == {"close": 4007}
    elsewhere = await connect()
    assert (await elsewhere.resume(ready["session_id"], 6))["t"] == "RESUMED"
    assert await again.next() == {"close": 4000}  # one connection serves a session
    assert broken_rules(discord) == [Rule.GATEWAY, Rule.RESUME_URL]


async def test_sessions_end(discord: DiscordServer, connect: Connect) -> None:
    async def resumed(session_id: str) -> str | None:
        socket = await connect(discord.resume_url)
        payload = await socket.resume(session_id, 1)
        return payload.get("t") or str(payload)

    over = str({"op": 9, "d": False})
    for end, wanted in (
        (lambda: discord.close_gateway(1006), "RESUMED"),
        (discord.forget_sessions, "RESUMED"),
        (lambda: discord.invalidate(resumable=True), "RESUMED"),
        (discord.invalidate, over),
    ):
        socket = await connect()
        session = (await socket.identify())["session_id"]
        end()
        assert await resumed(session) == wanted, end
    for code, wanted in ((1000, over), (1001, over), (4000, "RESUMED")):
        socket = await connect()
        session = (await socket.identify())["session_id"]
        await socket.socket.close(code=code)
        await discord.wait_for(
            lambda: len(discord.links) == len([one for one in discord.links if not one.socket.closed])
        )
        assert await resumed(session) == wanted, code
    discord.close_gateway(4000)
    discord.forget_sessions()
    assert discord.sessions == {}


async def test_intents_select_events(discord: DiscordServer, connect: Connect) -> None:
    guild = discord.add_guild()
    room, hidden = discord.add_channel(guild), discord.add_channel(guild, "hidden")
    discord.overwrite(hidden, guild, deny=Permission.VIEW_CHANNEL)
    everything = Intent(0)
    for one in Intent:
        everything |= one
    discord.granted = everything
    expected = {
        Intent(0): set(),
        Intent.GUILDS: {"GUILD_CREATE", "CHANNEL_CREATE", "THREAD_CREATE", "CHANNEL_PINS_UPDATE", "THREAD_UPDATE"},
        Intent.GUILD_MESSAGES: {"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"},
        Intent.DIRECT_MESSAGES: {"MESSAGE_CREATE"},
        Intent.GUILD_MESSAGE_REACTIONS: {"MESSAGE_REACTION_ADD"},
        Intent.GUILD_MESSAGE_TYPING: {"TYPING_START"},
        Intent.GUILD_MEMBERS: {"GUILD_MEMBER_ADD"},
    }
    sockets = []
    for intents in expected:
        sockets.append(await connect())
        await sockets[-1].identify(intents)
    discord.add_channel(guild, "other")
    message = discord.say(room, ALICE, "hello")
    discord.say(hidden, ALICE, "unseen")
    discord.set_pinned(message)
    discord.archive(discord.add_thread(room))
    discord.react(message)
    discord.delete(message)
    discord.typing(room)
    discord.dm(ALICE, "psst")
    discord.add_member(guild, BOB)
    for session, (intents, names) in zip(discord.sessions.values(), expected.items(), strict=True):
        assert {one["t"] for one in session.events} - {"READY"} == names, intents
        assert all(one["d"].get("channel_id") != hidden["id"] for one in session.events)
        assert [one["s"] for one in session.events] == list(range(1, len(session.events) + 1))


async def test_content_is_told_by_intent_and_nonces_to_everybody(
    discord: DiscordServer, connect: Connect, raw: Raw
) -> None:
    room = discord.add_channel(discord.add_guild())
    full, poor = await connect(), await connect()
    await full.identify()
    await poor.identify(USUAL & ~Intent.MESSAGE_CONTENT)
    for one in (full, poor):
        await one.event("GUILD_CREATE")
    discord.say(room, ALICE, "hello", embeds=[{"title": "x"}])
    discord.say(room, ALICE, f"{discord.bot.mention} hello")
    discord.dm(ALICE, "psst")
    await raw.send(room, "mine", nonce=5)
    wanted = {full: ["hello", "mention", "psst", "mine"], poor: ["", "mention", "psst", "mine"]}
    for socket, contents in wanted.items():
        told = [await socket.event("MESSAGE_CREATE") for _ in range(4)]
        assert [one["content"].replace(f"{discord.bot.mention} hello", "mention") for one in told] == contents
        assert len(told[0]["embeds"]) == bool(contents[0])
        assert (told[0]["guild_id"], told[0]["channel_type"], told[3]["nonce"]) == (room["guild_id"], 0, 5)
        assert ("guild_id" in told[2], "member" in told[2], told[2]["channel_type"]) == (False, False, 1)
        assert told[0]["member"].keys() >= {"roles", "joined_at", "nick"}
