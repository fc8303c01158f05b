"""Whether the service really works: every channel receives, the store can write. What `/healthz` and `/readyz` show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from channels.base import Channel, Health, HealthState


@dataclass(frozen=True, slots=True)
class Report:
    """ready: every enabled channel receives and the store can write; channels: by name, the store among them."""

    ready: bool
    channels: dict[str, Health]


def report(channels: Sequence[Channel], store_failure: str | None, now: Callable[[], int], draining: bool) -> Report:
    """How the service stands at this moment."""
    found = {channel.name: channel.health() for channel in channels}
    if store_failure is not None:
        found["store"] = Health(HealthState.DOWN, now(), f"the store cannot write: {store_failure}")
    ready = not draining and all(health.state is HealthState.READY for health in found.values())
    return Report(ready, found)
