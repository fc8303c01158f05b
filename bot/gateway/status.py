"""/status and `hark status`: which model answers, how the channels stand, what runs, waits and was refused."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from bot.approvals import words
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.gateway.views import ReadinessView, StatusView
from bot.persistence.settings import SessionSettings
from bot.runs.lanes import Lanes
from bot.store.store import Store

_LOST_SHOWN = 5


@dataclass(eq=False)
class Status:
    """Reads the state of the service."""

    store: Store
    lanes: Lanes
    # The model that answers, and why that one.
    model: str
    model_reason: str
    # The sandbox in which commands run, and why that one.
    sandbox: str
    # Writes a moment (milliseconds) as people read it.
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
            running=self.lanes.active,
            waiting=totals.waiting,
            undelivered=totals.undelivered,
            failed_deliveries=totals.failed_deliveries,
            uncertain_deliveries=totals.uncertain_deliveries,
            expired_deliveries=totals.expired_deliveries,
            lost=await self.store.reads.lost_deliveries(_LOST_SHOWN),
            last_failure=f"{self.stamp(failure[0])}, {failure[1]}" if failure else "",
        )

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
