"""The limits: never more than a platform lets through, never longer to wait than it takes, bounded memory."""

import asyncio
import codecs
import os
import re
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.persistence.deliveries import OwnerNotice
from channels import registry
from channels.adapter import RateLimits
from channels.base import HealthState
from channels.console.adapter import PLACE, ConsoleSurface
from channels.failures import Rates
from channels.outgoing import Planned
from channels.session_key import console_key
from channels.sources import sentence
from tests.bot.store.opened import opened
from tests.memory import held_by
from tests.watch import PATIENCE


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_message_a_second_in_a_chat() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    assert limits.take("1", False) == 0
    assert limits.take("1", False) == 1.0
    assert limits.take("2", False) == 0
    clock.now += 1.0
    assert limits.take("1", False) == 0


def test_the_second_counts_from_the_end_of_the_call() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    assert limits.take("1", False) == 0
    clock.now += 0.5
    limits.ended("1")
    limits.ended("unknown")
    assert limits.take("1", False) == 1.0


def test_twenty_messages_a_minute_in_a_group() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    for _ in range(20):
        assert limits.take("-1", True) == 0
        clock.now += 1.0
    assert limits.take("-1", True) == 40.0
    clock.now += 40.0
    assert limits.take("-1", True) == 0


def test_a_flood_holds_one_chat_back() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    limits.hold("1", 5.0)
    assert limits.take("1", False) == limits.held("1") == 5.0
    assert limits.take("2", False) == limits.held("2") == 0
    clock.now += 5.0
    assert limits.take("1", False) == 0


def test_no_call_waits_for_a_frame_and_frames_wait_for_all() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    assert limits.take("1", False) == 0
    assert limits.take("1", False, frame=True) == 1.0
    clock.now += 1.0
    assert limits.take("1", False, frame=True) == 0
    assert limits.take("1", False, frame=True) == limits.held("1", frame=True) == 1.0
    assert limits.take("1", False) == 0
    limits.hold("1", 5.0, frame=True)
    assert limits.held("1") == 0
    clock.now += 1.0
    assert limits.take("1", False) == 0
    clock.now += 1.0
    assert limits.take("1", False, frame=True) == 3.0
    limits.hold("1", 9.0)
    limits.hold("1", 1.0)
    assert limits.take("1", False, frame=True) == limits.take("1", False) == 9.0


def test_frames_leave_a_quarter_of_all_places() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    for _ in range(15):
        assert limits.take("-1", True, frame=True) == 0
        clock.now += 4.0
    assert limits.take("-1", True, frame=True) == 0, "the first one is a minute ago"
    assert limits.take("-2", True) == 0
    granted = sum(limits.take(str(chat), False, frame=True) == 0 for chat in range(30))
    assert granted + 2 == 22
    assert [limits.take(f"more {chat}", False) for chat in range(9)] == [*[0] * 8, 1.0]


CALLS = st.lists(st.tuples(st.sampled_from(["1", "2", "-1", "-2"]), st.floats(0, 3), st.booleans()), max_size=150)


@given(CALLS, st.integers(1, 4), st.integers(1, 5))
def test_no_window_ever_holds_more_than_its_limit(
    calls: list[tuple[str, float, bool]], per_second: int, group: int
) -> None:
    clock = Clock()
    limits = RateLimits(Rates(group_per_minute=group, per_second=per_second), clock)
    granted: list[tuple[float, str, bool]] = []
    for chat, pause, frame in calls:
        clock.now += pause
        wait = limits.take(chat, chat.startswith("-"), frame)
        if wait > 0:
            # The wait is enough when nobody else takes the place.
            clock.now += wait + 1e-6
            assert limits.take(chat, chat.startswith("-"), frame) == 0
        granted.append((clock.now, chat, frame))
    for index, (at, chat, frame) in enumerate(granted):
        assert sum(at <= other < at + 1 - 1e-4 for other, _, _ in granted) <= per_second
        behind = [kind for other, where, kind in granted[index:] if where == chat and other < at + 1 - 1e-4]
        assert len(behind) == 1 or (frame and behind == [True, False])
        if chat.startswith("-"):
            assert sum(at <= other < at + 60 - 1e-4 for other, where, _ in granted if where == chat) <= group


