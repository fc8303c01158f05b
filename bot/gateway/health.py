"""Whether the service really works: every channel receives, the store can write. What `/healthz` and `/readyz` show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bot import wording
from bot.clock import moment
from bot.gateway.views import ChannelView, ReadinessView
from bot.people.accounts import Account, twins
from bot.persistence.found import Salvage
from bot.store.store import Store
from channels.base import Health as ChannelHealth
from channels.base import HealthState


@dataclass(eq=False)
class Health:
    """Of one service. accounts: those of which people are told how they stand. now: milliseconds."""

    accounts: Sequence[Account]
    store: Store
    now: Callable[[], int]
    # The service has started, and is not stopping.
    serving: bool = field(default=False, init=False)
    # Why the start waits, or which part of the service has failed.
    obstacle: str | None = field(default=None, init=False)

    def view(self) -> ReadinessView:
        """How it stands at this moment."""
        return report(self.accounts, self.obstacle or self.store.failure, self.store.salvage, self.now, self.serving)


def report(
    accounts: Sequence[Account],
    store_failure: str | None,
    salvage: Salvage | None,
    now: Callable[[], int],
    serving: bool,
) -> ReadinessView:
    """How the service stands at this moment; also that the store was found damaged at the start, until the next.

    serving: it has started, and is not stopping. Channels stand there by their labels, the store among them when there
    is something to say about it.
    """
    found = {one.label: one.channel.health() for one in accounts}
    for label, other in twins(accounts).items():
        found[label] = ChannelHealth(
            HealthState.DOWN, found[label].since, f"This is the same bot as {other}; remove one of them"
        )
    if store_failure is not None:
        found["store"] = ChannelHealth(HealthState.DOWN, now(), store_failure)
    elif salvage is not None:
        kept = f"kept as {salvage.kept_as}, {wording.recovered(salvage)}"
        found["store"] = ChannelHealth(HealthState.READY, salvage.at, f"the store was damaged: {kept}")
    ready = serving and all(health.state is HealthState.READY for health in found.values())
    channels = {
        label: ChannelView(state=one.state.value, since=moment(one.since), detail=one.detail)
        for label, one in found.items()
    }
    return ReadinessView(ready=ready, channels=channels)
