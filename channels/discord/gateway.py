"""Receives events from Discord's gateway through discord.py's own WebSocket client, and stores them.

The library's event models are not used: the loop that reads the socket calls `take` with each raw event, in order, and
no event can end that loop. `take` only appends; one task stores the queue, one batch after the other. Discord has no
acknowledgement: events that cannot be stored wait here while nothing more is read, and after a crash the history is
read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from channels.base import HealthState, NotAccepted, Reached, Sink, Times
from channels.discord.api import Api
from channels.discord.calls import menu_of
from channels.discord.events import read_event, unread
from channels.discord.settings import DiscordAccount
from channels.discord.world import World, identity
from channels.failures import ApiError, Trouble, reason_of
from channels.message import InboundKind, InboundMessage, Incoming
from channels.receiver import Receiver, an_object, objects

log = logging.getLogger(__name__)

# With more events in memory than this, nothing more is read from the gateway.
_MOST_WAITING = 1000
# After so many failed connections in a row the session is given up: its server may be gone.
_RESUMES = 3
# A connection that lasted so many seconds counts as a success.
_LASTING = 60.0
_CONTENT_GRANTED = 1 << 18 | 1 << 19
_PORTAL = "the Developer Portal (https://discord.com/developers/applications)"
_WITHOUT_CONTENT = (
    f"without message content it reads direct messages and mentions only: switch on Message Content Intent in {_PORTAL}"
    " under Bot, and start again"
)
_FOREIGN_ENDPOINT = (
    f"commands and buttons go to the Interactions Endpoint URL of the application: remove it in {_PORTAL}"
)
_CANNOT_STORE = "Messages cannot be stored, so none are taken from Discord"


class DiscordReceiver(Receiver):
    """Learns the bot's own id, then receives."""

    sentences: ClassVar = {
        Trouble.REFUSED: "Discord refuses this bot",
        Trouble.TOKEN: f"Discord does not accept the token of this bot; {_PORTAL} has the right one: Bot, Reset Token",
    }

    def __init__(self, name: str, api: Api, section: DiscordAccount, times: Times) -> None:
        super().__init__(name, section, times)
        self.world = World()
        self._api = api
        self._section = section
        self._client: discord.Client | None = None
        self._ws: DiscordWebSocket | None = None
        self._resumable: tuple[yarl.URL, str, int | None] | None = None
        self._warned = ""
        self._unstored = ""
        self._since = 0.0
        self._waiting: deque[Incoming] = deque()
        self._came, self._room = asyncio.Event(), asyncio.Event()
        self._stopping = False
        # Servers that have not listed their channels since a new session began; None: the gap was reported.
        self._awaited: set[str] | None = None
        self._late: set[str] = set()
        self._reached: list[Reached] = []

    async def run(self, sink: Sink) -> None:
        """See `Receiver.run`. After it was cancelled, events that have arrived are stored."""
        self.world.orders = {one.name: tuple(option.name for option in one.options) for one in sink.commands()}
        storing = asyncio.create_task(self._store(), name="discord-store")
        try:
            await super().run(sink)
        finally:
            self._came.set()
            await storing

    def stopping(self) -> None:
        """Note, before `run` is cancelled, that the receiver is stopping."""
        self._stopping = True

    def _problem(self) -> str:
        return self._unstored or ("Discord has not answered a heartbeat for too long" if self._overdue() else "")

    def take(self, event: str, data: Any) -> None:
        """Read an event of the gateway and queue it for the store. Never fails."""
        try:
            if isinstance(data, dict):
                self.world.learn(event, data)
                self._follow(event, data)
            found: Sequence[Incoming] = read_event(event, data, self.world, self._times.now())
        except Exception as error:
            found = [unread(event, data, self.world, error)]
        if event in ("READY", "RESUMED"):
            self._begun()
        if self._awaited is not None and not self._awaited:
            self._gap_known(self._awaited)
        for one in found:
            if isinstance(one, InboundMessage) and one.kind is InboundKind.MESSAGE:
                self.world.remember(one.origin)
        if found:
            self._waiting.extend(found)
            self._came.set()

    # -- the connection

    async def _step(self) -> None:
        """Receive over one connection until it ends."""
        client = self._client or await self._log_in()
        gateway, session, sequence = self._resumable or (yarl.URL(self._section.gateway_url), None, None)
        self._health = replace(self._health, state=HealthState.STARTING)
        resume = session is not None
        try:
            async with asyncio.timeout(self._section.connect_timeout):
                self._ws = ws = await DiscordWebSocket.from_client(
                    client, initial=True, gateway=gateway, session=session, sequence=sequence, resume=resume
                )
                while not self.is_ready:
                    await ws.poll_event()
            while not self._overdue():
                await ws.poll_event()
                if len(self._waiting) > _MOST_WAITING:
                    self._room.clear()
                    await self._room.wait()
            resume = True
        except ReconnectWebSocket as error:
            resume = error.resume
        except discord.ConnectionClosed as error:
            resume = False
            self._closed(error.code)
            return
        except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(Trouble.UNKNOWN, reason_of(error)) from None
        except Exception:
            resume = False  # a resumed session would repeat what broke it
            raise
        finally:
            await self._ended(resume)
        if self._pauses.failures:
            raise ApiError(Trouble.UNKNOWN, "it ended")
        await self._wait("Connecting again", self._pauses.next(), logging.INFO)  # connections end often

    async def _log_in(self) -> discord.Client:
        """Learn the bot's id and its granted intents, and make the library's client. Raises ApiError."""
        self.account = self.world.me = identity(an_object(await self._api.me(), "user"), "id")
        application = an_object(await self._api.call("GET", "/applications/@me"), "application")
        menu, number = menu_of(self._sink.commands()), int(identity(application, "id"))
        listing = partial(self._api.bulk_upsert_global_commands, number, menu)
        await self._renew_menu(menu, listing)
        flags = application.get("flags")  # without them the gateway decides
        self.world.content &= not isinstance(flags, int) or bool(flags & _CONTENT_GRANTED)
        foreign = _FOREIGN_ENDPOINT if application.get("interactions_endpoint_url") else ""
        warned = "; ".join(filter(None, ("" if self.world.content else _WITHOUT_CONTENT, foreign)))
        if warned != self._warned:
            self._warned = warned
            log.warning("discord: %s", warned)
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # voice is not used
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        intents.message_content = self.world.content
        self._client = client = discord.Client(
            intents=intents, max_messages=None, heartbeat_timeout=self._section.heartbeat_timeout
        )
        client.http = client._connection.http = self._api
        client._connection.parsers = {event: partial(self.take, event) for event in client._connection.parsers}
        await client._async_setup_hook()
        return client

    def _closed(self, code: int) -> None:
        """Handle a close code that a reconnect does not fix. Raises ApiError, except when fewer intents may help."""
        self._client = None  # so that the flags are read again
        if code == 4014 and self.world.content:
            self.world.content = False
            return
        raise ApiError(Trouble.TOKEN if code == 4004 else Trouble.REFUSED, f"the gateway closed with {code}")

    async def _ended(self, resume: bool) -> None:
        """Close a connection and keep what is needed to resume its session."""
        ws, self._ws = self._ws, None
        if self.is_ready and self._times.monotonic() - self._since >= _LASTING:
            self._pauses.failures = 0
        if ws is not None:
            known = resume and ws.session_id is not None
            self._resumable = (ws.gateway, ws.session_id or "", ws.sequence) if known else None
            await ws.close(code=1000 if self._stopping else 4000)
        elif not resume or self._pauses.failures >= _RESUMES:
            self._resumable = None
        await self._api.hang_up()

    def _overdue(self) -> bool:
        """Whether the answer to a heartbeat is overdue. The library notices only a silent connection."""
        beats = self._ws._keep_alive if self._ws is not None else None
        if beats is None or beats.interval is None:
            return False
        return perf_counter() - beats._last_ack > beats.interval + self._section.heartbeat_timeout

    def _begun(self) -> None:
        """Note that a session has begun or was resumed."""
        self._since = self._times.monotonic()
        self._received(f"receiving; {self._warned}" if self._warned else "receiving")

    # -- the gap

    def _follow(self, event: str, data: dict[str, Any]) -> None:
        """After a new session, collect the channels that servers list, before anything is stored."""
        if event == "READY":
            self._awaited, self._reached = set(), []
            self._awaited |= {identity(one, "id") for one in objects(data, "guilds")}
            asyncio.get_running_loop().call_later(self._section.guilds_timeout, self._gap_known, self._awaited)
        elif event == "GUILD_CREATE" and self._awaited is not None:
            self._awaited.discard(identity(data, "id"))
            self._reached.extend(self.world.reached(data))
        elif event == "GUILD_CREATE" and data["id"] in self._late:
            self._late.discard(data["id"])
            self._sink.missed(self._name, self.world.me, list(self.world.reached(data)))
        elif event == "GUILD_DELETE" and data.get("unavailable"):
            self._late.add(identity(data, "id"))
            (self._awaited or set()).discard(data["id"])

    def _gap_known(self, awaited: set[str]) -> None:
        if self._awaited is not awaited or self._stopping:
            return
        self._late |= awaited
        self._awaited = None
        self._sink.missed(self._name, self.world.me, self._reached)
        self._came.set()

    # -- the store

    async def _store(self) -> None:
        """Store the queue in order until the receiver stops; events that cannot be stored stay at its head."""
        while True:
            if not self._waiting or self._awaited is not None:
                if self._stopping:
                    return
                self._came.clear()
                await self._came.wait()
                continue
            batch = list(self._waiting)
            try:
                await self._accept(batch)
            except NotAccepted as error:
                if self._stopping:
                    return
                if not self._unstored:
                    log.warning("discord: %s: %s", _CANNOT_STORE, error)
                self._unstored = f"{_CANNOT_STORE}: {reason_of(error)}"
                await self._times.sleep(self._section.retry_first)
                continue
            for _ in batch:
                self._waiting.popleft()
            self._unstored = ""
            self._room.set()

    async def _acknowledge(self, message: InboundMessage) -> None:
        """Acknowledge a command or a click, for which Discord waits three seconds."""
        number, token = message.event_key.partition(":")[2], message.respond.split(" ")[1]
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        kind = {"type": 5 if message.kind is InboundKind.COMMAND else 6}
        try:
            await self._api.call("POST", path, webhook_id=number, webhook_token=token, json=kind)
        except ApiError as error:
            log.warning("discord: a command or click was taken, but Discord was not told: %s", error.reason)
