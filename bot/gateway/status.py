"""How the service stands: whether it is ready (`/healthz`, `/readyz`), and what /status and `hark status` say.

It is ready when it serves, every channel receives and the store can write. The status says besides which model answers,
what runs and waits, and which deliveries were refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from agent.models.fleet import Fleet
from bot import wording
from bot.approvals import words
from bot.clock import moment
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.gateway.views import ChannelView, ReadinessView, StatusView
from bot.people.accounts import Account, twins
from bot.persistence.settings import SessionSettings
from bot.runs.lanes import Lanes
from bot.store.store import Store
from channels.base import Health as ChannelHealth
from channels.base import HealthState


@dataclass(eq=False)
class Health:
    """Whether the service really works: every channel receives, and the store can write."""

    # The accounts whose health is shown.
    accounts: Sequence[Account]
    store: Store
    # Milliseconds since the epoch.
    now: Callable[[], int]
    # The service has started, and is not stopping.
    serving: bool = field(default=False, init=False)
    # Why the start waits, or which part of the service has failed.
    obstacle: str | None = field(default=None, init=False)

    def view(self) -> ReadinessView:
        """How the service stands: each channel by its label, and the store when there is something to say about it.

        That the store was found damaged at the start is said until the next start.
        """
        found = {one.label: one.channel.health() for one in self.accounts}
        for label, other in twins(self.accounts).items():
            found[label] = ChannelHealth(
                HealthState.DOWN, found[label].since, f"This is the same bot as {other}; remove one of them"
            )
        if (failure := self.obstacle or self.store.failure) is not None:
            found["store"] = ChannelHealth(HealthState.DOWN, self.now(), failure)
        elif (salvage := self.store.salvage) is not None:
            kept = f"kept as {salvage.kept_as}, {wording.recovered(salvage)}"
            found["store"] = ChannelHealth(HealthState.READY, salvage.at, f"the store was damaged: {kept}")
        ready = self.serving and all(health.state is HealthState.READY for health in found.values())
        channels = {
            label: ChannelView(state=one.state.value, since=moment(one.since), detail=one.detail)
            for label, one in found.items()
        }
        return ReadinessView(ready=ready, channels=channels)


# Lost deliveries that the status names.
_LOST_SHOWN = 5


@dataclass(eq=False)
class Status:
    """Reads from store and lanes what /status and `hark status` say."""

    store: Store
    lanes: Lanes
    fleet: Fleet
    # The model that answers, and why that one.
    model: str
    model_reason: str
    # Which sandbox commands run in, and why that one.
    sandbox: str
    # Writes a moment, in milliseconds since the epoch, as people read it.
    stamp: Callable[[int], str]
    # The readiness of the channels.
    health: Callable[[], ReadinessView]

    async def view(self) -> StatusView:
        """Return the state of the service as a whole. Raises StoreUnavailable."""
        totals = await self.store.reads.totals()
        failure = await self.store.reads.last_failure()
        return StatusView(
            model=self.model,
            model_reason=self.model_reason,
            sandbox=self.sandbox,
            models_down=tuple(self._down()),
            running=self.lanes.active,
            waiting=totals.waiting,
            undelivered=totals.undelivered,
            failed_deliveries=totals.failed_deliveries,
            uncertain_deliveries=totals.uncertain_deliveries,
            expired_deliveries=totals.expired_deliveries,
            lost=await self.store.reads.lost_deliveries(_LOST_SHOWN),
            last_failure=f"{self.stamp(failure[0])}, {failure[1]}" if failure else "",
        )

    def _down(self) -> Iterator[str]:
        """Yield a sentence for each model that does not work."""
        for name in self.fleet.down:
            kinds = {rest.kind.value for one in self.fleet.clients(name) if (rest := self.fleet.rest_of(one))}
            waits = "; turns wait for it" if name in self.fleet.missed else ""
            yield f"{name} does not work ({', '.join(sorted(kinds))}){waits}"

    def command(self) -> Command:
        """Make the command /status."""
        return Command(name="status", help="What is running, and which model answers.", run=self._show)

    async def _show(self, call: Call, _: Arguments) -> Effect:
        """Answer with the state of the conversation, and to owners with that of the service."""
        handle = self.lanes.handle(call.session_key)
        waiting = await self.store.inbox.count_waiting(call.session_key)
        state = "idle" if handle is None else "answering" if handle.journal.answering else "working"
        for one in await self.store.approvals.open():
            if one.session_key == call.session_key:
                state = f"waiting for somebody (`/approvals`): {words.line(one)}"
        lines = [f"**Model** {self.model}", f"**This conversation** {state}, {waiting} waiting"]
        settings, usual = asdict(await self.store.settings.of(call.session_key)), asdict(SessionSettings())
        lines += [f"**{name.capitalize()}** {value}" for name, value in settings.items() if value != usual[name]]
        if call.by_owner:
            rows = list((await self.view()).rows(self.stamp))
            rows += [(name, one.detail or one.state) for name, one in self.health().channels.items()]
            lines += [f"**{name.capitalize()}** {text}" for name, text in rows]
        return Say("\n".join(f"- {line}" for line in lines))
