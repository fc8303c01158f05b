"""The terminal: the surface whose conversation is on this machine.

A terminal is a client of the gateway, which knows who may (whoever can open the Unix socket). It sends its lines there,
and reads there what is said to it, as events. So nothing is received here, and deliveries are stored as sent.
"""

from collections.abc import Callable

from channels.base import Capabilities, Health, HealthState, Sink, Times, rules_of
from channels.console.settings import Console
from channels.message import ChatKind, Place

# The one conversation of this machine's terminals.
PLACE = Place(channel="console", account="", chat="local", kind=ChatKind.CONSOLE)


class ConsoleSurface:
    """A `channels.base.Surface`, which stands as long as the service does. now: milliseconds since the epoch."""

    name = "console"
    account = ""
    capabilities = Capabilities(block_chars=1_000_000, typing_seconds=0, rules=rules_of(__package__))

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._health = Health(HealthState.STARTING, now())

    async def start(self, sink: Sink) -> None:
        self._health = Health(HealthState.READY, self._now())

    async def stop_intake(self) -> None:
        """It takes nothing in by itself."""

    async def close(self) -> None:
        self._health = Health(HealthState.DOWN, self._now())

    def health(self) -> Health:
        return self._health


def build(settings: Console, times: Times) -> ConsoleSurface:
    """The adapter of an account."""
    return ConsoleSurface(times.now)
