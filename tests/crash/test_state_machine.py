"""People, a platform and a service that dies, in any order that hypothesis thinks of; the promises hold at every rest.

One example is a list of what happens; the service moves on between two actions, by an amount that is drawn, too.
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.crash.checks import check
from tests.crash.platform import Fault
from tests.crash.process import watch_tasks
from tests.crash.world import PATIENCE, World
from tests.examples import fewer

T = TypeVar("T")
PLACES = 2
HOUR = 3_600_000
SPEED = 200
"""Of the clocks: slow enough that whoever waits for an hour is stuck."""
CHATS = st.sampled_from("ABC")
SCRIPTS = st.sampled_from(("1p", "3p", "count | 1p", "1p+look+look | 2p+count | 1p", "2p+break", "count+count"))
COMMANDS = st.sampled_from(("/stop", "/new", "/status", "/help", "/reset", "/help stop"))
FAULTS = st.sampled_from(("429", "not_ready", "answer_lost", "request_lost"))


class Bot(RuleBasedStateMachine):
    """The actions; what must hold is in `checks`."""

    kinds: ClassVar[dict[str, Any]] = {}
    """What is particular about the world."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = False
        self.loop = asyncio.new_event_loop()
        base = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(dir=base if base.is_dir() else None))
        self.tokens: Counter[str] = Counter()
        self.world = self._run(self._begin())

    async def _begin(self) -> World:
        async def nobody(world: World) -> None:
            """The rules are the people here."""

        world = World(self.root, nobody, places=PLACES, speed=SPEED, **self.kinds)
        world.person_done()
        self.lost = watch_tasks()
        world.begin()
        return world

    def _run(self, work: Awaitable[T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self.loop.run_until_complete(bounded())

    def wrong(self) -> list[str]:
        """Every broken promise."""
        return check(self.world)

    def _script(self, chat: str, what: str) -> str:
        self.tokens[chat] += 1
        return f"{chat}{self.tokens[chat]} {what}"

    @rule(chat=CHATS, what=SCRIPTS)
    def write(self, chat: str, what: str) -> None:
        self.world.platform.write(chat, self._script(chat, what))

    @rule(order=st.permutations("AABBC"))
    def write_at_once(self, order: list[str]) -> None:
        for chat in order:
            self.world.platform.write(chat, self._script(chat, "1p"))

    @rule(chat=CHATS, command=COMMANDS)
    def command(self, chat: str, command: str) -> None:
        self.world.platform.write(chat, command)

    @rule(chat=CHATS, what=SCRIPTS, command=COMMANDS)
    def command_in_between(self, chat: str, what: str, command: str) -> None:
        self.world.platform.write(chat, self._script(chat, what), command, self._script(chat, "1p"))

    @rule(count=st.integers(1, 5))
    def redeliver(self, count: int) -> None:
        self.world.platform.redeliver(count)

    @rule(chat=CHATS, fault=FAULTS)
    def fail(self, chat: str, fault: Fault) -> None:
        self.world.platform.fail_next(chat, fault)

    @rule(hours=st.sampled_from((-1, 1)))
    def clock(self, hours: int) -> None:
        self.world.skew += hours * HOUR

    @rule()
    def disk_full(self) -> None:
        assert self.world.process is not None
        self.world.process.fill(3)

    @rule(count=st.integers(1, 40))
    def go_on(self, count: int) -> None:
        self._run(self.world.moves(count))

    @rule()
    def crash(self) -> None:
        self._run(self._crash())

    async def _crash(self) -> None:
        await self.world.up()
        assert self.world.process is not None
        self.world.process.die()
        await self.world.finish()
        self.world.begin()

    @rule()
    def drain(self) -> None:
        self._run(self._drain())

    async def _drain(self) -> None:
        await self.world.up()
        await self.world.finish()
        self.world.begin()

    @rule()
    def rest(self) -> None:
        self._run(self._rest())

    async def _rest(self) -> None:
        if self.world.platform.deaf:
            self.world.platform.disconnect(deaf=False)
        try:
            async with asyncio.timeout(PATIENCE - 1):
                await self.world.up()
                await self._at_rest()
        except TimeoutError:
            raise AssertionError(f"stuck: {self.world.describe()}") from None
        wrong = self.wrong() + self.lost
        self.failed = bool(wrong)
        assert not wrong, "\n".join([*wrong, self.world.describe()])
        assert self.world.most_active <= PLACES

    async def _at_rest(self) -> None:
        await self.world.rest()

    def teardown(self) -> None:
        try:
            if not self.failed:
                self._run(self._rest())
                self._run(self.world.finish())
        finally:
            self._run(self.world.bury())
            self.world.close()
            self.loop.close()
            shutil.rmtree(self.root)


class Listener(Bot):
    """On a platform that tells everything once, and not to who is not connected."""

    kinds: ClassVar[dict[str, Any]] = {"listening": True}

    @rule()
    def disconnect(self) -> None:
        self.world.platform.disconnect(deaf=True)

    @rule()
    def connect(self) -> None:
        self.world.platform.disconnect(deaf=False)


TestBot = Bot.TestCase
TestListener = Listener.TestCase
# They wait for what the libraries of the platforms do by themselves.
TestBot.pytestmark = TestListener.pytestmark = [pytest.mark.waits]
# Not shrunk: an example that is stuck takes seconds to fail, and shrinking tries hundreds.
TestBot.settings = settings(fewer(13), stateful_step_count=20, phases=[Phase.generate])
TestListener.settings = settings(TestBot.settings, max_examples=max(10, TestBot.settings.max_examples // 5))
