"""The real service for tests: built by `bot/wiring`, with a channel that records, a scripted model and a still clock.

    async def test_a_file_is_read(hark: Hark) -> None:
        hark.model.add(Call("read", {"path": "a.txt"}))
        hark.model.add("done")
        reply = await hark.say("look")
        assert reply.texts == ["done"]

    async with running(tmp_path, config={"queue": {"debounce_ms": 500}}) as hark:  # with other settings, or a restart
        ...

Nothing of ours is replaced: channel and model are what the service takes from outside. A test that ends well has
made no request that a strict provider would refuse.
"""

import asyncio
import contextlib
import itertools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from pydantic import TypeAdapter

from agent.events import AgentEnd, AgentEvent, AgentStart, Outcome
from agent.hooks import Hook
from agent.message import ToolOutput
from agent.models.base import ModelClient
from agent.tools.base import CallContext, Parameters, Tool, ToolFactory
from bot.clock import Clock
from bot.commands.registry import Command
from bot.config.model import Config, Source
from bot.gateway.balance import CHECK_EVERY
from bot.service import PRUNE_EVERY, Service
from bot.store.writer import CommitProbe
from channels.base import Capabilities, NotDownloaded
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Origin, Place, message_key
from channels.outgoing import Action, Delivery, SendResult, Sent
from tests.scripted_model import ScriptedModel
from tests.serving import PlainChannel, assemble
from tests.standins.script import Hang, Written, answer_of
from tests.standins.script import Reply as Scripted
from tests.stored import Stored
from tests.watch import PATIENCE, ManualTime, Watch

E = TypeVar("E")
_EVENT: TypeAdapter[AgentEvent] = TypeAdapter(AgentEvent)
_seeds = itertools.count(20)
Json = dict[str, Any]
Answers = Sequence[Written | Scripted]


class RecordingChannel(PlainChannel):
    """A platform that takes everything.

    log: sends and signs of work in the order of the calls. on_send, on_settle, on_working: what the platform does,
    where a test wants something else. wait: seconds that its rate limits ask for. files: by their reference what can be
    downloaded, each after `on_download`; fetched: the references that were asked for.
    """

    def __init__(
        self,
        watch: Watch,
        *,
        block_chars: int = 4000,
        typing_seconds: float = 0,
        rules: str = "You are talking in a test.",
        actions: frozenset[Action] = frozenset(Action),
        file_bytes: int = 1000,
    ) -> None:
        super().__init__()
        self.capabilities = Capabilities(
            block_chars=block_chars,
            typing_seconds=typing_seconds,
            rules=rules,
            actions=actions,
            file_bytes=file_bytes,
        )
        self.watch = watch
        self.wait = 0.0
        self.sent: list[Delivery] = []
        self.looked_for: list[Delivery] = []
        self.log: list[tuple[str, str]] = []
        self.on_send: Callable[[Delivery], Awaitable[SendResult]] | None = None
        self.on_settle: Callable[[Delivery], Awaitable[SendResult]] | None = None
        self.on_working: Callable[[Place], Awaitable[None]] | None = None
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.on_download: Callable[[], Awaitable[None]] | None = None
        self.rendered: Callable[[str], Sequence[str]] = lambda text: (text,)

    def texts(self, chat: str = "1") -> list[str]:
        """What was sent into a chat."""
        return [delivery.body for delivery in self.sent if delivery.place.chat == chat]

    def render(self, text: str) -> Sequence[str]:
        return self.rendered(text)

    def pass_limit(self, place: Place) -> float:
        return self.wait

    async def send(self, delivery: Delivery) -> SendResult:
        result = await self.on_send(delivery) if self.on_send else Sent(str(len(self.sent) + 1))
        if isinstance(result, Sent):
            self.sent.append(delivery)
            self.log.append(("send", delivery.body))
        self.watch.changed()
        return result

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        self.log.append(("react", f"{before}>{emoji} on {target}"))
        self.watch.changed()

    async def settle(self, delivery: Delivery) -> SendResult:
        self.looked_for.append(delivery)
        if self.on_settle:
            return await self.on_settle(delivery)
        return await super().settle(delivery)

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        self.fetched.append(attachment.ref)
        self.watch.changed()
        if self.on_download:
            await self.on_download()
        if attachment.ref not in self.files:
            raise NotDownloaded("the platform has it no more")
        for start in range(0, len(self.files[attachment.ref]), 100_000):
            yield self.files[attachment.ref][start : start + 100_000]

    async def working(self, place: Place) -> None:
        self.log.append(("working", place.chat))
        self.watch.changed()
        if self.on_working:
            await self.on_working(place)


class NoParameters(Parameters):
    """Of a tool that takes nothing."""


class Labelled(Parameters):
    """Of a tool whose calls are told apart by a label."""

    label: str = ""


