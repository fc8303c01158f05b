"""An account whose adapter cannot be made, since the extension that brings it is broken."""

from dataclasses import dataclass, field

from channels.base import Capabilities, Health, HealthState, Sink


@dataclass(eq=False, slots=True)
class BrokenChannel:
    """Stands where the adapter would be: nothing comes from it, and its health says why."""

    name: str
    health_now: Health
    account: str = ""
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(block_chars=1000, typing_seconds=0, rules="")
    )

    async def start(self, sink: Sink) -> None:
        """See Surface."""

    async def stop_intake(self) -> None:
        """See Surface."""

    async def close(self) -> None:
        """See Surface."""

    def health(self) -> Health:
        """See Surface."""
        return self.health_now


def broken(name: str, error: Exception, now: int) -> BrokenChannel:
    """Return what stands for an account of a channel whose adapter failed with an error at this time."""
    why = f"its extension is broken: {type(error).__name__}: {error}"
    return BrokenChannel(name, Health(HealthState.DOWN, now, why))
