"""What /status and `hark status` say: which model answers, how the channels stand, what runs, waits and was refused."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from bot.approvals import words
from bot.commands.registry import Call
from bot.gateway.views import ReadinessView, StatusView
from bot.persistence.settings import SessionSettings
from bot.runs.lanes import Lanes
from bot.store.store import Store

_LOST_SHOWN = 5


@dataclass(eq=False)
class Status:
    """Reads what there is to say. sandbox: which one holds commands in, and why. stamp: a moment in milliseconds as
    people read it."""

    store: Store
    lanes: Lanes
    model: str
    model_reason: str
    sandbox: str
    stamp: Callable[[int], str]
    health: Callable[[], ReadinessView]

    async def view(self) -> StatusView:
        """The service as a whole."""
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

    async def text(self, call: Call) -> str:
        """The answer to /status: this conversation, and for owners the rest."""
        handle = self.lanes.handle(call.session_key)
        waiting = await self.store.inbox.count_waiting(call.session_key)
        state = "idle" if handle is None else "answering" if handle.journal.answering else "working"
        for one in await self.store.approvals.open():
            if one.session_key == call.session_key:
                state = f"waiting for somebody (`/approvals`): {words.line(one)}"
        lines = [f"**Model** {self.model}", f"**This conversation** {state}, {waiting} waiting"]
        settings, usual = asdict(await self.store.reads.settings(call.session_key)), asdict(SessionSettings())
        lines += [f"**{name.capitalize()}** {value}" for name, value in settings.items() if value != usual[name]]
        if call.by_owner:
            rows = list((await self.view()).rows(self.stamp))
            rows += [(name, one.detail or one.state) for name, one in self.health().channels.items()]
            lines += [f"**{name.capitalize()}** {text}" for name, text in rows]
        return "\n".join(f"- {line}" for line in lines)
