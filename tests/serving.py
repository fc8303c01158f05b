"""How every test gets a service: built by `bot/wiring` as `hark run` does, with what the test brings from outside."""

import asyncio
import atexit
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from agent.models.base import ThinkingLevel
from bot.config.model import Config
from bot.service import Service
from bot.store.database import CLEAN, FILE, Database
from bot.wiring import Dependencies, build
from channels.actions import ActionFailed, Arguments
from channels.base import Capabilities, Health, HealthState, NotDownloaded, Sink
from channels.message import Attachment, Origin, Place
from channels.outgoing import Delivery, NotSent, SendResult, Unknown
from tests.watch import PATIENCE

MOST_SENDS = 3
"""How often a platform without a memory is asked for the same message."""

_empty_store: Path | None = None


async def assemble(config: Config, **around: Any) -> Service:
    """A service that is not started. around: fields of Dependencies; nothing of this machine is looked at without.

    Where there is no store yet it finds an empty one, for making the tables costs as much as half a start. That a
    service makes its own is for the tests of the store, and for those that start a process.
    """
    if not (config.state / FILE).exists():
        config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = await _empty()
        for name in (FILE, CLEAN):
            shutil.copy2(empty / name, config.state)
    outside: dict[str, Any] = {"environ": {}, "ollama": lambda _: None, "gateway": False}
    return await build(config, Dependencies(**outside | around))


async def _empty() -> Path:
    """The folder of a store without anything in it that was closed in order, made once in each process."""
    global _empty_store
    if _empty_store is None:
        _empty_store = Path(tempfile.mkdtemp(prefix="hark-test-empty-"))
        atexit.register(shutil.rmtree, _empty_store, ignore_errors=True)
        database = Database(_empty_store)
        await database.open()
        await database.close()
    return _empty_store


@contextlib.asynccontextmanager
async def serving(config: Config, **around: Any) -> AsyncIterator[Service]:
    """A service that runs while the context lasts; around: see `assemble`."""
    service = await assemble(config, **around)
    try:
        await service.start()
        yield service
    finally:
        async with asyncio.timeout(PATIENCE):
            await service.close()


class PlainChannel:
    """What the platforms of tests have in common. It is called telegram, so that the rules of that channel hold."""

    name = "telegram"
    account = "bot"
    capabilities = Capabilities(block_chars=4000, typing_seconds=0, rules="You are talking in a test.")

    def __init__(self) -> None:
        self.sink: Sink | None = None

    async def start(self, sink: Sink) -> None:
        self.sink = sink

    async def stop_intake(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def render(self, text: str) -> Sequence[str]:
        return (text,)

    def pass_limit(self, place: Place) -> float:
        return 0.0

    async def settle(self, delivery: Delivery) -> SendResult:
        """Telegram's rule, on a platform that always lives."""
        return Unknown("never told") if delivery.attempts >= MOST_SENDS else NotSent(0.0, "sent again")

    async def working(self, place: Place) -> None:
        pass

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """Reactions of a platform that shows none."""

    async def frame(self, place: Place, target: str, body: str) -> float:
        return 1.0

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        raise ActionFailed(f"{name} is not possible here")

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        return ()

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """There are no files."""
        raise NotDownloaded("there are no files")
        yield b""

    def health(self) -> Health:
        return Health(HealthState.READY, 0)


class PlainModel:
    """What the model clients of tests have in common."""

    name = "test/model"
    context_window = 100_000
    max_output = 1000
    thinks = False
    key = ""

    def level_for(self, wanted: ThinkingLevel) -> ThinkingLevel:
        return wanted if self.thinks else "auto"

    def output_limit(self, level: ThinkingLevel) -> int:
        return self.max_output

    async def preload(self) -> None:
        pass

    async def close(self) -> None:
        pass
