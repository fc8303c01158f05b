"""The gateway as its clients on this machine see it: typed values over the Unix socket, and two errors.

A run belongs to its session: nothing here ends one but `abort`. Used by `hark run`'s terminal, `hark chat`,
and the commands of `hark` that ask a service.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agent.events import AgentEvent, UpdateEvent, load
from bot.background.views import BeatView, HeartbeatView
from bot.gateway.unix_socket import address
from bot.gateway.views import ConsoleView, ReadinessView, RunView, StatusView, UsageView
from bot.mcp.servers import ToolView
from bot.persistence.approvals import VERDICTS, Approval, Choice, Granted
from bot.persistence.balance import Balance
from bot.persistence.freezes import Freeze, Thawed, What
from bot.persistence.people import Person, Standing
from bot.persistence.sessions import Hit, TranscriptView
from bot.persistence.skills import SkillView
from bot.sessions.formats import Format
from bot.sessions.service import Exported, TakenIn

# An event of a stream, with its position when it was persisted; updates have None.
Received = tuple[int | None, AgentEvent]

# Seconds that an answer may take.
_PATIENCE = 10.0
# The same of what reads or changes whole transcripts.
_LONG = 600.0
# Seconds without a sign of life that end a stream; the service gives one every 15.
_SILENCE = 60.0


class Sent(TypedDict):
    """What became of a message that was sent: sent, planned, uncertain or not sent, its ids, and why not."""

    state: str
    ids: tuple[str, ...]
    reason: str


class Unreachable(Exception):
    """Nobody listens on the socket, or the connection broke; then the request may have been carried out."""


class Rejected(Exception):
    """The service answered with an error. The text is its message, with its hint; status: of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


T = TypeVar("T")


