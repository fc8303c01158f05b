"""The world around a service that dies: platform, model, side effects and people outlive it; the state directory too.

A life is one service on the state directory; `process.py` says how it ends.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from agent.errors import ErrorKind
from agent.events import MessageEnd, Notice, load
from agent.message import Message
from agent.tools.base import Verdict
from bot.cli.terminal.view import View
from bot.clock import Clock
from bot.config.background import Heartbeat
from bot.config.budget import Budget, Limit
from bot.config.mcp import Mcp
from bot.config.model import Agent, Channels, Config, Guests, Queue
from bot.config.tools import Tools
from bot.config.voice import Transcription
from bot.gateway.agent_api import AgentApi
from bot.gateway.event_routes import EventStream
from bot.people.access import OWNER
from bot.persistence.approvals import Choice
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.schedules import Job
from bot.persistence.turns import TurnView
from bot.service import Service
from channels.actions import SEND
from channels.console.settings import Console
from channels.discord.settings import Discord
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.session_key import console_key, http_key
from channels.settings import DirectMessages, QueueDrop, QueueMode, Streaming
from channels.slack.settings import Slack
from channels.telegram.settings import Telegram, UserId
from heartbeat.schedule import Schedule, next_after
from tests.crash.hooked import hooks_of
from tests.crash.model import FaithfulModel
from tests.crash.platform import ListeningChannel, Platform, PlatformChannel, Update, place_of
from tests.crash.process import Asking, Counting, End, Process, Sending, Waiting, drop_tasks, let_go
from tests.crash.script import alone, is_beat, parse
from tests.crash.served import SERVER, server_of
from tests.crash.ticks import Ticks
from tests.serving import assemble
from tests.stored import Stored
from tests.watch import PATIENCE

SPEED = 2000
"""How much faster than the real one the clocks run: a second of waiting takes half a millisecond."""
SESSION = "agent:main:telegram:direct:A"
"""Of the owner, where there is one."""
T = TypeVar("T")
Person = Callable[["World"], Awaitable[None]]


@dataclass
class World:
    """Everything but the service. person: what people do; it goes on while services come and go.

    mode, cap, drop: of the queue. others: names of further platforms. failure: how the model fails, where a script
    says so.
    tokens: the budget of a turn. disk: how many bytes the files of a guest may take, less than was sent. background: of
    worlds with beats or jobs the configuration of the heartbeat; who writes in chat A is an owner then.
    hooked: hooks are asked, see `hooked.py`. served: there is an MCP server, see `served.py`.
    jobs: those of the owner, as they were asked for; over: the clock when one was paused or deleted for good.
    """

    root: Path
    person: Person
    pace: float = 0.0
    again: int = 2
    places: int = 4
    drain_seconds: float = 0.0
    timeout_seconds: float = 6000.0
    debounce: int = 0
    seed: int = 0
    speed: int = SPEED
    listening: bool = False
    preview: bool = False
    mode: QueueMode = "followup"
    cap: int = 1000
    drop: QueueDrop = "summarise"
    others: tuple[str, ...] = ()
    failure: ErrorKind = ErrorKind.AUTH
    tokens: int | None = None
    disk: int | None = None
    background: dict[str, Any] | None = None
    hooked: bool = False
    served: bool = False
    seen_by_hooks: list[tuple[str, str]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    prefixes: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    tries: dict[str, set[int]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    failed: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    jobs: dict[str, Job] = field(default_factory=dict)
    over: dict[str, int] = field(default_factory=dict)
    by_themselves: set[str] = field(default_factory=set)
    held: Counter[str] = field(default_factory=Counter)
    active: set[tuple[int, str]] = field(default_factory=set)
    most_active: int = 0
    executed: Counter[str] = field(default_factory=Counter)
    submitted: dict[str, tuple[str, str]] = field(default_factory=dict)
    in_doubt: Counter[int] = field(default_factory=Counter)
    died: int = 0
    drained: int = 0
    reached: int = 0
    failed_commits: int = 0
    skew: int = 0
    lives: int = 0

    def __post_init__(self) -> None:
        self.platforms = [Platform(self.changed, name) for name in ("telegram", *self.others)]
        self.platform = self.platforms[0]
        self.terminal = Terminal(self.changed)
        self._following: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        self._person_done = False
        self._began = time.monotonic()
        self.stored = Stored(self.root / "state")
        self.service: Service | None = None
        self.ticks: Ticks | None = None
        self.process: Process | None = None
        self._run: asyncio.Task[None] | None = None
        self.api: AgentApi | None = None
        self.server = server_of(self)
        self.config = _config(self)

    # What the service and the people use.

    def changed(self) -> None:
        """Something happened: whoever waits looks again."""
        self._moved.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so, or until nothing happens any more."""
        while not condition() and not self.at_rest(person=False):
            self._moved.clear()
            await self._moved.wait()

    async def gate(self, token: str) -> None:
        """Wait until a held answer may go on."""
        await self._gates.setdefault(token, asyncio.Event()).wait()

    def open_gate(self, token: str) -> None:
        """Let a held answer go on, for good."""
        self._gates.setdefault(token, asyncio.Event()).set()

    def steady(self) -> int:
        """Milliseconds of the fast clock, as everybody else has it."""
        return 1_700_000_000_000 + int((time.monotonic() - self._began) * 1000 * self.speed)

    def now(self) -> int:
        """The clock of the machine, which may be set wrong."""
        return self.steady() + self.skew

    async def submit(self, name: str, key: str, text: str, place: Place | None = None) -> TurnView:
        """A program posts a message, again and again until it is answered, always under the same key."""
        session_key = http_key(name) if place is None else console_key()
        place = place or Place(channel="http", account="", chat=name, kind=ChatKind.API)
        view = await self._insist(
            lambda service: service.parts.api.submit(text, session_key, place, place.channel, key)
        )
        known = self.submitted.setdefault(key, (view.turn_id, text))
        if known[0] != view.turn_id:
            self.violations.append(f"two turns for the key {key}")
        self.changed()
        return view

    async def later(self, name: str, text: str, seconds: int) -> None:
        """A message that is to be answered only in a while."""
        place = Place(channel="http", account="", chat=name, kind=ChatKind.API)
        message = InboundMessage(
            origin=Origin(place=place), event_key=f"h:{text}", kind=InboundKind.API, text=text, sent_at=self.steady()
        )
        item = AcceptedMessage(message=message, session_key=http_key(name), delay=seconds * 1000)
        await self._insist(lambda service: service.parts.pipeline.accept_one(item))

    async def _insist(self, call: Callable[[Service], Awaitable[T]]) -> T:
        """Ask whatever service lives, until one answers."""
        while True:
            life = self.process
            if self.api is not None and self.service is not None and life is not None and not life.dead:
                with contextlib.suppress(ConnectionError):
                    return await _answered(call(self.service), life)
            else:
                self._moved.clear()
                await self._moved.wait()

    async def steer_waiting(self, update: Update) -> bool:
        """A message that waits is to steer the run of its session; False when it does not, or the service dies."""
        life = self.process
        ((seq, session_key),) = self.stored.messages("seq", "session_key", event_key=update.event_key)
        if self.service is None or life is None or life.dead:
            return False
        handle = self.service.parts.lanes.handle(session_key)
        if handle is None:
            return False
        try:
            return await _answered(self.service.parts.store.inbox.steer(handle.turn_id, seq), life)
        except ConnectionError:
            return False

    def has_ended(self, token: str) -> bool:
        """Whether the turn of a script has failed."""
        failed = self.stored.turns("turn_id", state="failed")
        texts = [text for (turn_id,) in failed for text in self.stored.texts(turn_id=turn_id)]
        return any(script is not None and script.token == token for script in map(parse, texts))

    async def decide(self, approval_id: str, state: Verdict) -> bool:
        """A person decides, again and again until they are answered; returns whether it was they who did."""
        while True:
            life = self.process
            if self.service is not None and life is not None and not life.dead:
                try:
                    return await _answered(
                        self.service.parts.requests.decide(approval_id, Choice(verdict=state), "telegram:A"), life
                    )
                except ConnectionError:
                    continue
            self._moved.clear()
            await self._moved.wait()

    async def steer(self, turn_id: str, text: str) -> bool:
        """A program steers a run; whether it was taken is unknown when the service dies: False then."""
        life = self.process
        if self.api is None or life is None or life.dead:
            return False
        try:
            return await _answered(self.api.steer(turn_id, text, OWNER), life)
        except ConnectionError:
            return False

    # What happens by itself.

    def leap(self, hours: float) -> None:
        """Time passes in which nobody does anything: for all clocks, as when the machine sleeps."""
        self._began -= hours * 3600 / self.speed
        self.platform.leapt += int(hours * 3_600_000)
        if self.ticks is not None:
            self.ticks.hurry()

    async def quiet(self) -> None:
        """Wait until nothing happens any more."""
        await self.until(lambda: False)

    def checklist(self, script: str, tasks: str = "") -> None:
        """What HEARTBEAT.md says from now on."""
        self._by_itself(script)
        file = self.config.workspace / "HEARTBEAT.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{tasks}\n{script}\n")

    async def plan(self, job_id: str, schedule: Schedule, script: str, *, own: bool = True) -> None:
        """The owner asks for a job, whose first due time is far away."""
        self._by_itself(script)
        job = self.jobs[job_id] = Job(
            job_id=job_id,
            name=job_id,
            schedule=schedule,
            prompt=script,
            origin=Origin(place=place_of("A"), sender="A"),
            session_key=SESSION,
            own=own,
            next_at=next_after(schedule, self.now()),
        )
        await self._insist(lambda service: service.parts.store.schedules.put(job, 100))

    async def pause(self, job_id: str) -> None:
        """The owner lets a job, or the heartbeat, rest."""
        await self._insist(lambda service: service.parts.store.schedules.pause(job_id, True, None))
        self.over[job_id] = self.now()

    async def delete(self, job_id: str) -> None:
        """The owner wants a job no more."""
        await self._insist(lambda service: service.parts.store.schedules.delete(job_id))
        self.over[job_id] = self.now()

    async def wake(self, text: str) -> None:
        """A program tells of something, at which it is to beat at once."""
        await self._insist(lambda service: service.parts.dispatcher.beats.wake(text, now=True))

    def _by_itself(self, script: str) -> None:
        read = parse(script)
        assert read is not None
        self.by_themselves.add(read.token)

    def kept_beats(self) -> Counter[str]:
        if self.background is None:
            return Counter()
        bodies = self.stored.entries("body", kind="user", hidden=0)
        texts = ("".join(part.get("text", "") for part in json.loads(body)["parts"]) for (body,) in bodies)
        return Counter(text for text in texts if is_beat(text) and not alone(text))

    # Lives.

    async def live(self, *ends: End) -> None:
        """Services one after the other, the last one until everything is at rest; then it is stopped in order."""
        person = asyncio.create_task(self._act(), name="person")
        try:
            stacks = ""
            async with asyncio.timeout(PATIENCE):
                try:
                    for end in ends:
                        if not await self._one_life(end):
                            return
                    await self._one_life(None)
                except asyncio.CancelledError:
                    stacks = "\n".join(repr(task) for task in asyncio.all_tasks())
                    raise
        except TimeoutError:
            raise AssertionError(f"stuck: {self.describe()}\n{stacks}") from None
        finally:
            person.cancel()
            await asyncio.gather(person, return_exceptions=True)
            await self.bury()

    async def _act(self) -> None:
        await self.person(self)
        self.person_done()

    def person_done(self) -> None:
        """Nobody waits for anything any more."""
        self._person_done = True
        self.changed()

    async def up(self) -> None:
        """Wait until the service runs."""
        assert self.process is not None
        await self.process.up.wait()

    async def _one_life(self, end: End | None) -> bool:
        """Returns whether it ended as planned, else everything came to rest before."""
        process, run = self.begin(end)
        ended = asyncio.create_task(process.ended.wait(), name="ended")
        rest = asyncio.create_task(self.rest(), name="rest")
        try:
            await asyncio.wait((run, ended, rest), return_when=asyncio.FIRST_COMPLETED)
            if run.done() and not process.dead:
                run.result()
        finally:
            for task in (ended, rest):
                task.cancel()
            await asyncio.gather(ended, rest, return_exceptions=True)
        await self.finish()
        return process.ended.is_set()

    def begin(self, end: End | None = None) -> "tuple[Process, asyncio.Task[None]]":
        """Start a service; it is up some time later."""
        process = self.process = Process(self, self.lives, end)
        self._following = None
        self.lives += 1
        self.active.clear()
        run = self._run = asyncio.create_task(self._serve(process), name="life")
        return process, run

    async def finish(self) -> None:
        """Stop the service in order, unless it dies or is dead; then bury it."""
        process, run = self.process, self._run
        assert process is not None
        assert run is not None
        if not process.dead:
            await self._stop(run, process)
        if process.dead:
            await self._kill(run)

    async def rest(self) -> None:
        """Wait until everything is at rest."""
        while not self.at_rest():
            self._moved.clear()
            await self._moved.wait()

    async def moves(self, count: int) -> None:
        """Wait until something has happened so many times, or everything is at rest."""
        for _ in range(count):
            if self.at_rest(person=False):
                return
            self._moved.clear()
            await self._moved.wait()

    async def goes_on(self, count: int) -> None:
        """As `moves`, but that nothing happens any more is taken from a pause: looking takes long in a long life."""
        with contextlib.suppress(TimeoutError):
            for _ in range(count):
                self._moved.clear()
                async with asyncio.timeout(0.01):
                    await self._moved.wait()

    async def _serve(self, process: Process) -> None:
        clock = Clock(
            now=self.now,
            monotonic=lambda: (time.monotonic() - self._began) * self.speed,
            sleep=lambda seconds: asyncio.sleep(seconds / self.speed),
            random=Random(self.seed * 1000 + process.number),
        )
        made = ListeningChannel if self.listening else PlatformChannel
        channels = [made(platform, process, self.steady, self.again, self.pace) for platform in self.platforms]
        service = self.service = await assemble(
            self.config,
            clock=clock,
            model=FaithfulModel(self, process, process.number),
            channels=channels,
            tools=[
                Counting(self, process, "count", False),
                Counting(self, process, "look", True),
                Waiting(self, process, "wait", False),
                Asking(self, process, "ask", seconds=1e9),
                Asking(self, process, "late", seconds=60),
                Sending(self, process, "send", False),
            ],
            commit_probe=process.probe,
            hooks=hooks_of(lambda point, text: self.seen_by_hooks.append((point, text))) if self.hooked else (),
        )
        self.api = service.parts.api
        self.ticks = Ticks(service.parts.dispatcher.tick, self.speed)
        service._scheduler = self.ticks  # type: ignore[assignment]
        await service.start()
        self._following = asyncio.create_task(self.terminal.follow(service, process), name="terminal")
        process.up.set()
        self.changed()
        await process.ended.wait()

    async def _stop(self, run: asyncio.Task[None], process: Process) -> None:
        """SIGTERM, or the end of the test; it may die over it."""
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert self.service is not None
        self.drained += not self.at_rest()
        closing = asyncio.create_task(self.service.close(), name="closing")
        ended = asyncio.create_task(process.gone.wait(), name="ended")
        await asyncio.wait((closing, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not process.dead:
            closing.result()
            if self._following is not None:
                await asyncio.gather(self._following, return_exceptions=True)
            self.service = self.api = None
        else:
            closing.cancel()
        await asyncio.gather(closing, ended, return_exceptions=True)

    async def _kill(self, run: asyncio.Task[None]) -> None:
        """The kernel's part: all tasks end where they stand, descriptors are closed, the lock is free."""
        self.died += 1
        await drop_tasks()
        await asyncio.gather(run, return_exceptions=True)
        if self.service is not None:
            await let_go(self.service)
        self.service = self.api = None
        for nonce, attempts in self.stored.deliveries("nonce", "attempts", state="sending"):
            self.in_doubt[nonce] = max(self.in_doubt[nonce], attempts)
        lost = [found for found in self.platform.updates[: self.platform.confirmed] if not self.has(found)]
        if lost:
            self.violations.append(f"acknowledged and not stored: {lost}")

    def has(self, update: Update) -> bool:
        """Whether the service has an update in its store."""
        if update.moves_to:
            return not self.stored.conversations(chat=update.chat, moved_to=None)
        return bool(self.stored.messages("seq", channel="telegram", event_key=update.event_key))

    async def bury(self) -> None:
        """Leave nothing running after a failure."""
        if self.service is not None:
            self.process.dead = True  # type: ignore[union-attr]
            await drop_tasks()
            await let_go(self.service)
            self.service = None

    def close(self) -> None:
        """Let go of the file."""
        self.stored.close()

    def at_rest(self, *, person: bool = True) -> bool:
        """Whether everything accepted is done, and everything written is accepted."""
        if (person and not self._person_done) or self.process is None or self.service is None:
            return False
        # first what was accepted: a message that comes between two looks must not be overlooked by the second
        if not self.stored.begun:
            return False
        deleted = ((one.confirmed, update) for one in self.platforms for update in one.updates if update.deletes)
        if any(confirmed < update.update_id for confirmed, update in deleted):
            return False
        kinds = {"message", "edit", "command"}
        accepted = len(self.stored.messages("seq", channel={one.name for one in self.platforms}, kind=kinds))
        written = sum(not update.deletes for one in self.platforms for update in one.updates)
        moves = [update for update in self.platform.updates if update.moves_to]
        if self.platform.deaf:  # what is missed meanwhile nobody waits for
            moves = self.platform.live
        elif accepted + len(moves) != written:
            return False
        if not all(map(self.has, moves)):
            return False
        if self.stored.messages("seq", state="held"):
            return False
        if self.background is not None and self.stored.due(self.now()):
            return False
        if self.stored.memories(state={"keeping", "taking"}):  # their file is behind
            return False
        return not self.stored.unfinished() and self.stored.last_event(console_key()) <= self.terminal.position

    def describe(self) -> str:
        """What is open, for the message of a failed test."""
        stored = self.stored
        return "\n".join(
            (
                f"messages: {stored.messages('seq', 'state', 'reason', 'kind', 'turn_id', 'payload')}",
                f"turns: {stored.turns('turn_id', 'state', 'epoch', 'crashes', 'step', 'outcome', 'error_kind')}",
                f"deliveries: {stored.deliveries('delivery_id', 'source', 'state', 'attempts', 'not_before', 'error')}",
                f"calls: {stored.calls('call_id', 'state')}",
                f"jobs: {stored.jobs('job_id', 'next_at', 'failures', 'paused')}",
                f"firings: {stored.firings()}",
                f"shown: {self.platform.shown}\nviolations: {self.violations}\nnow: {self.now()}",
            )
        )


class Terminal:
    """A terminal that outlives services: it reads their events from its position on. said: by answer or sentence."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.position = 0
        self.said: dict[str, str] = defaultdict(str)
        self._view = View(0)
        self._changed = changed

    async def follow(self, service: Service, process: Process) -> None:
        """Read until the service ends; what it says when it is dead reaches nobody."""
        stream = EventStream(service.parts.store.reads, service.parts.bus, console_key())
        self._view.reconnected()
        async for chunk in stream.chunks(self.position):
            for frame in chunk.decode().split("\n\n"):
                fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":") and line)
                if process.dead:
                    return
                if "data" in fields:
                    event = load(fields["data"])
                    said = "".join(piece.said for piece in self._view.event(event))
                    if isinstance(event, MessageEnd):
                        self.said[f"{event.run.turn_id}/{event.step}"] += said
                    elif isinstance(event, Notice):
                        self.said[event.id] += said
                self.position = int(fields.get("id", self.position))
            self._changed()


async def _answered(call: Awaitable[T], life: Process) -> T:
    """The answer of a service to a program; ConnectionError when it dies first."""
    task = asyncio.ensure_future(call)
    ended = asyncio.create_task(life.gone.wait(), name="ended")
    await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    await asyncio.gather(ended, return_exceptions=True)
    if not task.done():
        task.cancel()
    found = (await asyncio.gather(task, return_exceptions=True))[0]
    if isinstance(found, BaseException):
        raise ConnectionError("the service went away") from found
    return found


class _Telegram(Telegram):
    """On which the model can send."""

    offered = (SEND,)


def _config(world: World) -> Config:
    streaming = Streaming(mode="preview" if world.preview else "block", min_chars=40, max_chars=90)
    config = Config(
        agent=Agent(
            max_concurrent=world.places, drain_seconds=world.drain_seconds, timeout_seconds=world.timeout_seconds
        ),
        channels=Channels(
            console=Console(enabled=False),
            telegram=_Telegram(enabled=False, dm=DirectMessages[UserId](policy="open"), streaming=streaming),
            discord=Discord.model_validate({"dm": {"policy": "open"}}),
            slack=Slack.model_validate({"dm": {"policy": "open"}}),
        ),
        guests=Guests() if world.disk is None else Guests(disk=world.disk),
        budget=Budget(turn=Limit(tokens=world.tokens)),
        transcription=Transcription(command=("cat", "{file}")),
        heartbeat=Heartbeat.model_validate({"every": 0, **(world.background or {})}),
        queue=Queue(debounce_ms=world.debounce, mode=world.mode, cap=world.cap, drop=world.drop),
        mcp=Mcp.model_validate({"servers": {SERVER: world.server.server} if world.server else {}}),
        tools=Tools.model_validate({"untrusted": {"mcp": "allow"}}),
        workspace=world.root / "workspace",
        state=world.root / "state",
    )
    return config.model_copy(update={"owners": ("telegram:A",)})  # no id of the platform, which is a number
