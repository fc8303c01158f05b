"""The gateway as its clients on this machine see it: typed values over the Unix socket, and two errors.

A run belongs to its session: nothing here ends one but `abort`. Used by `hark run`'s terminal, `hark chat`,
`hark agent` and `hark status`.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from pydantic import TypeAdapter, ValidationError

from agent.events import AgentEvent
from bot.gateway.unix_socket import address
from bot.store.values import LostDelivery
from channels.console.adapter import ConsoleBlock

OPEN = ("queued", "running", "waiting_approval")
"""States of a run that has not ended."""

_PATIENCE = 10.0
"""Seconds that an answer may take."""
_SILENCE = 60.0
"""Seconds without a sign of life that end a stream; the service gives one every 15."""


class Unreachable(Exception):
    """Nobody listens on the socket, or the connection broke: what was asked for may have happened."""


class Rejected(Exception):
    """The service answered with an error. The text is its message, with its hint; status: of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run failed. detail: the cause, as it was found."""

    kind: str
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as `GET /v1/agent/{id}` shows it; document is the JSON itself."""

    run_id: str
    session: str
    status: str
    text: str
    error: RunError | None
    document: str = ""

    @property
    def ended(self) -> bool:
        """Nothing more comes of it."""
        return self.status not in OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """How a channel stands, and since when (ISO 8601, UTC)."""

    state: str
    since: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether every enabled channel receives."""

    ready: bool
    channels: dict[str, ChannelState]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What the service is doing. model_reason: why this model answers. last_failure: when and why, if there was one."""

    model: str
    model_reason: str
    running: int
    waiting: int
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int
    lost: tuple[LostDelivery, ...]
    last_failure: str


@dataclass(frozen=True, slots=True)
class _Accepted:
    run_id: str


_accepted = TypeAdapter(_Accepted)
_run = TypeAdapter(Run)
_readiness = TypeAdapter(Readiness)
_activity = TypeAdapter(Activity)
_block: TypeAdapter[ConsoleBlock] = TypeAdapter(ConsoleBlock)
_event: TypeAdapter[AgentEvent] = TypeAdapter(AgentEvent)


class Client:
    """One connection pool to one service; close it. All methods raise Unreachable or Rejected."""

    def __init__(self, socket: Path) -> None:
        """Raises Unreachable when there is no such directory."""
        self._address = contextlib.ExitStack()
        try:
            transport = httpx2.AsyncHTTPTransport(uds=self._address.enter_context(address(socket)))
        except OSError as error:
            raise Unreachable(str(error)) from None
        self._http = httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", trust_env=False, timeout=_PATIENCE
        )

    async def close(self) -> None:
        """Release the connections."""
        await self._http.aclose()
        self._address.close()

    async def submit(self, text: str, session: str, key: str) -> str:
        """Store a message; returns its run's id. key: the same for every try of the same message."""
        body = {"message": text, "session": session}
        answer = await self._ask("POST", "/v1/agent", json=body, headers={"Idempotency-Key": key})
        return _accepted.validate_json(answer).run_id

    async def wait(self, run_id: str, seconds: float) -> Run:
        """The run once it has ended, or as it is after so many seconds."""
        patience = _PATIENCE + seconds
        body = await self._ask("GET", f"/v1/agent/{run_id}", params={"wait": f"{seconds:g}"}, timeout=patience)
        return replace(_run.validate_json(body), document=body.decode())

    async def abort(self, run_id: str) -> None:
        """End a run; one that has ended already stays as it is."""
        await self._ask("DELETE", f"/v1/agent/{run_id}")

    async def readiness(self) -> Readiness:
        """How the channels stand."""
        return _readiness.validate_json(await self._ask("GET", "/readyz", also=503))

    async def activity(self) -> Activity:
        """What the service is doing."""
        return _activity.validate_json(await self._ask("GET", "/v1/status"))

    @contextlib.asynccontextmanager
    async def console(self) -> AsyncIterator[AsyncIterator[ConsoleBlock | AgentEvent]]:
        """Be a terminal while the context lasts: the blocks delivered to it, and the events of its session."""
        with _reworded():
            async with self._http.sse("/v1/console", max_event_size=None, timeout=_SILENCE) as source:
                if not source.response.is_success:
                    await source.response.aread()
                    raise _rejection(source.response)
                yield _decoded(source)

    async def _ask(self, method: str, path: str, also: int | None = None, **options: Any) -> bytes:
        """The body of a successful answer, or of one with the status `also`."""
        with _reworded():
            response = await self._http.request(method, path, **options)
        if not response.is_success and response.status_code != also:
            raise _rejection(response)
        return response.content


async def _decoded(source: httpx2.EventSource) -> AsyncIterator[ConsoleBlock | AgentEvent]:
    async for sent in source:
        if sent.event == "block":
            yield _block.validate_json(sent.data)
        else:
            with contextlib.suppress(ValidationError):  # a kind of event that a newer service has
                yield _event.validate_json(sent.data)


@contextlib.contextmanager
def _reworded() -> Iterator[None]:
    try:
        yield
    except (httpx2.TransportError, httpx2.StreamError) as error:
        raise Unreachable(str(error) or type(error).__name__) from None


def _rejection(response: httpx2.Response) -> Rejected:
    """The error of `{"error": {"code", "message", "hint"}}` in words."""
    try:
        error = response.json()["error"]
        words = [error["message"], error.get("hint")]
    except (ValueError, LookupError, TypeError):
        words = [f"the service answered with status {response.status_code}"]
    return Rejected(response.status_code, " ".join(str(word) for word in words if word))
