"""Two hours without a model, with many messages in many chats: all are answered once it works again, and nothing twice.

In the soak there are 500 messages in 100 chats.

Time stands still but where a test moves it, so that "within a minute" is exact.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from pathlib import Path

import pytest

from agent.runner import MAX_WAIT
from bot.runs.outages import MENDED_EVERY, PARKED_EVERY
from tests.examples import stride
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running
from tests.standins.request_log import Request
from tests.standins.script import Fail, Say
from tests.watch import ManualTime, Watch

CHATS = [str(number) for number in range(100, 200, stride(3))]
ROUNDS = 5
OUTAGE = 2 * 3600.0
BEGIN = 1_784_000_000_000
OWNER = "1"
PLACES = 8
_MARK = re.compile(r"m-\d+-\d+")
_ANSWER = re.compile(r"answer-\d+")


class World:
    """What lasts over a restart: which requests were made, what stands in each chat, and whether the model works."""

    def __init__(self, failure: Fail) -> None:
        self.failure: Fail | None = failure
        self.probes = 0
        # The messages that a request asks for (those after the last answer), by the answer that it got.
        self.asked: dict[str, list[str]] = {}
        self.failed = 0
        self.said: dict[str, list[str]] = {}
        self.now = BEGIN

    def reply(self, request: Request) -> Sequence[Fail | Say]:
        messages = request.body["messages"]
        if messages[-1]["content"] == "ping":
            self.probes += 1
            return [self.failure or Say("pong")]
        if self.failure:
            self.failed += 1
            return [self.failure]
        newest = takewhile(lambda message: message["role"] != "assistant", reversed(messages))
        marks = [mark for message in newest for mark in reversed(_MARK.findall(message["content"]))]
        answer = f"answer-{len(self.asked) + 1}"
        self.asked[answer] = marks[::-1]
        return [Say(answer)]

    @asynccontextmanager
    async def hark(self, home: Path) -> AsyncIterator[Hark]:
        """The service, until it ends; what was sent is added to what was sent before."""
        watch = Watch()
        model, time = ScriptedModel(watch), ManualTime(watch, self.now)
        model.default = self.reply
        async with running(home, model=model, time=time, config={"agent": {"max_concurrent": 2 * PLACES}}) as hark:
            yield hark
            self.now = time.now()
            for chat in (OWNER, *CHATS):
                self.said.setdefault(chat, []).extend(hark.channel.texts(chat))

    @property
    def lasted(self) -> float:
        """Seconds from the beginning to the end."""
        return (self.now - BEGIN) / 1000

    def answered(self, chat: str) -> list[str]:
        """The messages of a chat whose answers were delivered there, in the order of the answers."""
        answers = [answer for text in self.said[chat] for answer in _ANSWER.findall(text)]
        assert len(answers) == len(set(answers)), f"an answer stands twice in chat {chat}"
        return [mark for answer in answers for mark in self.asked[answer]]

    def notices(self, chat: str) -> list[str]:
        return [text for text in self.said[chat] if not _ANSWER.search(text)]


@pytest.fixture(autouse=True)
def _no_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found by the sweep that should have been woken."""
    monkeypatch.setattr("bot.service.SWEEP_EVERY", 2 * OUTAGE)


async def step(hark: Hark) -> None:
    """Let time pass until the next look for models that work again."""
    await hark.time.until_pause(PARKED_EVERY)
    hark.time.advance(PARKED_EVERY)


async def write_round(hark: Hark, number: int) -> None:
    for chat in CHATS:
        await hark.write(f"m-{chat}-{number}", sender=chat)


