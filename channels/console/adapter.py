"""The terminal as a channel: the smallest one there is, so read it first.

A terminal sends its lines through the gateway, which knows who may (whoever can open the Unix socket), so nothing is
received here. Blocks go to every terminal that is attached; while none is, they wait in the ledger.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from channels.base import Capabilities, Health, HealthState, Sink
from channels.message import ChatKind, Place
from channels.outgoing import Delivery, NotSent, SendResult, Sent

RULES = """\
You are talking in a terminal. Markdown is rendered; images and files cannot be shown.
Keep tables narrow, and write addresses out instead of hiding them behind words."""


PLACE = Place(channel="console", account="", chat="local", kind=ChatKind.CONSOLE)
"""The one conversation of this machine's terminals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleBlock:
    """A block for the terminal; source, said and planned_at are those of `Delivery`."""

    delivery_id: int
    text: str
    source: str
    said: str
    planned_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleQuestion:
    """What a person said in the session of the terminals, so that all of them show it.

    key: the Idempotency-Key it came with. answer: what was said to it, for the last exchange before a terminal opened.
    """

    key: str
    text: str
    answer: str | None = None


class AttachedTerminal(Protocol):
    """An attached terminal."""

    async def show(self, block: ConsoleBlock) -> bool:
        """True once the terminal has taken the block, False when it went away first."""


class ConsoleChannel:
    """The one conversation of this machine. now: milliseconds since the epoch."""

    name = "console"
    account = ""
    capabilities = Capabilities(
        block_chars=1_000_000,
        typing_seconds=0,
        rules=RULES,
    )

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._sink: Sink | None = None
        self._terminals: list[AttachedTerminal] = []
        self._health = Health(HealthState.STARTING, now())

    async def start(self, sink: Sink) -> None:
        self._sink = sink
        self._health = Health(HealthState.READY, self._now())
        if self._terminals:
            sink.can_send(self.name, self.account)

    async def stop_intake(self) -> None:
        """It takes nothing in by itself."""

    async def close(self) -> None:
        self._health = Health(HealthState.DOWN, self._now())

    def attach(self, terminal: AttachedTerminal) -> Callable[[], None]:
        """Hand blocks to this terminal from now on, those that waited first. Returns what detaches it."""
        self._terminals.append(terminal)
        if self._sink is not None:
            self._sink.can_send(self.name, self.account)
        return lambda: self._terminals.remove(terminal)

    def render(self, text: str) -> Sequence[str]:
        """A terminal knows its own width and colours, so it renders the Markdown itself."""
        return (text,)

    def pass_limit(self, place: Place) -> float:
        return 0.0

    async def send(self, delivery: Delivery) -> SendResult:
        """Sent when one terminal at least has the block."""
        block = ConsoleBlock(
            delivery_id=delivery.delivery_id,
            text=delivery.body,
            source=delivery.source,
            said=delivery.said,
            planned_at=delivery.planned_at,
        )
        shown = await asyncio.gather(*(terminal.show(block) for terminal in self._terminals))
        return Sent() if any(shown) else NotSent(None, "no terminal is open")

    async def settle(self, delivery: Delivery) -> SendResult:
        """A terminal that was writing has most likely written."""
        return Sent()

    async def working(self, place: Place) -> None:
        """A terminal shows the events of the run instead."""

    def health(self) -> Health:
        return self._health
