"""A whole service with its gateway on a free port, and a model that does what the test tells it, piece by piece."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx2

from agent.hooks import Hook
from agent.message import Message, Part, Text, ToolCall, Usage
from agent.models.base import Answer, ModelRequest, StreamPart, TextDelta, ThinkingDelta
from agent.tools.base import Tool
from bot.clock import Clock
from bot.config.model import Agent, Config, Gateway
from bot.config.tools import Tools
from bot.gateway.server import Gateway as Server
from bot.persistence.errors import StoreUnavailable
from bot.wiring import SOCKET
from tests.service import Hark, running
from tests.serving import PlainModel
from tests.stored import disk_full
from tests.watch import PATIENCE

TOKEN = "s3cret-of-the-house"


class Call:
    """One call of the model: the test says how it goes on."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self._parts: asyncio.Queue[StreamPart | Exception] = asyncio.Queue()

    def say(self, text: str) -> None:
        self._parts.put_nowait(TextDelta(text))

    def think(self, text: str) -> None:
        self._parts.put_nowait(ThinkingDelta(text))

    def fail(self, error: Exception) -> None:
        self._parts.put_nowait(error)

    def finish(self, text: str, *calls: ToolCall) -> None:
        parts: tuple[Part, ...] = (Text(text), *calls) if text else calls
        message = Message("assistant", parts, model="test/puppet")
        self._parts.put_nowait(Answer(message, "tool_use" if calls else "end", Usage(input=3, output=2)))

    def answer(self, text: str) -> None:
        self.say(text)
        self.finish(text)

    async def parts(self) -> AsyncGenerator[StreamPart, None]:
        while True:
            part = await self._parts.get()
            if isinstance(part, Exception):
                raise part
            yield part
            if isinstance(part, Answer):
                return


class Puppet(PlainModel):
    """reply: answer every call with this text, instead of waiting for the test."""

    name = "test/puppet"

    def __init__(self, reply: str | None = None) -> None:
        self.reply = reply
        self._calls: asyncio.Queue[Call] = asyncio.Queue()

    async def called(self) -> Call:
        """The next call that is made."""
        async with asyncio.timeout(PATIENCE):
            return await self._calls.get()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        call = Call(request)
        if self.reply is not None:
            call.answer(self.reply)
        self._calls.put_nowait(call)
        async for part in call.parts():
            yield part


class Disk:
    """A commit probe: while `full` is set, nothing can be written; while `turns` is not, it takes for ever."""

    def __init__(self) -> None:
        self.full = False
        self.turns = threading.Event()
        self.turns.set()

    def __call__(self, when: Literal["before", "after"]) -> None:
        assert self.turns.wait(PATIENCE)
        if self.full and when == "before":
            raise disk_full()


@dataclass(frozen=True)
class Sent:
    """A server-sent event, or a comment (then event is empty)."""

    event: str
    data: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    comment: str = ""


class Events:
    """Reads a stream of server-sent events."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Sent | None:
        """The next event or comment; None when the stream has ended."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    return Sent(fields["event"], json.loads(fields["data"]), fields.get("id"))
                else:
                    return Sent("", comment=fields.get("", ""))
        return None

    async def event(self) -> Sent:
        """The next event, comments left out."""
        while (sent := await self.next()) is not None:
            if sent.event:
                return sent
        raise AssertionError("the stream ended")

    async def until(self, kind: str) -> list[Sent]:
        """Everything up to the first event of this kind, comments left out."""
        found: list[Sent] = []
        async with asyncio.timeout(PATIENCE):  # pings do not count
            while (sent := await self.next()) is not None:
                if sent.event:
                    found.append(sent)
                if sent.event == kind:
                    return found
        raise AssertionError(f"the stream ended before {kind}: {[sent.event for sent in found]}")

    async def rest(self) -> list[Sent]:
        """Everything up to the end, comments left out."""
        found: list[Sent] = []
        async with asyncio.timeout(PATIENCE):
            while (sent := await self.next()) is not None:
                if sent.event:
                    found.append(sent)
        return found


class House:
    """A running service, seen from outside."""

    def __init__(self, hark: Hark, model: Puppet, disk: Disk, folder: Path, token: str | None) -> None:
        self.hark = hark
        self.service = hark.service
        self.stored = hark.stored
        self.model = model
        self.disk = disk
        self.folder = folder
        assert isinstance(hark.service.gateway, Server)
        self.gateway = hark.service.gateway
        headers = {"authorization": f"Bearer {token}"} if token else {}
        base = f"http://127.0.0.1:{self.gateway.port}"
        self.http = httpx2.AsyncClient(base_url=base, headers=headers, timeout=PATIENCE, trust_env=False)

    @property
    def socket(self) -> Path:
        return self.folder / "state" / SOCKET

    def unix(self) -> httpx2.AsyncClient:
        """A client on the Unix socket."""
        transport = httpx2.AsyncHTTPTransport(uds=str(self.socket))
        return httpx2.AsyncClient(base_url="http://hark", transport=transport, timeout=PATIENCE)

    async def submit(self, message: str, headers: Mapping[str, str] | None = None, **body: str) -> str:
        """Accept a message; returns its run."""
        response = await self.http.post("/v1/agent", json={"message": message, **body}, headers=headers)
        assert response.status_code == 202, response.text
        return str(response.json()["run_id"])

    async def show(self, run_id: str, wait: str | None = None) -> dict[str, Any]:
        """A run, once it has ended when wait is given."""
        query = f"?wait={wait}" if wait is not None else ""
        response = await self.http.get(f"/v1/agent/{run_id}{query}")
        found: dict[str, Any] = response.json()
        return found

    @asynccontextmanager
    async def events(
        self, query: str = "", last_id: str | None = None, client: httpx2.AsyncClient | None = None
    ) -> AsyncIterator[Events]:
        """An open stream."""
        headers = {"last-event-id": last_id} if last_id is not None else {}
        path = query if query.startswith("/") else f"/v1/events{query}"
        async with (client or self.http).stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Events(response)

    async def store_fails(self) -> None:
        """From now on nothing can be written, and the service knows it."""
        self.disk.full = True
        try:
            await self.service.parts.store.inbox.accept([])
        except StoreUnavailable:
            return
        raise AssertionError("the store could write")


@asynccontextmanager
async def house(
    folder: Path,
    *,
    token: str | None = None,
    reply: str | None = None,
    tools: Mapping[str, Any] | None = None,
    besides: Sequence[Tool[Any]] = (),
    hooks: Sequence[Hook] = (),
    **agent: float,
) -> AsyncIterator[House]:
    """`running` with its gateway, no channel and the machine's clock. besides, hooks: what no configuration brings.

    agent: keys of that section.
    """
    config = Config(
        agent=Agent.model_validate({"drain_seconds": 0, **agent}),
        gateway=Gateway.model_validate({"port": 0, "token": token}),
        tools=Tools.model_validate(tools or {}),
        state=folder / "state",
        workspace=folder / "workspace",
    )
    model, disk = Puppet(reply), Disk()
    around: dict[str, Any] = {"gateway": True, "channels": (), "clock": Clock(), "commit_probe": disk}
    async with running(
        folder, whole=config, client=model, tools=lambda watch: besides, hooks=hooks, listens=False, **around
    ) as hark:
        found = House(hark, model, disk, folder, token)
        try:
            yield found
        finally:
            disk.full = False
            await found.http.aclose()