async def begin(hark: Hark, waits: Sequence[float]) -> None:
    """Everybody's first message: the turn of the first one tries again after these waits, and then all are parked."""

    def parked() -> int:
        return len(hark.stored.turns(state="parked"))

    await hark.write(f"m-{CHATS[0]}-0", sender=CHATS[0])
    for wait in waits:
        await hark.time.until_pause(wait)
        hark.time.advance(wait)
    await hark.until(lambda: parked() == 1, "the first turn that is parked")
    for chat in CHATS[1:]:
        await hark.write(f"m-{chat}-0", sender=chat)
    while (done := parked()) < len(CHATS):
        together = min(PLACES, len(CHATS) - done)
        if waits:  # waiting mends no key
            await hark.time.until_pause(MAX_WAIT, together)
            hark.time.advance(MAX_WAIT)
        await hark.until(lambda wanted=done + together: parked() >= wanted, "the turns that are parked")


async def pass_time(hark: Hark, seconds: float) -> None:
    until = hark.time.now() + seconds * 1000
    while hark.time.now() < until:
        await step(hark)


async def recover(hark: Hark, world: World) -> float:
    """Let the model work again; returns after how many seconds everything was answered."""
    world.failure = None
    back, probes = hark.time.now(), world.probes
    while True:
        await hark.until(lambda: world.probes > probes or hark.time.pauses(PARKED_EVERY), "a probe")
        if world.probes > probes:
            break
        hark.time.advance(PARKED_EVERY)
    await hark.until(lambda: not hark.stored.unfinished(), "the answers to everything")
    return (hark.time.now() - back) / 1000


def all_is_well(world: World) -> None:
    wanted = {chat: [f"m-{chat}-{number}" for number in range(ROUNDS)] for chat in CHATS}
    assert {chat: world.answered(chat) for chat in CHATS} == wanted
    assert Counter(len(world.notices(chat)) for chat in CHATS) == {1: len(CHATS)}


@pytest.mark.parametrize("restart", [False, True])
async def test_all_are_answered_within_a_minute_of_recovery(tmp_path: Path, restart: bool) -> None:
    world = World(Fail(529))
    home = tmp_path
    async with world.hark(home) as hark:
        await begin(hark, (2, 4, 8, 8, 8))
        for number in range(1, ROUNDS):
            await pass_time(hark, OUTAGE / ROUNDS)
            await write_round(hark, number)
            if restart and number == ROUNDS // 2:
                break
        else:
            await pass_time(hark, OUTAGE / ROUNDS)
            took = await recover(hark, world)
    if restart:
        async with world.hark(home) as hark:
            for number in range(ROUNDS // 2 + 1, ROUNDS):
                await pass_time(hark, OUTAGE / ROUNDS)
                await write_round(hark, number)
            await pass_time(hark, OUTAGE / ROUNDS)
            took = await recover(hark, world)
    assert took <= 60
    all_is_well(world)
    assert world.probes <= world.lasted / PARKED_EVERY + 5, "one probe each time, however many wait"
    assert world.failed <= 20, "what waits asks nobody"


@pytest.mark.parametrize("status", [401, pytest.param(402, marks=pytest.mark.soak)])
async def test_the_owner_alone_is_told_what_to_mend(tmp_path: Path, status: int) -> None:
    world = World(Fail(status, message="Your key sk-abcdefghijkl is no good."))
    async with world.hark(tmp_path) as hark:
        await hark.write("/help", sender=OWNER)
        await hark.until_texts(1, OWNER)
        await begin(hark, ())
        for number in range(1, ROUNDS):
            await pass_time(hark, OUTAGE / ROUNDS)
            await write_round(hark, number)
        await pass_time(hark, OUTAGE / ROUNDS)
        await recover(hark, world)
    all_is_well(world)
    for chat in CHATS:
        (notice,) = world.notices(chat)
        assert not re.search(r"key|credit|bill|pay|test/|HTTP|40[12]", notice, re.IGNORECASE), notice
    (told,) = world.said[OWNER][1:]
    assert "test/scripted" in told or "API key" in told or "credit" in told
    assert "sk-abcdef" not in told
    assert world.probes <= world.lasted / MENDED_EVERY + 2
