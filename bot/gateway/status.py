"""How the service stands: whether it is ready (`/healthz`, `/readyz`), and what /status and `hark status` say.

It is ready when it serves, every channel receives and the store can write. The status says besides which model answers,
what runs and waits, and which deliveries were refused.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from agent.models.fleet import Fleet
from bot import wording
from bot.approvals import words
from bot.clock import Clock, moment
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.gateway.loop_lag import LoopLag
from bot.gateway.views import ChannelView, ReadinessView, StatusView
from bot.people.accounts import Account, twins
from bot.persistence.settings import SessionSettings
from bot.persistence.turns import TurnKind
from bot.runs import freeze_words
from bot.runs.lanes import Lanes
from bot.runs.specs import Specs
from bot.store.store import Store
from channels.base import Health as ChannelHealth
from channels.base import HealthState
from heartbeat.times import day_start


@dataclass(eq=False)
class Health:
    """Whether the service really works: every channel receives, and the store can write."""

    # All accounts; the health of those is shown that are enabled.
    accounts: Sequence[Account]
    store: Store
    # Milliseconds since the epoch.
    now: Callable[[], int]
    # The service has started, and is not stopping.
    serving: bool = field(default=False, init=False)
    # How late the event loop is.
    lag: LoopLag = field(default_factory=LoopLag, init=False)
    # Why the start waits, or which part of the service has failed.
    obstacle: str | None = field(default=None, init=False)
    # What the book of messages does not explain; empty: it balances.
    unexplained: str = field(default="", init=False)

    def view(self) -> ReadinessView:
        """How the service stands: each channel by its label, and the store when there is something to say about it.

        That the store was found damaged at the start is said until the next start.
        """
        accounts = [one for one in self.accounts if one.section.enabled or not one.section.local]
        found = {one.label: one.channel.health() for one in accounts}
        for label, other in twins(accounts).items():
            found[label] = ChannelHealth(
                HealthState.DOWN, found[label].since, f"This is the same bot as {other}; remove one of them"
            )
        if (failure := self.obstacle or self.store.failure) is not None:
            found["store"] = ChannelHealth(HealthState.DOWN, self.now(), failure)
        elif (salvage := self.store.salvage) is not None:
            kept = f"kept as {salvage.kept_as}, {wording.recovered(salvage)}"
            found["store"] = ChannelHealth(HealthState.READY, salvage.at, f"the store was damaged: {kept}")
        if self.unexplained:
            found["balance"] = ChannelHealth(HealthState.DOWN, self.now(), self.unexplained)
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
    clock: Clock
    health: Health
    specs: Specs
    # More lines for owners, by their names: each function returns a sentence, or nothing where there is nothing to say.
    sentences: Sequence[tuple[str, Callable[[], Awaitable[str]]]]

    async def view(self) -> StatusView:
        """Return the state of the service as a whole. Raises StoreUnavailable."""
        totals = await self.store.reads.totals()
        failure = await self.store.reads.last_failure()
        return StatusView(
            model=self.model,
            model_reason=self.model_reason,
            sandbox=self.sandbox,
            frozen=freeze_words.frozen(await self.store.freezes.all(), self.clock.stamp),
            models_down=tuple(self._down()),
            running=self.lanes.active,
            waiting=totals.waiting,
            undelivered=totals.undelivered,
            failed_deliveries=totals.failed_deliveries,
            uncertain_deliveries=totals.uncertain_deliveries,
            expired_deliveries=totals.expired_deliveries,
            lost=await self.store.reads.lost_deliveries(_LOST_SHOWN),
            last_failure=f"{self.clock.stamp(failure[0])}, {failure[1]}" if failure else "",
        )

    def _down(self) -> Iterator[str]:
        """Yield a sentence for each model that does not work."""
        for name in self.fleet.down:
            kinds = {rest.kind.value for one in self.fleet.clients(name) if (rest := self.fleet.rest_of(one))}
            waits = "; turns wait for it" if name in self.fleet.missed else ""
            yield f"{name} does not work ({', '.join(sorted(kinds))}){waits}"

    def command(self) -> Command:
        """Make the command /status."""
        return Command(
            name="status", help="What is running, and which model answers.", run=self._show, guests="everywhere"
        )

    async def _show(self, call: Call, _: Arguments) -> Effect:
        """Answer with the state of the conversation, and to owners with that of the service."""
        settings = await self.store.settings.of(call.session_key)
        lines = [("model", self._answering(call, settings)), ("this conversation", await self._doing(call))]
        if context := await self._context(call.session_key):
            lines.append(("context", context))
        set_here, usual = asdict(settings), asdict(SessionSettings())
        shown = (name for name in set_here if name not in ("model", "away"))
        lines += [(name, set_here[name]) for name in shown if set_here[name] != usual[name]]
        if call.by_owner:
            lines.append(("today", await self._today()))
            if waiting := len(await self.store.approvals.open()):
                lines.append(("approvals", f"{waiting} open, `/approvals` shows them"))
            lines += [(name, said) for name, sentence in self.sentences if (said := await sentence())]
            lines += list((await self.view()).rows(self.clock.stamp))
            lines += [(name, one.detail or one.state) for name, one in self.health.view().channels.items()]
        return Say("\n".join(f"- **{name.capitalize()}** {text}" for name, text in lines))

    def _answering(self, call: Call, settings: SessionSettings) -> str:
        """Return which model answers in a conversation, and which one in its place."""
        wanted = self.specs.answering(TurnKind.REPLY, settings, (call.message,)).model
        wanted = self.model if wanted == self.specs.answerer.model else wanted
        instead = f"; `{settings.away}` answers in its place" if settings.away else ""
        return f"{wanted}{', chosen here' if settings.model == wanted else ''}{instead}"

    async def _doing(self, call: Call) -> str:
        """Return what happens in a conversation: its run, the tool at work and for how long, and what waits."""
        handle = self.lanes.handle(call.session_key)
        state = "idle" if handle is None else "answering" if handle.journal.answering else "working"
        for one in await self.store.approvals.open():
            if one.session_key == call.session_key:
                state = f"waiting for somebody (`/approvals`): {words.line(one)}"
        said = [f"{state}, {await self.store.inbox.count_waiting(call.session_key)} waiting"]
        if handle is not None and (found := await self.store.reads.at_work(handle.turn_id)):
            now = self.clock.now()
            said += [f"running for {_span(found.ran + now - found.since)}"]
            said += [f"`{one.name}` for {_span(now - one.since)}" for one in found.calls]
        return ", ".join(said)

    async def _context(self, session_key: str) -> str:
        """Return how much of the window the last request of a conversation took; empty if there was none."""
        found = await self.store.compactions.last_run(session_key)
        sent = self.specs.requests.last(found[0]) if found else None
        if sent is None:
            return ""
        tokens = sent.usage.input if sent.usage else sum(part.tokens for part in sent.parts)
        return f"{tokens:,} of {sent.window:,} tokens ({tokens / sent.window:.0%})"

    async def _today(self) -> str:
        """Return what models have cost since midnight of the machine's clock."""
        found = await self.store.usage.by("model", day_start(self.clock.now(), self.clock.zone))
        money = sum(one.money or 0.0 for one in found)
        tokens = sum(one.usage.input + one.usage.output for one in found)
        return f"{tokens:,} tokens" + (f", {wording.dollars(money)}" if money else "")


def _span(milliseconds: int) -> str:
    seconds = max(milliseconds, 0) // 1000
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
