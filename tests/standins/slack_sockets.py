"""Socket Mode: the WebSocket connections of an app, as "Using Socket Mode" on docs.slack.dev has them.

The server greets with `hello`, sends each envelope over one of the connections and takes its acknowledgement on the
same one only. It announces a planned refresh with `disconnect`: `warning`, then `refresh_requested`, after which the
connection goes; also `link_disabled`.
"""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.standins import slack_shapes as shapes
from tests.standins.slack_delivery import Delivering, Envelope, State
from tests.standins.slack_ledger import Json, Rule
from tests.watch import PATIENCE

REFRESH_SECONDS = 3600
HOST = "applink-standin"


@dataclass(slots=True, eq=False)
class Connection:
    """One WebSocket. `pings` are what the client sent."""

    number: int
    socket: web.WebSocketResponse
    transport: asyncio.BaseTransport | None
    sent: dict[str, Envelope] = field(default_factory=dict)
    greeted: bool = False
    leaving: bool = False
    pings: int = 0


class Sockets:
    """The connections; a Transport of slack_delivery."""

    def __init__(self, slack: Delivering) -> None:
        self.slack = slack
        self.tickets: set[str] = set()
        self.connections: list[Connection] = []
        self.silent = False
        self.made = 0
        self._turn = 0
        self._sends: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> list[Connection]:
        """Connections that were greeted and are not closed."""
        return [one for one in self.connections if one.greeted and not one.socket.closed]

    def ticket(self) -> str:
        """A url for one connection; it works once."""
        ticket = f"{self.slack.number():08x}-ticket"
        self.tickets.add(ticket)
        return f"{self.slack.origin.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={shapes.APP}"

    # Sending

    def send(self, envelope: Envelope) -> bool:
        ready = [one for one in self.open if not one.leaving] or self.open
        if not ready:
            return False
        self._turn += 1
        connection = ready[self._turn % len(ready)]
        connection.sent[envelope.id] = envelope
        body: Json = {"envelope_id": envelope.id, "payload": envelope.payload, "type": envelope.kind}
        body["accepts_response_payload"] = not envelope.is_event
        if envelope.is_event:
            body |= {"retry_attempt": envelope.attempt, "retry_reason": envelope.reason}
        self._later(connection, body)
        return True

    def _later(self, connection: Connection, body: Json) -> None:
        if not self.silent:
            self._start(self._send(connection, json.dumps(body)))

    def _start(self, work: Awaitable[Any]) -> None:
        async def run() -> None:
            await work

        task = asyncio.get_running_loop().create_task(run())
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    async def _send(self, connection: Connection, text: str) -> None:
        try:
            await connection.socket.send_str(text)
        except (ConnectionError, RuntimeError):
            return  # `accept` sees the end of the connection and takes back what was sent

    # A connection

    async def accept(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection from its handshake to its end."""
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets:
            raise web.HTTPNotFound
        self.tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=False, heartbeat=None, timeout=0.5)
        await socket.prepare(request)
        connection = Connection(self.made, socket, request.transport)
        self.made += 1
        self.connections.append(connection)
        try:
            if not self.silent:
                await self.greet(connection)
            await self._listen(connection)
        finally:
            self.connections.remove(connection)
            self._take_back(connection)
            await socket.close()
            self.slack.ledger.changed()
        return socket

    async def greet(self, connection: Connection) -> None:
        """Say hello; from here on the connection gets envelopes."""
        debug = {"host": HOST, "build_number": 1, "approximate_connection_time": REFRESH_SECONDS}
        count = len([one for one in self.connections if not one.socket.closed])
        hello = {"type": "hello", "num_connections": count, "debug_info": debug}
        await connection.socket.send_json(hello | {"connection_info": {"app_id": shapes.APP}})
        connection.greeted = True
        self.slack.way_is_open()
        self.slack.ledger.changed()

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.socket:
            if message.type is WSMsgType.PING:
                connection.pings += 1
                if not self.silent:
                    await connection.socket.pong(message.data)
            elif message.type is WSMsgType.TEXT and not self.silent:
                self._acknowledge(connection, message.data)
            self.slack.ledger.changed()

    def _acknowledge(self, connection: Connection, text: str) -> None:
        try:
            body = json.loads(text)
            envelope_id = body["envelope_id"]
        except (ValueError, TypeError, KeyError):
            self.slack.ledger.complain(Rule.BAD_ACK, f"not an acknowledgement: {text[:100]}")
            return
        envelope = connection.sent.get(envelope_id)
        if envelope is None:
            if not any(one.id == envelope_id for one in self.slack.outbox):
                self.slack.ledger.complain(Rule.BAD_ACK, f"unknown envelope {envelope_id}")
            return  # an old connection's: Slack does not take it here and sends the event again
        if envelope.state is State.ACKNOWLEDGED:
            self.slack.ledger.complain(Rule.BAD_ACK, f"{envelope.name} acknowledged twice")
            return
        answer = body.get("payload")
        if answer and envelope.is_event:
            self.slack.ledger.complain(Rule.BAD_ACK, f"a payload for {envelope.name}, which takes none")
        if envelope.id == envelope_id:
            self.slack.acknowledged(envelope, answer)

    def _take_back(self, connection: Connection) -> None:
        """What the connection took and did not acknowledge goes to another one, or waits for the next."""
        for envelope_id, envelope in connection.sent.items():
            if envelope.state is not State.SENT or envelope.id != envelope_id:
                continue
            if self.open or not envelope.is_event:
                self.slack.failed(envelope, "connection_failed")
            else:
                self.slack.wait_for_way(envelope)

    # What the service does by itself

    def _disconnect(self, reason: str) -> Json:
        return {"type": "disconnect", "reason": reason, "debug_info": {"host": HOST}}

    async def announce(self, reason: str) -> list[Connection]:
        """Send `disconnect` to all connections, which get nothing more while there are others."""
        told = self.open
        for connection in told:
            connection.leaving = reason != "warning"
            await self._send(connection, json.dumps(self._disconnect(reason)))
        return told

    async def refresh(self, seconds: float = PATIENCE) -> None:
        """A planned refresh to its end: announced, a new connection is there, the old ones are closed."""
        told = await self.announce("refresh_requested")
        await self.slack.ledger.until(lambda: any(one not in told for one in self.open), "a new connection", seconds)
        await self.close(told)

    async def close(self, connections: list[Connection] | None = None) -> None:
        """End connections, all without an argument, as a service does that closes properly."""
        for connection in self.connections[:] if connections is None else connections:
            await connection.socket.close()

    async def stop(self) -> None:
        """End everything, also what is still being sent."""
        await self.close()
        for send in list(self._sends):
            send.cancel()
        await asyncio.gather(*self._sends, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections without a word."""
        for connection in self.connections:
            if isinstance(connection.transport, asyncio.Transport):
                connection.transport.abort()
