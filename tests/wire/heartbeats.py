"""A service with a heartbeat on a clock that tests move, on one platform.

async with days(tmp_path, every=HOUR) as play, play.stage.serving():
    await play.hello()
    await play.turn("- look after the garden")
    assert play.receipts()[-1] == ("due", "", "quiet")
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
class Heartbeat:
    """The heartbeat of a stage's service. every: seconds between two heartbeat turns."""

    stage: Stage
    every: float = 300

    @property
    def file(self) -> Path:
        """HEARTBEAT.md."""
        return self.stage.home / "workspace" / "HEARTBEAT.md"

    def note(self, text: str = GARDEN) -> None:
        """Write the checklist of the next heartbeat turn."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_bytes(text.encode())

    async def turn(self, text: str | None = None) -> None:
        """Let one interval pass, and finish what is due then. text: the checklist."""
        if text is not None:
            self.note(text)
        await self.after(self.every)

    async def after(self, seconds: float) -> None:
        """Let so much time pass; return when what was due is finished and delivered."""
        self.stage.time.advance(seconds)
        await self.due()

    async def next(self, job: str = "heartbeat") -> None:
        """Let time pass to the next due time of a job, and finish what is due then."""
        ((due,),) = self.stage.stored.jobs("next_at", job_id=job)
        await self.after((due - self.stage.time.now()) / 1000)

    async def tick(self) -> float:
        """Start what is due; returns the seconds until the dispatcher looks again."""
        assert self.stage.service is not None
        return await self.stage.service.parts.dispatcher.tick()

    async def due(self) -> None:
        """Start what is due; return when it is finished."""
        for _ in range(9):
            await self.tick()
            if all(at > self.stage.time.now() for (at,) in self.stage.stored.jobs("next_at", paused=0) if at):
                await self.stage.until(self.over, "the end of what was due")
                return
            await self.stage.until(self.over, "a place for what is due")
        raise AssertionError(f"still due: {self.stage.stored.jobs('job_id', 'next_at')}")

    def over(self) -> bool:
        """Return whether nothing runs."""
        fired = self.stage.stored.firings("turn_id", "outcome")
        return all(outcome or not turn for turn, outcome in fired) and self.stage.at_rest()

    def receipts(self) -> list[tuple[Any, ...]]:
        """Return cause, reason and outcome of each heartbeat turn, oldest first."""
        return self.stage.stored.firings("cause", "reason", "outcome", job_id="heartbeat")


class Days(Heartbeat):
    """A heartbeat whose model answers with `answer`. asked: when the model was asked, and what."""

    words = "heartbeat"
    """The word by which a request for the background is known."""

    def __init__(self, stage: Stage, every: float) -> None:
        super().__init__(stage, every)
        self.asked: list[tuple[int, str]] = []
        self.answer: Any = "HEARTBEAT_OK"
        stage.model.default = self._answer

    def _answer(self, request: Any) -> Any:
        text = request.last_user_text
        if self.words not in text:
            return f"re: {text.splitlines()[-1]}"
        self.asked.append((self.stage.time.now(), text))
        return self.answer(text) if callable(self.answer) else self.answer

    async def says(self, text: str, who: Any = "alice", room: Any = None, thread: Any = None, **more: Any) -> str:
        """Let somebody write; returns what they are answered."""

        def posts() -> list[str]:
            return self.stage.side.posts(room, thread, who)

        before = len(posts())
        self.stage.side.say(text, who, room, thread=thread, **more)
        await self.stage.until(lambda: len(posts()) > before and self.stage.at_rest(), text)
        return posts()[-1]

    async def hello(self, text: str = "hello") -> None:
        """Let the owner write and be answered, and wait for the heartbeat's job."""
        assert await self.says(text) == f"re: {text}"
        await self.stage.until(lambda: self.stage.stored.jobs("job_id", job_id="heartbeat"), "the heartbeat")

    async def days(self, count: float) -> None:
        """Let so many days pass, interval by interval."""
        for _ in range(round(count * DAY / self.every)):
            await self.turn()

    @property
    def told(self) -> list[str]:
        """What Alice was sent besides answers."""
        return [text for text in self.stage.side.posts() if not text.startswith("re: ")]


def moment(text: str) -> int:
    """Return milliseconds since the epoch of a time in ISO 8601; UTC without a zone."""
    found = dt.datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp() * 1000)


@contextlib.asynccontextmanager
async def days(
    home: Path,
    start: str = "2026-05-04T10:00",
    every: float = HOUR,
    *,
    name: str = "telegram",
    made: type[Days] = Days,
    **heartbeat: Any,
) -> AsyncIterator[Any]:
    """Yield a `made` on a platform, before its service starts. heartbeat: its section in the configuration."""
    watch = Watch()
    now = Time(watch, moment(start))
    async with SIDES[name](now) as side:
        side.may_break()
        found = made(Stage(home, side, now, watch, {"heartbeat": {"every": f"{every:g}s", **heartbeat}}), every)
        found.note()
        yield found
