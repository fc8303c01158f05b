"""Whether the service really works: every channel receives, the store can write. What `/healthz` and `/readyz` show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot import wording
from bot.accounts import Account, twins
from bot.persistence.values import Salvage
from channels.base import Health, HealthState


@dataclass(frozen=True, slots=True)
class Report:
    """ready: every enabled channel receives and the store can write; channels: by label, the store among them."""

    ready: bool
    channels: dict[str, Health]


def report(
    accounts: Sequence[Account],
    store_failure: str | None,
    salvage: Salvage | None,
    now: Callable[[], int],
    serving: bool,
) -> Report:
    """How the service stands at this moment; also that the store was found damaged at the start, until the next.

    serving: it has started, and is not stopping.
    """
    found = {one.label: one.channel.health() for one in accounts}
    for label, other in twins(accounts).items():
        found[label] = Health(
            HealthState.DOWN, found[label].since, f"This is the same bot as {other}; remove one of them"
        )
    if store_failure is not None:
        found["store"] = Health(HealthState.DOWN, now(), store_failure)
    elif salvage is not None:
        kept = f"kept as {salvage.kept_as}, {wording.recovered(salvage)}"
        found["store"] = Health(HealthState.READY, salvage.at, f"the store was damaged: {kept}")
    ready = serving and all(health.state is HealthState.READY for health in found.values())
    return Report(ready, found)
