"""Beats on a stage: the checklist says what is asked, and time goes on until they are due.

beating = Beating(play.stage)
await beating.beat("- look after the garden")
assert beating.receipts()[-1] == ("due", "", "quiet")
"""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.watch import Watch
from tests.wire.platforms import SIDES
from tests.wire.stage import Stage, Time

HOUR = 3600
DAY = 24 * HOUR
GARDEN = "- Look whether the tomatoes are dry.\n"


@dataclass
class Beating:
    """The heartbeat of a stage's service. every: seconds between two beats."""

    stage: Stage
    every: float = 300

    @property
    def file(self) -> Path:
        """HEARTBEAT.md."""
        return self.stage.home / "workspace" / "HEARTBEAT.md"

    def note(self, text: str = GARDEN) -> None:
        """What the next beat is to look after."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_bytes(text.encode())

    async def beat(self, text: str | None = None) -> None:
        """One interval passes, and what was due then is over."""
        if text is not None:
            self.note(text)
        await self.after(self.every)

    async def after(self, seconds: float) -> None:
        """So much time passes at once; returns when what was due is over, and all of it is delivered."""
        self.stage.time.advance(seconds)
        await self.due()

    async def due(self) -> None:
        """What is due is fired; returns when it is over."""
        assert self.stage.service is not None
        for _ in range(9):
            await self.stage.service.parts.dispatcher.tick()
            if all(at > self.stage.time.now() for (at,) in self.stage.stored.jobs("next_at", paused=0) if at):
                await self.stage.until(self.over, "the end of what was due")
                return
            await self.stage.until(self.over, "a place for what is due")
        raise AssertionError(f"still due: {self.stage.stored.jobs('job_id', 'next_at')}")

    def over(self) -> bool:
        """Nothing is under way."""
        fired = self.stage.stored.firings("turn_id", "outcome")
        return all(outcome or not turn for turn, outcome in fired) and self.stage.at_rest()

    def receipts(self) -> list[tuple[Any, ...]]:
        """Cause, reason and outcome of each, oldest first."""
        return self.stage.stored.firings("cause", "reason", "outcome", job_id="heartbeat")


def moment(text: str) -> int:
    """Milliseconds since the epoch of a time in ISO 8601; UTC without a zone."""
    found = dt.datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp() * 1000)


class Days(Beating):
    """With a model whose answers to beats are quiet; asked: when it was, and what."""

    def __init__(self, stage: Stage, every: float) -> None:
        super().__init__(stage, every)
        self.asked: list[tuple[int, str]] = []
        self.answer: Any = "HEARTBEAT_OK"
        stage.model.default = self._answer

    def _answer(self, request: Any) -> Any:
        text = request.last_user_text
        if "heartbeat" not in text:
            return f"re: {text.splitlines()[-1]}"
        self.asked.append((self.stage.time.now(), text))
        return self.answer

    async def hello(self, text: str = "hello", who: Any = "alice") -> None:
        """The owner writes, and is answered."""
        before = self.stage.side.posts(who=who).count(f"re: {text}")
        self.stage.side.say(text, who)
        await self.stage.until(
            lambda: self.stage.side.posts(who=who).count(f"re: {text}") > before and self.stage.at_rest(), text
        )
        await self.stage.until(lambda: self.stage.stored.jobs("job_id", job_id="heartbeat"), "the heartbeat")

    async def days(self, count: float) -> None:
        """So many days, interval by interval."""
        for _ in range(round(count * DAY / self.every)):
            await self.beat()

    @property
    def told(self) -> list[str]:
        """What Alice was told besides answers."""
        return [text for text in self.stage.side.posts() if not text.startswith("re: ")]


@contextlib.asynccontextmanager
async def days(
    home: Path,
    start: str = "2026-05-04T10:00",
    every: float = 1800,
    text: str = GARDEN,
    *,
    name: str = "telegram",
    section: Any = None,
    **heartbeat: Any,
) -> AsyncIterator[Days]:
    """A stage at that time with a heartbeat. name, section: the platform, and changes to what is said of it."""
    watch = Watch()
    now = Time(watch, moment(start))
    async with SIDES[name](now) as side:
        side.may_break()
        changes = {"heartbeat": {"every": f"{every:g}s", **heartbeat}, "section": section or {}}
        found = Days(Stage(home, side, now, watch, changes), every)
        found.note(text)
        yield found