class ScriptedTool(Tool[Labelled]):
    """A tool that does what the test says; `begun` and `ended` hold the labels of its calls in order."""

    parameters = Labelled
    description = "Does what the test says."

    def __init__(
        self, name: str, run: Callable[[str], Awaitable[str]], watch: Watch, *, parallel_safe: bool = False
    ) -> None:
        self.name = name
        self.parallel_safe = parallel_safe
        self._run = run
        self._watch = watch
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def run(self, parameters: Labelled, context: CallContext) -> ToolOutput:
        """See Tool."""
        self.begun.append(parameters.label)
        self._watch.changed()
        context.update(f"doing {parameters.label}")
        text = await self._run(parameters.label)
        self.ended.append(parameters.label)
        return ToolOutput(text=text)


@dataclass(frozen=True, slots=True)
class Reply:
    """What one message led to: what was sent into its chat, how the turn ended, and all events of it."""

    texts: list[str]
    end: AgentEnd
    events: list[AgentEvent]

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return self.end.outcome

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


@dataclass
class Hark:
    """A running service and what surrounds it."""

    service: Service
    channel: RecordingChannel
    model: ScriptedModel
    time: ManualTime
    watch: Watch
    stored: Stored
    state: Path
    events: list[AgentEvent] = field(default_factory=list)
    closing: Awaitable[None] | None = None
    """The end of the service, where a test has begun it."""
    _messages: int = field(init=False, default=0)
    _ends: list[tuple[int, AgentEnd]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        with contextlib.suppress(sqlite3.DatabaseError):  # a test may have damaged it
            ids = (int(number) for (number,) in self.stored.messages("message_id") if number.isdigit())
            self._messages = max(ids, default=0)  # keys are not given again after a restart

    async def say(self, text: str, sender: str = "1", answers: Answers = ()) -> Reply:
        """Write a message and wait until its turn has ended and everything is delivered; one at a time.

        answers: what the model says to it, request by request.
        """
        events, sent = len(self.events), len(self.channel.texts(sender))
        await self.write(text, sender=sender, answers=answers)
        key = session_of(sender)
        await self.until(lambda: self.ends(key, events), f"the end of {text!r}")
        await self.delivered()
        (end,) = self.ends(key, events)
        found = [event for event in self.events[events:] if event.run.turn_id == end.run.turn_id]
        return Reply(self.channel.texts(sender)[sent:], end, found)

    async def write(
        self, *texts: str, sender: str = "1", answers: Sequence[Written | Scripted] = (), **fields: Any
    ) -> None:
        """Messages of a person in one batch; returns when they are accepted. answers: see `say`."""
        for answer in answers:
            self.model.add(*((answer,) if callable(answer) else answer_of(answer)))
        await self.accept(*(self.message(text, sender, **fields) for text in texts))

    async def hanging(self, *texts: str, then: Written = (), **fields: Any) -> Hang:
        """Write, and return once the model has fallen silent over it; when it is released it answers `then`."""
        hang = Hang()
        await self.write(*texts, answers=[(hang, *answer_of(then))], **fields)
        await hang.entered()
        return hang

    async def accept(self, *messages: InboundMessage) -> None:
        """What the channel hands over in one batch."""
        assert self.channel.sink is not None
        await self.channel.sink.accept(messages, None)

    def message(self, text: str, sender: str = "1", **fields: Any) -> InboundMessage:
        """A message as an adapter makes it, with a key of its own."""
        self._messages += 1
        message_id = str(self._messages)
        place = Place(channel="telegram", account="bot", chat=sender, kind=ChatKind.DIRECT)
        given: Json = {
            "origin": Origin(place=place, sender=sender, message_id=message_id),
            "event_key": message_key(sender, message_id),
            "kind": InboundKind.MESSAGE,
            "text": text,
            "sent_at": self.time.now(),
        }
        return InboundMessage(**given | fields)

    def ends(self, session_key: str, since: int = 0) -> list[AgentEnd]:
        """The ends of runs in a session, of the events from a position on."""
        return [end for at, end in self._ends if at >= since and end.run.session_key == session_key]

    async def until(self, condition: Callable[[], object], what: str = "the condition") -> None:
        """Return when the condition holds; looked at when a request, call, send, event, pause or commit comes."""
        await self.watch.until(condition, what)

    async def until_texts(self, count: int, chat: str = "1") -> list[str]:
        """What was sent into a chat, once it is so many messages."""
        await self.until(lambda: len(self.channel.texts(chat)) >= count, f"message {count} in chat {chat}")
        return self.channel.texts(chat)

    async def rested(self) -> None:
        """Return when the service has done what it does by itself after its start."""
        await self.until(
            lambda: self.time.asked.count(PRUNE_EVERY) == 2 and CHECK_EVERY in self.time.asked, "a quiet store"
        )

    async def delivered(self) -> None:
        """Return when nothing waits to be delivered."""
        await self.until(lambda: not self.stored.open_deliveries(), "the delivery of everything")

    async def listen(self) -> None:
        subscription = self.service.parts.bus.subscribe()
        while batch := await subscription.batch():
            for told in batch:
                new = map(_EVENT.validate_python, self.stored.events(seq=told)) if isinstance(told, range) else (told,)
                for event in new:
                    if isinstance(event, AgentEnd):
                        self._ends.append((len(self.events), event))
                    self.events.append(event)
                self.watch.changed()


def session_of(sender: str) -> str:
    """The session key of a person's direct messages, as the default scope makes it."""
    return f"agent:main:telegram:direct:{sender}"


def settings(home: Path, changes: Mapping[str, Any] | None = None) -> Config:
    """A configuration for a test: everybody may write, person 1 is the owner, and nothing drains."""
    document: Json = {
        "agent": {"drain_seconds": 0, "receipts": "off"},
        "owners": ["telegram:1"],
        "queue": {"debounce_ms": 0},
        "heartbeat": {"every": "0"},
        "channels": {"console": {"enabled": False}, "telegram": {"dm": {"policy": "open"}}},
        "workspace": home / "workspace",
        "state": home / "state",
    }
    return Config.model_validate(_merged(document, changes or {}))


def _merged(below: Json, above: Mapping[str, Any]) -> Json:
    found = dict(below)
    for key, value in above.items():
        found[key] = _merged(found[key], value) if isinstance(value, Mapping) and key in found else value
    return found


@contextlib.asynccontextmanager
async def running(
    home: Path,
    *,
    config: Mapping[str, Any] | None = None,
    model: ScriptedModel | None = None,
    client: ModelClient | None = None,
    tools: Callable[[Watch], Sequence[Tool[Any]]] = lambda watch: (),
    factories: Sequence[ToolFactory] = (),
    hooks: Sequence[Hook] = (),
    commands: Sequence[Command] = (),
    channel: Mapping[str, Any] | None = None,
    made: Callable[..., RecordingChannel] = RecordingChannel,
    time: ManualTime | None = None,
    probe: CommitProbe | None = None,
    environ: Mapping[str, str] | None = None,
    chosen: bool = False,
    wait: bool = True,
    whole: Config | None = None,
    listens: bool = True,
    **around: Any,
) -> AsyncIterator[Hark]:
    """A service on `home` that runs while the context lasts; the same home again is a restart.

    config: changes to `settings`. client: a model client instead of the scripted one; chosen: the one that the
    configuration names. tools: made with the watch they report to. channel: arguments of RecordingChannel, or of what
    is made instead. wait: for the end of the start. whole: a configuration instead of the changed `settings`. listens:
    note the events. around: fields of Dependencies, in place of those that are made here.
    """
    watch = model.watch if model else Watch()
    model = model or ScriptedModel(watch)
    time = time or ManualTime(watch)
    loop = asyncio.get_running_loop()

    def committed(at: Any) -> None:
        if probe:
            probe(at)
        if at == "after":
            loop.call_soon_threadsafe(watch.changed)

    recording = made(watch, **channel or {})
    clock = Clock(time.now, time.monotonic, time.sleep, Random(next(_seeds)), UTC)
    written = whole or settings(home, config)
    if whole is None and (home / "hooks").is_dir():
        written = written.of(Source((home / "config.yaml",)))
    given: Json = {
        "environ": environ or {},
        "clock": clock,
        "model": None if chosen else client or model,
        "channels": (recording,),
        "tools": tools(watch),
        "tool_factories": factories,
        "hooks": hooks,
        "commands": commands,
        "commit_probe": committed,
    }
    service = await assemble(written, **given | around)
    hark = Hark(service, recording, model, time, watch, Stored(home / "state"), home / "state")
    listening = asyncio.create_task(hark.listen() if listens else asyncio.sleep(0), name="test-events")
    await asyncio.sleep(0)
    starting = asyncio.create_task(service.start(), name="test-start")
    try:
        if wait:
            await starting
        yield hark
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        hark.stored.close()  # so that the service closes the last connection, as ever
        async with asyncio.timeout(PATIENCE):
            await (hark.closing or service.close())
        await listening


@pytest.fixture(name="hark")
async def hark_as_it_comes(tmp_path: Path) -> AsyncIterator[Hark]:
    """A running service with the usual settings; a file whose tests want others has a fixture of this name."""
    async with running(tmp_path) as made:
        yield made


def starts(events: Sequence[AgentEvent]) -> list[AgentStart]:
    """The agent_start events among them."""
    return [event for event in events if isinstance(event, AgentStart)]