def test_memory_is_bounded_by_one_minute() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    held = 0
    for chat in range(10_000):
        clock.now += 1 / 10
        assert limits.take(str(chat), False) == 0
        limits.hold(str(chat), 1.0)
        assert limits.take(f"of {chat}", False, frame=True) == 0
        if chat == 60 * 10 + 100:  # more than a minute has passed
            held = held_by(limits)
    assert held_by(limits) <= held * 1.2


# A channel is a folder and a line: the one of `docs/adding-a-channel.md` runs, and the service names none.

ROOT = Path(__file__).parents[2]
RUN = """
import asyncio, sys
from pathlib import Path
from channels import registry
registry.FOLDERS.update({%s})
from bot.config.load import load
from bot.config.checks import warnings
from bot.wiring import Dependencies, build

async def main():
    config = load(None, {}, Path.cwd(), service=True)
    assert list(warnings(config)) == []
    service = await build(config, Dependencies(environ={}, ollama=lambda url: None, gateway=False))
    await service.start()
    health = service.parts.health.view()
    assert health.ready, health
    print(*health.channels, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await service.close()

asyncio.run(main())
"""
CONFIG = """\
agent: {model: offline/offline}
queue: {debounce_ms: 0}
channels:
  console: {enabled: false}
  echo:
    token: one-secret
    hears: say I am one
    file: /dev/stdout
    dm: {policy: open}
    accounts:
      second: {token: two-secret, hears: say I am two, file: /dev/stdout}
"""


async def test_the_channel_of_the_recipe_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-channel.md").read_text(encoding="utf-8")
    settings, adapter, line = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "echo").mkdir()
    (tmp_path / "echo" / "settings.py").write_text(settings)
    (tmp_path / "echo" / "adapter.py").write_text(adapter)
    (tmp_path / "config.yaml").write_text(CONFIG)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN % line.strip()),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            shown, decode = "", codecs.getincrementaldecoder("utf-8")().decode  # a piece may end within a character
            while not ("I am one" in shown and "I am two" in shown and "echo echo:second\n" in shown):
                piece = await program.stdout.read(4096)
                assert piece, shown
                shown += decode(piece)
            await program.communicate(b"\n")
            assert program.returncode == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert re.search(r"(?s)one: I am Hark.*?\nI am one", shown), shown
    assert re.search(r"(?s)two: I am Hark.*?\nI am two", shown), shown


def test_the_service_names_no_platform() -> None:
    named = "|".join(name for name in registry.FOLDERS if name != "console")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "bot").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(named, line, re.IGNORECASE)
    ]
    assert found == []


# The terminal as a surface: nothing is sent there, because terminals read what is stored.


class Sink:
    """Nothing is handed to it."""

    def can_send(self, channel: str, account: str) -> None:
        raise AssertionError("nobody waits")

    async def accept(self, batch: object, mark: object) -> None:
        raise AssertionError("a terminal sends through the gateway")

    async def mark(self, scope: str) -> None:
        return None


async def test_health_is_that_of_its_life() -> None:
    console = ConsoleSurface(lambda: 7)
    assert console.health().state is HealthState.STARTING
    await console.start(Sink())
    assert console.health().state is HealthState.READY
    await console.close()
    assert console.health().state is HealthState.DOWN


async def test_a_notice_to_the_owner_is_said_there_once_and_is_sent_with_it(tmp_path: Path) -> None:
    def notice(text: str) -> OwnerNotice:
        return OwnerNotice((), PLACE, lambda place: (Planned(source=sentence(f"salvage:{text}"), body=text, nonce=1),))

    async with opened(tmp_path) as store:
        for text in ("one", "two", "one"):
            await store.deliveries.tell_owner(notice(text))
        assert await store.deliveries.open_conversations() == []
        assert (await store.reads.totals()).undelivered == 0
        kept = await store.reads.events_after(0, await store.reads.last_event(), console_key(), None, 10)
        assert [event.type for event in kept] == ["notice", "notice"]
        assert [f'"detail":"{text}"' in event.body for text, event in zip(("one", "two"), kept, strict=True)] == [
            True
        ] * 2
