"""The gateway of the Discord stand-in: sessions that remember what they were told, and the connections that serve them.

A `Session` begins with IDENTIFY and outlives its connections: what happens while none is there is replayed by RESUME.
What each session is told depends on its intents.
"""

import asyncio
import contextlib
import copy
import json
import secrets
import zlib
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from tests.standins.discord_events import Events
from tests.standins.discord_ledger import Json, Rule
from tests.standins.discord_objects import (
    KNOWN_INTENTS,
    PRIVILEGED,
    Intent,
    user,
)

HEARTBEAT, IDENTIFY, PRESENCE, RESUME, RECONNECT, INVALID, HELLO, ACK = 1, 2, 3, 6, 7, 9, 10, 11
SENDS_A_MINUTE = 120


@dataclass(slots=True, eq=False)
class Session:
    """One IDENTIFY. `events` are all it was told, by number; `link` is the connection that serves it."""

    id: str
    intents: Intent
    presence: Json | None = None
    events: list[Json] = field(default_factory=list)
    link: "Link | None" = None

    def tell(self, event: str, data: Json) -> None:
        payload = {"op": 0, "t": event, "s": len(self.events) + 1, "d": copy.deepcopy(data)}
        self.events.append(payload)
        if self.link is not None:
            self.link.send(payload)


@dataclass(slots=True, eq=False)
class Link:
    """One WebSocket; what is to be sent waits in `outgoing`, where a close code ends it. A mute one obeys no longer."""

    socket: web.WebSocketResponse
    resuming: bool
    transport: "Transport"
    outgoing: asyncio.Queue[Json | int] = field(default_factory=asyncio.Queue)
    session: Session | None = None
    sends: list[float] = field(default_factory=list)
    beats: int = 0
    mute: bool = False
    zombie: bool = False

    def send(self, payload: Json) -> None:
        self.outgoing.put_nowait(payload)

    def close(self, code: int) -> None:
        """Say the last words and close; the session stays unless somebody ends it."""
        if self.session is not None:
            self.session.link = None
        self.mute = True
        self.outgoing.put_nowait(code)


