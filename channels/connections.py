"""Who may hold a connection to a listener of ours, and how long a client may keep it waiting.

The HTTP libraries behind our listeners take as many connections as come and wait for ever. `Guest` stands in front of a
library's protocol class and asks it only at which stage of a request it is; `Places` are those of one listener. Whoever
keeps us waiting has a deadline, and is the first to go when somebody else needs the place, so that half of a request,
or an answer that nobody takes, keeps nobody out. A connection that is being answered is never taken away. When all of
a listener's places are in that state, a few spare ones remain: what is asked there is for the listener to decide, but
must take no time.
"""

import asyncio
import resource
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from typing import Any

# Connections of one listener, or an eighth of the descriptors that the process may have, if that is less: there are
# several listeners, and the database, the platforms and commands need descriptors as well.
MOST_CONNECTIONS = 512
# Bytes of requests that are not whole yet, in all: a few of the largest bodies, and very many ordinary ones.
MOST_PENDING = 64 * 1024 * 1024

# Connections that the system keeps until we accept them: what comes beyond is tried again by its client a second later.
_QUEUE = 1024


class Stage(Enum):
    """What it waits for: the next request, the rest of a head or of a body, our answer, or that the client takes it."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"
    TAKING = "taking"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a listener grants: connections in all, bytes of requests that are not whole, and seconds.

    head, body: from the first moment to the last byte, however the bytes trickle. taking: a client that takes nothing
    of an answer. idle: between two requests, longer than clients and proxies keep theirs, so that they close it. spare:
    everything that a connection in a spare place keeps us waiting for.
    """

    connections: int = MOST_CONNECTIONS
    pending: int = MOST_PENDING
    head: float = 10.0
    body: float = 20.0
    taking: float = 60.0
    idle: float = 65.0
    spare: float = 2.0

    @property
    def of_peer(self) -> int:
        """Connections of one address: most of them, because behind a proxy all the world is one."""
        return self.connections * 3 // 4

    @property
    def lasting(self) -> int:
        """Answers in all that take as long as they like; half of the places stay for those that do not."""
        return self.connections // 2

    @property
    def lasting_of_peer(self) -> int:
        """The same for one address."""
        return self.lasting * 3 // 4

    @property
    def spares(self) -> int:
        """Connections beyond all others."""
        return max(4, self.connections // 8)

    def seconds(self, stage: Stage, *, spare: bool) -> float | None:
        """How long a client may keep us waiting; None when it is we who keep it waiting."""
        if stage is Stage.ANSWER:
            return None
        return self.spare if spare else float(getattr(self, stage.value))


def usual_limits() -> Limits:
    """The limits for this process."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Limits(max(8, min(MOST_CONNECTIONS, descriptors // 8)))


class Places:
    """The connections of one listener. pending: bytes of requests that are not whole."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or usual_limits()
        self.pending = 0
        self._guests: set[Guest] = set()

    async def serve(self, connection: Callable[[], "Guest"], **where: Any) -> asyncio.Server:
        """Listen; `where` (host and port, or sock) is that of `create_server`. Raises OSError."""
        # Those that are accepted in a row, and not read yet, must find room in the spare places.
        at_once = max(1, self.limits.spares // 4)
        server = await asyncio.get_running_loop().create_server(connection, backlog=at_once, **where)
        for one in server.sockets:
            with one.dup() as listening:
                listening.listen(_QUEUE)
        return server

    def __contains__(self, guest: "Guest") -> bool:
        return guest in self._guests

    def admit(self, guest: "Guest") -> bool:
        """Give it a place, a spare one if need be; False when there is none."""
        regular = [one for one in self._guests if not one.spare]
        own = [one for one in regular if one.peer == guest.peer]
        crowd = own if len(own) >= self.limits.of_peer else regular
        if (crowd is own or len(regular) >= self.limits.connections) and not _makes_room(crowd):
            spares = self._guests.difference(regular)
            if len(spares) >= self.limits.spares and not _makes_room(spares):
                return False
            guest.spare = True
        self._guests.add(guest)
        return True

    def leave(self, guest: "Guest") -> None:
        """Take its place back, if it has one."""
        self._guests.discard(guest)

    def add_pending(self, count: int) -> None:
        """Count bytes of requests that are not whole; when they are too many, the largest of these requests goes."""
        self.pending += count
        if self.pending > self.limits.pending:
            max(self._guests, key=lambda one: one.pending).end()

    def grants_lasting(self, peer: str) -> bool:
        """Whether one more answer to this address may take as long as it likes."""
        peers = [one.peer for one in self._guests if one.lasting]
        return len(peers) < self.limits.lasting and peers.count(peer) < self.limits.lasting_of_peer


class Guest(asyncio.Protocol):
    """A connection: base of a class whose next base is a library's protocol class.

    That class says in `asks` at which stage it is, and calls `look` whenever this may have changed without bytes having
    come. peer: the address behind which it is. spare: it has a spare place. lasting: its answer takes as long as it
    likes. since: when it began to wait. seen: what it had sent when it was accepted has been read. pending: bytes of
    its request, while that is not whole.
    """

    def __init__(self, places: Places, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.peer = ""
        self.spare = self.lasting = self.seen = False
        self.stage = Stage.HEAD
        self.since = 0.0
        self.pending = 0
        self._places = places
        self._wire: asyncio.Transport | None = None
        self._blocked = False
        self._deadline: asyncio.TimerHandle | None = None

    def asks(self) -> Stage:
        """What the library waits for; TAKING is found out here."""
        raise NotImplementedError

    def lasts(self) -> bool:
        """Whether the answer under way may take as long as it likes: False when too many do so already."""
        self.lasting = self.lasting or self._places.grants_lasting(self.peer)
        return self.lasting

    def look(self) -> None:
        """See at which stage it is."""
        assert self._wire is not None
        # Until what was written is taken, a connection that is being closed stays.
        found = Stage.TAKING if self._blocked or self._wire.is_closing() else self.asks()
        if found is not self.stage and self in self._places:
            self._enter(found)

    def end(self) -> None:
        """Break the connection off; its place is free at once."""
        self._forget()
        if self._wire is not None:
            self._wire.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.peer = peer_of(transport.get_extra_info("peername"))
        if not self._places.admit(self):
            transport.abort()
            return
        self._wire = transport
        self._enter(Stage.HEAD)
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._is_seen)  # it is read in the next round of the loop

    def data_received(self, data: bytes) -> None:
        if self.stage is Stage.IDLE:
            self._enter(Stage.HEAD)
        super().data_received(data)
        self.look()
        if self.stage in (Stage.HEAD, Stage.BODY) and self in self._places:
            self.pending += len(data)
            self._places.add_pending(len(data))

    def pause_writing(self) -> None:
        self._blocked = True
        super().pause_writing()
        self.look()

    def resume_writing(self) -> None:
        self._blocked = False
        super().resume_writing()
        self.look()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget()
        if self._wire is not None:
            super().connection_lost(exc)  # type: ignore[arg-type]

    def _is_seen(self) -> None:
        self.seen = True

    def _enter(self, stage: Stage) -> None:
        loop = asyncio.get_running_loop()
        self._settle()
        self.stage, self.since = stage, loop.time()
        self.lasting = self.lasting and stage in (Stage.ANSWER, Stage.TAKING)
        seconds = self._places.limits.seconds(stage, spare=self.spare)
        if seconds is not None:
            self._deadline = loop.call_later(seconds, self.end)

    def _settle(self) -> None:
        """What was counted and timed of the stage that it leaves."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._places.pending -= self.pending
        self.pending = 0

    def _forget(self) -> None:
        self._settle()
        self._places.leave(self)


def _makes_room(guests: Collection[Guest]) -> bool:
    """Break off the one that has kept us waiting for longest; False when all are being answered, or not read yet."""
    waiting = [guest for guest in guests if guest.seen and guest.stage is not Stage.ANSWER]
    if not waiting:
        return False
    min(waiting, key=lambda guest: guest.since).end()
    return True


def peer_of(name: object) -> str:
    """Who is at the other end of a connection, by the `peername` of its transport: of IPv6 the network (/64), of which
    one machine has every address; empty for a Unix socket.
    """
    if not isinstance(name, tuple):
        return ""
    host = str(name[0]).partition("%")[0]
    return ip_address(host).exploded[:19] if ":" in host else host
