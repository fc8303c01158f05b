"""The roads that are counted: a plain message, an approval and a beat, each in a chat that has been talked in before.

Everything between Telegram's server and the model's server is real: the adapter with its library, the store, the lanes,
the agent, the model client. Time stands still, so that no sweep and no timer comes between.
"""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from bot.clock import Clock
from bot.config.model import Config
from bot.service import Service
from channels.base import Times
from channels.failures import Rates
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramAccount
from heartbeat.scheduler import Scheduler
from tests.asking import AskingTool
from tests.channels.sections import account
from tests.road.machine import Machine, Work
from tests.road.tracer import PACKAGES, Trace, Tracer
from tests.serving import assemble
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Call
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE
from tests.stored import Stored
from tests.watch import ManualTime, Watch, lanes_idle

# Turns of a session before one is measured whose age must not matter.
AGED = 30
# Tokens of the answer of a plain message.
TOKENS = 4
# Seconds between two beats.
INTERVAL = 1800
# What is said is said for the first time in the process: nothing that is kept of texts makes it cheaper.
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Road:
    """What was counted on one road."""

    trace: Trace
    work: Work


class Traveller:
    """A service whose chat with one person is counted; time: its clock, which stands still. Made before the service."""

    def __init__(self, telegram: TelegramServer, model: OpenAIServer, time: ManualTime, stored: Stored) -> None:
        self.service: Service
        self.telegram = telegram
        self.model = model
        self.time = time
        self.stored = stored
        self.machine = Machine()
        self.tracer = Tracer()
        self._over: Callable[[], bool] = lambda: False

    def on_commit(self, at: str) -> None:
        """End what is counted in the very commit that ends it. Runs in the thread of the store."""
        if at == "after":
            if self.machine.work is not None and self._over():
                self.machine.work = None
                self.tracer.end()
            self.machine.tell_loop(self.telegram.ledger.changed)

    async def message(self, tokens: int = TOKENS) -> Road:
        """A plain message, from the update's arrival until its answer is recorded as sent."""
        answer = self._answer(tokens)
        self.model.add(answer)
        return await self._count(lambda: self._write("hello"), lambda: self._said(answer))

    async def tool(self) -> Road:
        """A message that is answered after one call of a tool that asks nobody."""
        answer = self._plan_call("free")
        return await self._count(lambda: self._write("do it"), lambda: self._said(answer))

    async def approval(self) -> Road:
        """A message whose turn calls a tool that asks; the button is pressed, and the turn that goes on answers."""
        answer = self._plan_call("")

        async def ask_and_press() -> None:
            await self._write("do it")
            await self._until(lambda: self._button() is not None and not self._underway("running"))
            await self._settle()
            button = self._button()
            assert button is not None
            self.telegram.click(*button)

        return await self._count(ask_and_press, lambda: self._said(answer) and self._button() is None)

    async def beat(self) -> Road:
        """A beat that finds nothing worth saying, from the tick until its outcome is recorded."""
        self.model.add("HEARTBEAT_OK")
        self.time.advance(INTERVAL)
        count = len(self.stored.firings(outcome="quiet"))
        return await self._count(self._tick, lambda: len(self.stored.firings(outcome="quiet")) > count)

    def _plan_call(self, label: str) -> str:
        """Let the model call the tool, and then answer; returns the answer. label: `free` where it asks nobody."""
        answer = self._answer(TOKENS)
        self.model.add(Call("ask", {"label": label}, chunks=1))
        self.model.add(answer)
        return answer

    async def _count(self, begin: Callable[[], Any], over: Callable[[], bool]) -> Road:
        await self._settle()
        work = Work()
        self._over = lambda: over() and not self.stored.unfinished()
        self.machine.work, trace = work, self.tracer.begin()
        await begin()
        await self._until(lambda: self.machine.work is None)
        await self._settle()
        return Road(trace, work)

    async def _write(self, text: str) -> None:
        self.telegram.write(f"{text} {next(_numbers):06}")

    async def _tick(self) -> None:
        await self.service.parts.dispatcher.tick()

    def _answer(self, tokens: int) -> str:
        """Words that nobody has said before, so that nothing was kept of them."""
        return " ".join([*["word"] * (tokens - 1), f"{next(_numbers):06}."])

    def _said(self, answer: str) -> bool:
        return any(answer in text for (text,) in self.stored.deliveries("body", state="sent"))

    def _underway(self, state: str) -> bool:
        return bool(self.stored.turns("turn_id", state=state))

    def _button(self) -> tuple[int, str] | None:
        """The message that stands there with buttons, and what the first one sends."""
        for (chat, number), message in reversed(self.telegram.messages.items()):
            rows = message.get("reply_markup", {}).get("inline_keyboard", ())
            if chat == ALICE.id and rows:
                return number, rows[0][0]["callback_data"]
        return None

    async def _until(self, condition: Callable[[], bool]) -> None:
        await self.telegram.wait_for(condition, "the end of what is counted", 20.0)

    async def _settle(self) -> None:
        """Return when the service waits for nothing but the world."""
        await self._until(lambda: not self.stored.unfinished() or self._underway("parked"))
        await lanes_idle()
        for _ in range(50):
            await asyncio.sleep(0)


