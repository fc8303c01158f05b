"""The terminal as a channel: the one whose conversation is on this machine.

A terminal is a client of the gateway, which knows who may (whoever can open the Unix socket). It sends its lines there,
and reads there what is said to it, as events. So nothing is received or sent here.
"""

from collections.abc import Callable, Sequence

from channels.base import Capabilities, Health, HealthState, Sink
from channels.message import ChatKind, Place
from channels.outgoing import Delivery, SendResult, Sent

RULES = """\
You are talking in a terminal. Markdown is rendered; images and files cannot be shown.
Keep tables narrow, and write addresses out instead of hiding them behind words."""


PLACE = Place(channel="console", account="", chat="local", kind=ChatKind.CONSOLE)
"""The one conversation of this machine's terminals."""


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
        self._health = Health(HealthState.STARTING, now())

    async def start(self, sink: Sink) -> None:
        self._health = Health(HealthState.READY, self._now())

    async def stop_intake(self) -> None:
        """It takes nothing in by itself."""

    async def close(self) -> None:
        self._health = Health(HealthState.DOWN, self._now())

    def render(self, text: str) -> Sequence[str]:
        """A terminal knows its own width and colours, so it renders the Markdown itself."""
        return (text,)

    def pass_limit(self, place: Place) -> float:
        return 0.0

    async def send(self, delivery: Delivery) -> SendResult:
        """What is stored has been sent: terminals read it there."""
        return Sent()

    async def settle(self, delivery: Delivery) -> SendResult:
        return Sent()

    async def working(self, place: Place) -> None:
        """A terminal shows the events of the run instead."""

    def health(self) -> Health:
        return self._health
