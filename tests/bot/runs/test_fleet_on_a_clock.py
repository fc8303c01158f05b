"""Keys and models that fail and recover at random on a clock: every message is answered once, whatever happens.

Real clients of the OpenAI SDK over loopback. A seed makes one story; the name of a failed case has it.
"""

import asyncio
import re
import time
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.scripted_model import ScriptedModel
from tests.service import Hark, ScriptedTool, running
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Break, Call, Fail, Say
from tests.watch import _LANE, PATIENCE, ManualTime, Watch

KEYS = {"one": ("sk-first-key", "sk-second-key"), "two": ("sk-third-key",)}
CHATS = ("2", "3", "4")
STEPS = 25
_MARK = re.compile(r"m-\d+-\d+")
_ANSWER = re.compile(r"answer-\d+")
# Least seconds that a key rests after a failure.
_REST = 60.0
# Real seconds between two looks at what tasks wait for, which costs more than what they do.
_LOOK = 0.002


class World:
    """What lasts over a restart."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.time = ManualTime(Watch())
        self.failing: dict[str, Fail | Break | None] = {key: None for keys in KEYS.values() for key in keys}
        # By key: when it failed last without having answered since.
        self.failed_at: dict[str, float] = {}
        self.wrong: list[str] = []
        self.asked: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self.told: dict[str, list[str]] = {chat: [] for chat in CHATS}
        self.written: dict[str, list[str]] = {chat: [] for chat in CHATS}

    def reply(self, request: Request) -> list[Any]:
        key, now = request.headers["authorization"].removeprefix("Bearer "), self.time.monotonic()
        messages = request.body["messages"]
        probe = messages[-1]["content"] == "ping"
        if not probe and 0 < now - self.failed_at.get(key, -_REST) < _REST:
            fresh = [other for other in self.failing if other not in self.failed_at]
            if fresh:
                self.wrong.append(f"{key} was asked {now - self.failed_at[key]:g} s after it failed; {fresh} were well")
        if failure := self.failing[key]:
            self.failed_at[key] = now
            return [failure]
        self.failed_at.pop(key, None)
        if probe:
            return [Say("pong")]
        marks = _newest(messages)
        if marks and marks[-1].endswith("0") and messages[-1]["role"] != "tool":
            return [Call("do", {"label": marks[-1]})]
        answer = f"answer-{len(self.asked) + 1}"
        self.asked[answer] = marks
        return [Say(answer)]

    def answered(self, chat: str) -> list[str]:
        answers = [found for text in self.told[chat] for found in _ANSWER.findall(text)]
        return [mark for answer in answers for mark in self.asked[answer]]


def _newest(messages: list[dict[str, Any]]) -> list[str]:
    """The messages of people after the last words of the model."""
    found: list[str] = []
    for message in reversed(messages):
        if message["role"] == "assistant" and not message.get("tool_calls"):
            break
        if message["role"] == "user":
            found += reversed(_MARK.findall(str(message["content"])))
    return found[::-1]


def begun(hark: Hark) -> bool:
    """Whether what waits to be taken up waits behind a turn."""
    turns = hark.stored.turns("session_key", state={"running", "parked"})
    return {*hark.stored.messages("session_key", state="waiting")} <= {*turns} and not hark.stored.open_deliveries()


async def quiet(hark: Hark) -> None:
    """Return when every run waits for time to pass, and so does the look for models that work again."""
    for _ in range(10):  # who is due wakes
        await asyncio.sleep(0)
    await hark.until(lambda: begun(hark), "the beginning of everything")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        tasks = asyncio.all_tasks()
        sleeping = sum(getattr(task.get_coro(), "__qualname__", "") == "ManualTime.sleep" for task in tasks)
        if sleeping == 1 + sum(bool(_LANE.match(task.get_name())) for task in tasks):
            return
        await asyncio.sleep(_LOOK)
    raise AssertionError("the service does not come to rest")


async def story(hark: Hark, world: World, steps: int) -> None:
    random = world.random
    for _ in range(steps):
        match random.choice(("fail", "mend", "write", "write", "pass", "pass")):
            case "fail":
                wait = random.choice((None, None, 90))
                failures = (Fail(429, retry_after=wait), Fail(529), Fail(401), Fail(402), Break())
                world.failing[random.choice(list(world.failing))] = random.choice(failures)
            case "mend":
                world.failing[random.choice(list(world.failing))] = None
            case "write":
                chat = random.choice(CHATS)
                mark = f"m-{chat}-{len(world.written[chat])}"
                world.written[chat].append(mark)
                await hark.write(mark, sender=chat)
            case "pass":
                await quiet(hark)
                hark.time.advance(random.choice((1, 4, 20, 70, 320, 1600)))
        if random.random() < 0.7:
            await quiet(hark)


@pytest.mark.parametrize("seed", range(12))
async def test_every_message_is_answered_once(tmp_path: Path, seed: int) -> None:
    world = World(Random(seed))
    fallbacks = [{"model": "two/gpt"}]
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(OpenAIServer(keys=KEYS[name])) for name in KEYS}
        for server in servers.values():
            server.default = world.reply
            server.tolerate("before retry-after ended")  # a probe may be early
        config = {
            "agent": {"model": "one/gpt", "fallbacks": fallbacks},
            "providers": {
                name: {"api": "openai-chat", "base_url": server.base_url, "api_keys": list(KEYS[name])}
                for name, server in servers.items()
            },
        }
        for last in (False, True):
            watch = Watch()
            world.time = ManualTime(watch, world.time.now())
            done = world.calls

            async def note(label: str, done: list[str] = done) -> str:
                done.append(label)
                return "done"

            async with running(
                tmp_path,
                config=config,
                chosen=True,
                model=ScriptedModel(watch),
                time=world.time,
                tools=lambda watch, note=note: [ScriptedTool("do", note, watch)],
            ) as hark:
                await story(hark, world, STEPS)
                if last:
                    world.failing = dict.fromkeys(world.failing)
                    for _ in range(60):
                        await quiet(hark)
                        if not hark.stored.unfinished():
                            break
                        hark.time.advance(20)
                await quiet(hark)
                for chat in CHATS:
                    world.told[chat] += hark.channel.texts(chat)
    assert {chat: world.answered(chat) for chat in CHATS} == world.written
    assert len(world.calls) == len(set(world.calls)), "a call was made twice"
    assert not world.wrong
    for chat in CHATS:
        moves = ["again" if "again.)" in text else "away" for text in world.told[chat] if text.startswith("(`")]
        assert all(before != after for before, after in pairwise(moves)), world.told[chat]