class Transport:
    """How payloads are packed: plain or as one stream, compressed."""

    def __init__(self, stream: str | None) -> None:
        self._stream = zlib.compressobj() if stream == "zlib-stream" else None
        self._zstd: Any = None
        if stream == "zstd-stream":
            from compression import zstd  # type: ignore[import-not-found]  # Python 3.14, where discord.py uses it

            self._zstd = zstd.ZstdCompressor()

    def pack(self, payload: Json) -> str | bytes:
        text = json.dumps(payload)
        if self._stream is not None:
            return self._stream.compress(text.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        if self._zstd is not None:
            packed: bytes = self._zstd.compress(text.encode(), self._zstd.FLUSH_BLOCK)
            return packed
        return text


class Close(Exception):
    """The client broke a rule of the gateway (or asked for what it is not granted) and is cut off with a code."""

    def __init__(self, code: int, why: str, rule: Rule | None = Rule.GATEWAY) -> None:
        super().__init__(why)
        self.code = code
        self.rule = rule


class Gateway(Events):
    """Serves `gateway_url` and `resume_url`.

    While `gateway_silent` connections are accepted and nothing is said on any, nor ever again on one that missed
    something: its client must notice.
    """

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.port = 0
        self.heartbeat_interval = 41.25
        # Seconds without a heartbeat after which a client is cut off; None: two intervals.
        self.heartbeat_patience: float | None = None
        self.gateway_silent = False
        self.sessions: dict[str, Session] = {}
        self.links: list[Link] = []
        self.identified: list[Json] = []
        self.resumed: list[Json] = []

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gateway"

    @property
    def resume_url(self) -> str:
        """What READY tells; another than the first one, as in fact."""
        return f"ws://127.0.0.1:{self.port}/gateway-us-east1-b"

    # What tests order

    def reconnect(self) -> None:
        """Ask every connection to reconnect (op 7)."""
        for link in self.links:
            link.send({"op": RECONNECT, "d": None})

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell every connection that its session is over (op 9), which it may resume or not."""
        for link in list(self.links):
            if not resumable and link.session is not None:
                self.sessions.pop(link.session.id, None)
            link.send({"op": INVALID, "d": resumable})

    def close_gateway(self, code: int = 4000) -> None:
        """Close every connection with a code; 1006 stands for a cut without one. Sessions stay and can be resumed."""
        for link in list(self.links):
            link.close(code)

    def forget_sessions(self) -> None:
        """Sessions that no connection serves have timed out: RESUME is answered with op 9."""
        self.sessions = {key: session for key, session in self.sessions.items() if session.link is not None}

    def push_raw(self, event: str, data: Json) -> None:
        """Tell every session anything, readable or not, whatever its intents."""
        for session in self.sessions.values():
            session.tell(event, data)

    @property
    def connected(self) -> bool:
        """Whether a session is served by a connection right now."""
        return any(session.link is not None for session in self.sessions.values())

    # Telling

    def emit(self, event: str, data: Json, *, channel_id: str | None = None) -> None:
        """Tell each session whose intents and permissions allow it."""
        needed = self.needed(event, data, channel_id)
        for session in self.sessions.values():
            if needed is not None and session.intents & needed == needed:
                session.tell(event, self.shaped(event, data, session.intents))
        self.ledger.changed()

    # Connections

    async def serve_gateway(self, request: web.Request) -> web.StreamResponse:
        """One WebSocket from HELLO to its end."""
        socket = web.WebSocketResponse(max_msg_size=4096, autoclose=False)
        await socket.prepare(request)
        stream = request.query.get("compress")
        link = Link(socket, not request.path.rstrip("/").endswith("/gateway"), Transport(stream))
        self.links.append(link)
        writer = asyncio.create_task(self._write(link, request))
        link.send({"op": HELLO, "d": {"heartbeat_interval": int(self.heartbeat_interval * 1000), "_trace": []}})
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            self.ledger.complain(Rule.GATEWAY, f"the gateway was asked for {dict(request.query)}, not v=10, json")
            link.close(4012)
        try:
            await self._read(link)
        finally:
            self.links.remove(link)
            if link.session is not None and link.session.link is link:
                link.session.link = None
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
            if not socket.closed:
                await socket.close()
            self.ledger.changed()
        return socket

    async def _write(self, link: Link, request: web.Request) -> None:
        while True:
            payload = await link.outgoing.get()
            if payload == 1006 and request.transport is not None:
                request.transport.abort()
                return
            if self.gateway_silent or link.zombie:
                link.zombie = True
                continue
            if isinstance(payload, int):
                await link.socket.close(code=payload)
                return
            packed = link.transport.pack(payload)
            with contextlib.suppress(ConnectionError):
                await (link.socket.send_str(packed) if isinstance(packed, str) else link.socket.send_bytes(packed))

    async def _read(self, link: Link) -> None:
        """Obey until the connection ends; a client that sends no heartbeat for too long is cut off (4009)."""
        while True:
            try:
                frame = await link.socket.receive(timeout=self.heartbeat_patience or self.heartbeat_interval * 2)
            except TimeoutError:
                self.ledger.complain(Rule.GATEWAY, "no heartbeat for two intervals")
                await link.socket.close(code=4009)
                return
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                if frame.type == WSMsgType.CLOSE and frame.data in (WSCloseCode.OK, WSCloseCode.GOING_AWAY):
                    self._goodbye(link)
                return
            if self.gateway_silent or link.mute or link.zombie:
                continue
            try:
                self._obey(link, frame.data)
            except Close as broken:
                if broken.rule is not None:
                    self.ledger.complain(broken.rule, f"{broken.code}: {broken}")
                link.close(broken.code)
            self.ledger.changed()

    def _goodbye(self, link: Link) -> None:
        """A client that closes with 1000 or 1001 ends its session."""
        if link.session is not None and link.session.link is link:
            self.sessions.pop(link.session.id, None)

    def _obey(self, link: Link, text: str | bytes) -> None:
        now = self.clock()
        link.sends = [at for at in link.sends if at > now - 60] + [now]
        if len(link.sends) > SENDS_A_MINUTE:
            raise Close(4008, f"{len(link.sends)} payloads in a minute", Rule.GATEWAY_RATE)
        try:
            payload = json.loads(text)
            op, data = payload["op"], payload.get("d")
        except (ValueError, KeyError, TypeError):
            raise Close(4002, f"not a payload: {text[:80]!r}") from None
        if op == HEARTBEAT:
            self._heartbeat(link, data)
        elif op == IDENTIFY:
            self._identify(link, data)
        elif op == RESUME:
            self._resume(link, data)
        elif op != PRESENCE:
            raise Close(4001, f"unknown opcode {op!r}")
        elif link.session is None:
            raise Close(4003, f"opcode {op} before IDENTIFY")
        else:
            link.session.presence = data

    def _heartbeat(self, link: Link, last: Any) -> None:
        known = len(link.session.events) if link.session is not None else None
        if last is not None and not (isinstance(last, int) and (known is None or 0 <= last <= known)):
            raise Close(4007, f"heartbeat with the sequence {last!r} of {known}")
        link.beats += 1
        link.send({"op": ACK})

    def _identify(self, link: Link, data: Any) -> None:
        if link.session is not None:
            raise Close(4005, "a second IDENTIFY")
        given = data if isinstance(data, dict) else {}
        documented = {"token", "properties", "intents", "compress", "large_threshold", "shard", "presence"}
        properties = given.get("properties")
        if given.keys() - documented or not isinstance(properties, dict) or not isinstance(given.get("intents"), int):
            raise Close(4002, f"IDENTIFY with {sorted(given)}")
        if given.get("token") != self.token:
            raise Close(4004, "a wrong token", Rule.TOKEN)
        if given.get("shard", [0, 1]) != [0, 1]:
            raise Close(4010, f"shard {given['shard']}")
        if given["intents"] & ~KNOWN_INTENTS:
            raise Close(4013, f"intents {given['intents']:b}")
        intents = Intent(given["intents"])
        if any(one in intents and one not in self.granted for one in PRIVILEGED):
            raise Close(4014, f"intents {intents!r}, granted {self.granted!r}", None)
        self.identified.append({**given, "token": "…"})
        session = Session(secrets.token_hex(16), intents, given.get("presence"))
        self.sessions[session.id] = session
        self._serve(session, link)
        self._ready(session, given.get("shard"))

    def _serve(self, session: Session, link: Link) -> None:
        session.link, link.session = link, session

    def _ready(self, session: Session, shard: list[int] | None) -> None:
        mine = [guild_id for guild_id, members in self.members.items() if self.bot.id in members]
        ready: Json = {
            "v": 10,
            "user": user(self.bot) | {"verified": True, "mfa_enabled": True, "email": None, "flags": 0},
            "user_settings": {},
            "session_type": "normal",
            "session_id": session.id,
            "resume_gateway_url": self.resume_url,
            "relationships": [],
            "private_channels": [],
            "presences": [],
            "guilds": [{"id": one, "unavailable": True} for one in mine],
            "geo_ordered_rtc_regions": [],
            "application": {"id": str(self.bot.id), "flags": self.flags},
            "_trace": [],
        }
        session.tell("READY", ready | ({"shard": shard} if shard else {}))
        if Intent.GUILDS in session.intents:
            for guild_id in mine:
                session.tell("GUILD_CREATE", self.whole_guild(guild_id, session.intents))

    def _resume(self, link: Link, data: Any) -> None:
        if link.session is not None:
            raise Close(4005, "RESUME in a session")
        if not isinstance(data, dict) or data.keys() != {"token", "session_id", "seq"}:
            raise Close(4002, "RESUME takes token, session_id and seq")
        if data["token"] != self.token:
            raise Close(4004, "a wrong token", Rule.TOKEN)
        if not link.resuming:
            self.ledger.complain(Rule.RESUME_URL, "RESUME at the first URL")
        self.resumed.append({**data, "token": "…"})
        session = self.sessions.get(data["session_id"])
        if session is None:
            link.send({"op": INVALID, "d": False})
            return
        seen = data["seq"]
        if not isinstance(seen, int) or not 0 <= seen <= len(session.events):
            raise Close(4007, f"RESUME from {seen!r} of {len(session.events)}")
        if session.link is not None:
            session.link.close(4000)
        self._serve(session, link)
        for payload in session.events[seen:]:
            link.send(payload)
        session.tell("RESUMED", {"_trace": []})
