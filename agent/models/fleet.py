"""Chooses which model is asked, and with which key: keys that failed rest, and other models stand in.

The `Fleet` knows the models of the service and which of their keys rest. A `Route` is the way of one run through it: it
begins at the model that the session wants and goes on to the next key, or the next model, when the runner says so.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import MappingProxyType

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Text, Usage
from agent.models.base import Alive, Answer, Keep, ModelClient, ModelRequest, Refused, ThinkingLevel

_MINUTE = 60_000
# For how many minutes a key rests after so many failures in a row; without credit for hours.
_RESTS = (1, 5, 25, 60)
_BILLING_RESTS = (300, 600, 1440)
# Errors that concern a key and not only the model that was asked with it.
_OF_THE_KEY = (ErrorKind.AUTH, ErrorKind.BILLING)
# Errors that say that no call with this key works at present. One that took too long may have been too large.
OUTAGES = (ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.NETWORK, *_OF_THE_KEY)
# Levels of thinking, from the lowest to the highest.
_LEVELS: tuple[ThinkingLevel, ...] = ("off", "low", "medium", "high", "x-high")
# Seconds that a probe may take, and its limit of output in tokens (the least that all providers accept).
_PROBE_SECONDS, _PROBE_OUTPUT = 20.0, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A key that failed, and is not used for a while where another key or model can be."""

    provider: str
    # Empty: the key rests for all models of the provider.
    model: str
    # The digest of the key, see `ModelClient.key`; empty where the provider wants none.
    key: str
    # The last failure.
    kind: ErrorKind
    # How often it has failed since it worked last.
    failures: int
    # When the rest is over, in milliseconds since the epoch; 0: the key has worked again.
    until: int
    # Until when the provider wants no call, in the same way; 0: it did not say.
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Fallback:
    """A model that stands in for others."""

    # `provider/model`.
    model: str
    # The kinds of failures for which it does.
    on: Container[ErrorKind]


