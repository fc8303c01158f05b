"""What adapters hand over in tests without a service: a sink that keeps it, and a clock that only sleeping moves."""

import asyncio
from collections.abc import Callable, Sequence

from channels.base import CommandInfo, Incoming, Mark, NotAccepted, Reached, Times
from channels.message import InboundMessage
from tests.watch import PATIENCE


class RecordingSink:
    """Keeps what it is given, as the store does: batch and mark together, or nothing."""

    def __init__(self, *reports: tuple[str, str]) -> None:
        """reports: channels and accounts that may tell of missed messages."""
        self._reports = reports
        self.batches: list[Sequence[Incoming]] = []
        self.marks: dict[str, str] = {}
        # How far each conversation was reached, for each report of missed messages.
        self.missing: list[Sequence[Reached]] = []
        # Texts that were offered, and the word "missed" for each such report, in order.
        self.story: list[str] = []
        # Whether nothing can be kept, texts at which accepting fails, and how often either happened.
        self.refusing = False
        self.raising: list[str] = []
        self.refused = 0
        # How often a batch was offered; while this is not set, none is kept.
        self.entered = 0
        self.commit = asyncio.Event()
        self.commit.set()
        # Channel and account of each time that sending became possible.
        self.ready: list[tuple[str, str]] = []
        self.listed: Sequence[CommandInfo] = ()
        self._changed = asyncio.Event()

    async def accept(self, batch: Sequence[Incoming], mark: Mark | None) -> None:
        """Keep a batch. Raises NotAccepted while `refusing`."""
        self.entered += 1
        texts = [item.text for item in batch if isinstance(item, InboundMessage)]
        self.story += texts
        self._changed.set()
        await self.commit.wait()
        self._changed.set()
        if self.refusing:
            self.refused += 1
            raise NotAccepted("disk full")
        if any(text in self.raising for text in texts):
            self.refused += 1
            raise RuntimeError("a fault")
        self.batches.append(batch)
        if mark is not None:
            self.marks[mark.scope] = mark.value

    async def mark(self, scope: str) -> str | None:
        """How far a platform was read."""
        return self.marks.get(scope)

    def missed(self, channel: str, account: str, reached: Sequence[Reached]) -> None:
        """Something was said that nobody told."""
        assert (channel, account) in self._reports
        self.missing.append(reached)
        self.story.append("missed")
        self._changed.set()

    def commands(self) -> Sequence[CommandInfo]:
        """Those for the platform's menu."""
        return self.listed

    def can_send(self, channel: str, account: str) -> None:
        """The adapter is connected."""
        self.ready.append((channel, account))
        self._changed.set()

    @property
    def items(self) -> list[Incoming]:
        """All that was kept."""
        return [item for batch in self.batches for item in batch]

    @property
    def messages(self) -> list[InboundMessage]:
        """The messages among it."""
        return [item for item in self.items if isinstance(item, InboundMessage)]

    @property
    def texts(self) -> list[str]:
        """Their texts."""
        return [message.text for message in self.messages]

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait for a state."""
        async with asyncio.timeout(PATIENCE):
            while not ready():
                self._changed.clear()
                await self._changed.wait()


class Clock:
    """Time that passes only when somebody sleeps; `pauses` are the seconds that were slept."""

    def __init__(self, seconds: float = 1_800_000_000.0) -> None:
        self.seconds = seconds
        self.pauses: list[float] = []
        self._slept = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass at once."""
        self.pauses.append(seconds)
        self.seconds += seconds
        self._slept.set()
        await asyncio.sleep(0)

    async def until(self, pauses: int) -> None:
        """Wait until somebody has slept so often."""
        async with asyncio.timeout(PATIENCE):
            while len(self.pauses) < pauses:
                self._slept.clear()
                await self._slept.wait()

    @property
    def times(self) -> Times:
        """The clock as adapters take it."""
        return Times(now=lambda: int(self.seconds * 1000), monotonic=lambda: self.seconds, sleep=self.sleep)