class Client:
    """One connection pool to one service, to be closed. All methods raise Unreachable or Rejected."""

    def __init__(self, socket: Path) -> None:
        """Raises Unreachable when there is no such directory."""
        self._address = contextlib.ExitStack()
        try:
            at = self._address.enter_context(address(socket))
            transport = httpx2.AsyncHTTPTransport(uds=at, verify=False)  # without TLS no certificates are read
        except OSError as error:
            raise Unreachable(str(error)) from None
        self._http = httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", trust_env=False, timeout=_PATIENCE
        )

    async def aclose(self) -> None:
        """Release the connections."""
        await self._http.aclose()
        self._address.close()

    async def submit(self, text: str, session: str, key: str, *, typed: bool = False) -> str:
        """Store a message; returns its run's id. key: the same for every try of the same message.

        typed: whether a person typed it in the terminal, so that its words may decide something.
        """
        body: dict[str, Any] = {"message": text, "session": session, **({"typed": True} if typed else {})}
        headers = {"Idempotency-Key": key}
        accepted = await self._ask(dict[str, str], "POST", "/v1/agent", json=body, headers=headers)
        return accepted["run_id"]

    async def wait(self, run_id: str, seconds: float) -> RunView:
        """The run once it has ended, or as it is after so many seconds."""
        patience = _PATIENCE + seconds
        path, query = f"/v1/agent/{run_id}", {"wait": f"{seconds:g}"}
        return await self._ask(RunView, "GET", path, params=query, timeout=patience)

    async def send(self, to: str, text: str, key: str) -> Sent:
        """Say something in a conversation; where it cannot be said it is Rejected. key: as of `submit`."""
        body, headers = {"to": to, "text": text}, {"Idempotency-Key": key}
        return await self._ask(Sent, "POST", "/v1/send", json=body, headers=headers, timeout=_LONG)

    async def abort(self, run_id: str) -> None:
        """End a run; one that has ended already stays as it is."""
        await self._ask(RunView, "DELETE", f"/v1/agent/{run_id}")

    async def readiness(self) -> ReadinessView:
        """How the channels stand."""
        return await self._ask(ReadinessView, "GET", "/readyz", also=503)

    async def status(self) -> StatusView:
        """What the service is doing."""
        return await self._ask(StatusView, "GET", "/v1/status")

    async def restart(self) -> None:
        """Start the service anew as soon as nothing runs; where that cannot be it is Rejected."""
        await self._ask(dict[str, str], "POST", "/v1/restart", json={})

    async def pairing(self) -> list[Person]:
        """Who waits to be let in."""
        return await self._ask(list[Person], "GET", "/v1/pairing")

    async def pair(self, code: str, standing: Standing) -> Person:
        """Use a stranger's code; a wrong or used one is Rejected."""
        return await self._ask(Person, "POST", "/v1/pairing", json={"code": code, "standing": standing})

    async def everybody(self) -> list[Person]:
        """Everybody who is let in, is shut out or waits."""
        return await self._ask(list[Person], "GET", "/v1/people")

    async def stand(self, who: str, order: str) -> str:
        """Revoke, block, or make an owner; what cannot be changed is Rejected."""
        return (await self._ask(dict[str, str], "POST", "/v1/people", json={"who": who, "order": order}))["text"]

    async def view(self) -> UsageView:
        """What model calls have used."""
        return await self._ask(UsageView, "GET", "/v1/usage")

    async def balance(self, since: str = "") -> Balance:
        """The book of messages."""
        return await self._ask(Balance, "GET", "/v1/balance", params={"since": since})

    async def accept_message(self, message: str) -> Balance:
        """Accept a message without an explanation; one that is explained is Rejected."""
        return await self._ask(Balance, "POST", "/v1/balance", json={"message": message})

    async def mcp(self) -> Sequence[ToolView]:
        """All tools that MCP servers have shown."""
        return await self._ask(list[ToolView], "GET", "/v1/mcp")

    async def accept_mcp(self, server: str) -> Sequence[ToolView]:
        """Let the tools of a server be called as it shows them; a server that is not known is Rejected."""
        return await self._ask(list[ToolView], "POST", "/v1/mcp/accept", json={"server": server})

    async def heartbeat(self) -> HeartbeatView:
        """How the heartbeat stands."""
        return await self._ask(HeartbeatView, "GET", "/v1/heartbeat")

    async def beat(self, *, dry: bool) -> BeatView:
        """Beat now, or say what a beat would be."""
        return await self._ask(BeatView, "POST", "/v1/heartbeat/run", json={"dry": dry})

    async def wake(self, text: str, session: str = "", *, now: bool = False) -> str | None:
        """Tell a session of an event; returns its key."""
        body = {"text": text, "now": now} | ({"session": session} if session else {})
        return (await self._ask(dict[str, str], "POST", "/v1/heartbeat/wake", json=body))["session"]

    async def freeze(self, what: What) -> Sequence[Freeze]:
        """Freeze something; returns all that is frozen."""
        return await self._ask(list[Freeze], "POST", "/v1/freeze", json={"what": what})

    async def thaw(self) -> Thawed:
        """Let everything go on."""
        return await self._ask(Thawed, "POST", "/v1/thaw", json={})

    async def skills(self) -> list[SkillView]:
        """All skills of the workspace."""
        return await self._ask(list[SkillView], "GET", "/v1/skills")

    async def accept(self, name: str, digest: str = "") -> None:
        """Let a skill count as looked at; what cannot be used is Rejected."""
        await self._ask(dict[str, str], "POST", "/v1/skills", json={"name": name, "digest": digest})

    async def approvals(self) -> list[Approval]:
        """What waits for a decision."""
        return await self._ask(list[Approval], "GET", "/v1/approvals")

    async def settle(self, named: str, choice: Choice) -> Approval:
        """Decide about a request, by its id or the beginning of it; what cannot be decided so is Rejected."""
        decision = next(word for word, verdict in VERDICTS.items() if verdict == choice.verdict)
        body = {"decision": decision, "reason": choice.reason, "only": choice.picked, "seconds": choice.seconds}
        return await self._ask(Approval, "POST", f"/v1/approvals/{quote(named, safe='')}", json=body)

    async def rules(self) -> list[Granted]:
        """The rules of what is always allowed."""
        return await self._ask(list[Granted], "GET", "/v1/approvals/rules")

    async def forget(self, what: str) -> bool:
        """Delete a rule of what is always allowed."""
        await self._ask(dict[str, str], "POST", "/v1/approvals/rules", json={"forget": what})
        return True

    async def listed(self) -> list[TranscriptView]:
        """The transcripts of all sessions."""
        return await self._ask(list[TranscriptView], "GET", "/v1/sessions", timeout=_LONG)

    async def search(self, words: str) -> list[Hit]:
        """The newest lines in which all words stand."""
        return await self._ask(list[Hit], "GET", "/v1/sessions/search", params={"words": words}, timeout=_LONG)

    async def export(self, name: str, form: Format) -> Exported:
        """A transcript as a file; an unknown one is Rejected."""
        query = {"of": name, "format": form}
        with _reworded():
            response = await self._http.get("/v1/sessions/export", params=query, timeout=_LONG)
        if not response.is_success:
            raise _rejection(response)
        return Exported(name, response.text)

    async def take_in_file(self, path: Path, session: str) -> TakenIn:
        """Import a file; what cannot be is Rejected."""
        body = {"path": str(path), "session": session}
        return await self._ask(TakenIn, "POST", "/v1/sessions/import", json=body, timeout=_LONG)

    async def prune(self, older_than: timedelta | None, keep: int | None) -> int:
        """Delete old transcripts."""
        body = {"older_than": older_than.total_seconds() if older_than is not None else None, "keep": keep}
        return (await self._ask(dict[str, int], "POST", "/v1/sessions/prune", json=body, timeout=_LONG))["pruned"]

    async def forget_person(self, who: str) -> str:
        """Delete a person's data; of whom nothing is stored, is Rejected."""
        body = {"who": who}
        return (await self._ask(dict[str, str], "POST", "/v1/sessions/forget", json=body, timeout=_LONG))["text"]

    async def console(self, position: int) -> ConsoleView:
        """Where a terminal begins that has shown its conversation up to this position."""
        return await self._ask(ConsoleView, "GET", "/v1/console", params={"position": str(position)})

    @contextlib.asynccontextmanager
    async def events(self, session: str, last: int | None = None) -> AsyncIterator[AsyncIterator[Received]]:
        """The events of a session (a name or a key) while the context lasts, the persisted ones from a position on."""
        query = {"session": session} | ({} if last is None else {"last_event_id": str(last)})
        with _reworded():
            async with self._http.sse("/v1/events", params=query, max_event_size=None, timeout=_SILENCE) as source:
                if not source.response.is_success:
                    await source.response.aread()
                    raise _rejection(source.response)
                yield _decoded(source)

    async def _ask(self, kind: type[T], method: str, path: str, also: int | None = None, **options: Any) -> T:
        """Send a request; returns the body of a successful answer, or of one with the status `also`."""
        with _reworded():
            response = await self._http.request(method, path, **options)
        if not response.is_success and response.status_code != also:
            raise _rejection(response)
        return TypeAdapter(kind).validate_json(response.content)


async def _decoded(source: httpx2.EventSource) -> AsyncIterator[Received]:
    async for sent in source:
        with contextlib.suppress(ValidationError):  # a kind of event that a newer service has
            event = load(sent.data)
            yield None if isinstance(event, UpdateEvent) else int(sent.id), event


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