class Fleet:
    """All models, and which of their keys rest.

    clients: makes the clients of a model by its name, one for each key; raises LookupError for one that is not
    configured. now: returns the time in milliseconds. persist: stores a rest, or removes it when its `until` is 0.
    keep: stores what a model refuses.
    """

    def __init__(
        self,
        clients: Callable[[str], Sequence[ModelClient]],
        fallbacks: Sequence[Fallback],
        now: Callable[[], int],
        persist: Callable[[Rest], Awaitable[None]],
        keep: Keep,
    ) -> None:
        self._find, self.fallbacks = clients, fallbacks
        self._keep = keep
        # What models refuse, by their names.
        self.refused: dict[str, Refused] = {}
        self._clients: dict[str, Sequence[ModelClient]] = {}
        self._now, self._persist = now, persist
        # By provider, model and key.
        self.rests: dict[tuple[str, str, str], Rest] = {}
        # Wanted models of turns that are parked until one of their models works again.
        self.missed: set[str] = set()
        # Set when a key begins to rest.
        self.rested = asyncio.Event()
        self._well = asyncio.Event()

    def load(self, rests: Iterable[Rest], refused: Iterable[tuple[str, str, str]]) -> None:
        """Take over what was stored before: rests, and what models refuse, as model, part and reason."""
        for model, part, reason in refused:
            self.refused_by(model).parts[part] = reason
        self.rests = {(one.provider, one.model, one.key): one for one in rests}

    def clients(self, name: str) -> Sequence[ModelClient]:
        """Return the clients of a model, one for each key. Raises LookupError for a model that is not configured."""
        if name not in self._clients:
            self._clients[name] = self._find(name)
            for client in self._clients[name]:
                client.refused = self.refused_by(name)
        return self._clients[name]

    def refused_by(self, name: str) -> Refused:
        """Return what a model refuses."""
        return self.refused.setdefault(name, Refused(name, self._keep))

    async def preload(self) -> None:
        """Import the libraries of the models that have been asked for so far."""
        for client in [client for clients in self._clients.values() for client in clients[:1]]:
            await client.preload()

    async def close(self) -> None:
        """Close the clients of all models."""
        for client in [client for clients in self._clients.values() for client in clients]:
            await client.close()

    def knows(self, name: str) -> bool:
        """Whether a model can be asked: its provider is configured."""
        try:
            return bool(self._clients.get(name) or self.clients(name))
        except LookupError:
            return False

    @property
    def down(self) -> Sequence[str]:
        """The models that have been asked for and do not work."""
        return [name for name in self._clients if self.is_down(name)]

    def chain(self, wanted: str) -> Iterator[tuple[str, Container[ErrorKind] | None]]:
        """Yield a model and those that stand in for it, each with the failures for which it does; None: for any."""
        yield wanted, None
        for fallback in self.fallbacks:
            if fallback.model != wanted:
                yield fallback.model, fallback.on

    def all_of(self, wanted: str) -> Sequence[ModelClient]:
        """Return the clients of a model and of those that stand in for it."""
        return [client for name, _ in self.chain(wanted) for client in self.clients(name)]

    def keys(self, name: str, session_key: str) -> Sequence[ModelClient]:
        """Return the clients of a model, beginning with the one that a session always begins with."""
        found = self._clients.get(name) or self.clients(name)
        if len(found) == 1:
            return found
        first = zlib.crc32(session_key.encode()) % len(found)
        return (*found[first:], *found[:first])

    def rest_of(self, client: ModelClient) -> Rest | None:
        """Return the rest of a client's key, though its time may be over; None: it worked when it was used last."""
        provider, _, model = client.name.partition("/")
        found = [self.rests.get((provider, name, client.key)) for name in ("", model)]
        return max((one for one in found if one), key=lambda one: one.until, default=None)

    def until(self, client: ModelClient) -> int:
        """Return when the rest of a key is over, in milliseconds; 0 if it does not rest."""
        rest = self.rest_of(client)
        return rest.until if rest else 0

    def is_ready(self, client: ModelClient) -> bool:
        """Whether a key does not rest."""
        return not self.rests or self.until(client) <= self._now()

    def is_down(self, name: str) -> bool:
        """Whether no key of a model has worked when it was used last. Only a call that works changes that."""
        return bool(self.rests) and all(self.rest_of(client) for client in self.clients(name))

    async def rest(self, client: ModelClient, error: ModelError) -> None:
        """Let a key rest after a failure, at least for as long as the provider asked for."""
        provider, _, model = client.name.partition("/")
        of = provider, "" if error.kind in _OF_THE_KEY else model, client.key
        last, now = self.rests.get(of), self._now()
        if last is not None and last.until > now and last.kind is error.kind:
            failures = last.failures  # tried during its rest, for want of another
        else:
            failures = last.failures + 1 if last else 1
        minutes = _BILLING_RESTS if error.kind is ErrorKind.BILLING else _RESTS
        asked = now + int(error.retry_after * 1000) if error.retry_after else 0
        rest = Rest(
            provider=of[0],
            model=of[1],
            key=of[2],
            kind=error.kind,
            failures=failures,
            until=max(now + minutes[min(failures, len(minutes)) - 1] * _MINUTE, asked),
            asked=asked,
        )
        self.rests[of] = rest
        self.rested.set()
        await self._persist(rest)

    async def works(self, client: ModelClient) -> None:
        """End the rest of a key that has worked, and tell the runs that wait for it."""
        if not self.rests:
            return
        provider, _, model = client.name.partition("/")
        found = [self.rests.pop((provider, name, client.key), None) for name in ("", model)]
        if any(found):
            self._well.set()
            self._well = asyncio.Event()
        for rest in filter(None, found):
            await self._persist(replace(rest, until=0))

    async def until_one_works(self) -> None:
        """Return when a key works again that rested."""
        await self._well.wait()

    async def probe(self, client: ModelClient) -> tuple[bool, Usage]:
        """Return whether a model whose key rests answers the shortest call there is, and what that has used.

        Any answer but one of an outage counts.
        """
        usage = Usage()
        request = ModelRequest(
            system="", messages=(Message("user", (Text("ping"),)),), tools=(), max_output=_PROBE_OUTPUT, for_owners=True
        )
        try:
            async with asyncio.timeout(_PROBE_SECONDS), aclosing(client.stream(request)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        usage = part.usage
                    elif not isinstance(part, Alive):
                        await self.works(client)
        except (ModelError, TimeoutError) as error:
            if isinstance(error, TimeoutError) or error.kind in OUTAGES:
                return self.rest_of(client) is None, usage
        await self.works(client)
        return True, usage


class Route:
    """The way of one run through the models; `model` is the client of the next step.

    wanted: the name of the model that the session wants. thinking: the level that it wants. levels: by the names of
    models, the highest levels that they have not refused in this session; auto: people know what it lacks.
    """

    def __init__(
        self,
        fleet: Fleet,
        wanted: str,
        session_key: str,
        thinking: ThinkingLevel = "auto",
        levels: Mapping[str, ThinkingLevel] = MappingProxyType({}),
    ) -> None:
        self._thinking, self._levels = thinking, dict(levels)
        self.fleet, self.wanted = fleet, wanted
        self._session_key = session_key
        # The clients that have failed since the last answer, and the last failure of each.
        self.failed: dict[ModelClient, ModelError] = {}
        self.model = self._first()

    @property
    def rest(self) -> Rest | None:
        """The rest of the present key, if its time is not over: no key of any model is ready then."""
        return self.fleet.rest_of(self.model) if self.fleet.rests and not self.fleet.is_ready(self.model) else None

    @property
    def thinking(self) -> ThinkingLevel:
        """The level of thinking for the present model."""
        if self._thinking == "auto":
            return "auto"
        most = self._levels.get(self.model.name, "auto")
        return self.model.level_for(self._thinking if most == "auto" else min(self._thinking, most, key=_LEVELS.index))

    def lacks(self) -> bool:
        """Whether the present model is known not to have the level that is wanted; True once in a session."""
        if self._thinking in ("auto", "off") or self.model.name in self._levels or self.thinking == self._thinking:
            return False
        self._levels[self.model.name] = "auto"
        return True

    def think_less(self) -> bool:
        """Take the next lower level for the present model; False below the lowest."""
        if self.thinking in ("auto", "off"):
            return False
        self._levels[self.model.name] = _LEVELS[_LEVELS.index(self.thinking) - 1]
        return True

    async def works(self) -> None:
        """Note that the present model has answered; only of use after a failure."""
        self.failed.clear()
        await self.fleet.works(self.model)

    async def fails(self, error: ModelError) -> None:
        """The present model has failed; after an outage its key rests."""
        self.failed[self.model] = error
        if error.kind in OUTAGES:
            await self.fleet.rest(self.model, error)

    def next_key(self) -> bool:
        """Go on to another key of the present model; False: none is ready."""
        return self._take(self.fleet.keys(self.model.name, self._session_key))

    async def next_model(self, error: ModelError) -> bool:
        """Go on to the next model that stands in for this kind of failure; False: none is ready.

        The key of a model that was silent for too long rests as well, because each turn would wait for it again.
        """
        left = self.model
        names = [name for name, on in self.fleet.chain(self.wanted) if on is not None and error.kind in on]
        found = any(self._take(self.fleet.keys(name, self._session_key)) for name in names)
        if found and error.kind is ErrorKind.TIMEOUT:
            await self.fleet.rest(left, error)
        return found

    def begin_anew(self) -> None:
        """Go back to where the run would begin at this time."""
        self.failed.clear()
        self.model = self._first()

    def _take(self, clients: Iterable[ModelClient]) -> bool:
        found = next((one for one in clients if one not in self.failed and self.fleet.is_ready(one)), None)
        self.model = found or self.model
        return found is not None

    def _first(self) -> ModelClient:
        """Return the client to begin with: of the first model that works, else the one whose rest is over first."""
        if not self.fleet.rests:
            return self.fleet.keys(self.wanted, self._session_key)[0]
        kinds: set[ErrorKind] = set()
        allowed: list[ModelClient] = []
        for name, on in self.fleet.chain(self.wanted):
            if on is None or any(kind in on for kind in kinds):
                clients = self.fleet.keys(name, self._session_key)
                if not self.fleet.is_down(name):
                    return next((one for one in clients if self.fleet.is_ready(one)), clients[0])
                kinds |= {rest.kind for one in clients if (rest := self.fleet.rest_of(one))}
                allowed += clients
        return min(allowed, key=self.fleet.until)