def _config(folder: Path, model: OpenAIServer) -> Config:
    return Config.model_validate(
        {
            "agent": {"model": "test/gpt-test", "drain_seconds": 0},
            "queue": {"debounce_ms": 0},
            "providers": {"test": {"api": "openai-chat", "base_url": model.base_url, "api_keys": ["sk-test-key"]}},
            "channels": {
                "console": {"enabled": False},
                "telegram": {"enabled": False, "dm": {"policy": "allowlist", "allow_from": [str(ALICE.id)]}},
            },
            "heartbeat": {"every": f"{INTERVAL}s"},
            "owners": [f"telegram:{ALICE.id}"],
            "workspace": folder / "workspace",
            "state": folder / "state",
        }
    )


def _forget() -> None:
    """Empty what functions of ours keep of earlier calls, so that every journey begins alike."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES:
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@asynccontextmanager
async def travelling(folder: Path) -> AsyncIterator[Traveller]:
    """A service whose person has been answered once, so that everything that is made once has been made."""
    _forget()
    time = ManualTime(Watch())
    async with (
        TelegramServer(clock=time.monotonic, wall=lambda: time.now() / 1000) as telegram,
        OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model,
    ):
        traveller = Traveller(telegram, model, time, Stored(folder / "state"))
        with (
            traveller.tracer.watching(),
            traveller.machine.installed(),
            patch.object(Scheduler, "start", lambda _: None),
        ):
            traveller.service = await assemble(
                _config(folder, model),
                clock=Clock(time.now, time.monotonic, time.sleep, Random(next(_numbers)), UTC),
                channels=(_channel(telegram, time),),
                tools=(AskingTool(words=f"May I, for the {next(_numbers):06}th time?"),),
                commit_probe=traveller.on_commit,
            )
            await traveller.service.start()
            traveller.service.parts.health.lag.stop()  # it looks by real time, whatever is on a road
            try:
                (folder / "workspace" / "HEARTBEAT.md").write_text("- Look whether the tomatoes are dry.\n")
                await traveller.message()
                yield traveller
            finally:
                await traveller.service.close()


def _channel(telegram: TelegramServer, time: ManualTime) -> TelegramChannel:
    settings = account(
        TelegramAccount,
        token=telegram.token,
        base_url=telegram.base_url,
        base_file_url=telegram.base_file_url,
        rates=Rates(chat_interval=0.0, group_per_minute=10_000, per_second=10_000),
    )
    return TelegramChannel(settings, Times(now=time.now, monotonic=time.monotonic, sleep=time.sleep))
