"""What /status and `hark status` say: which model answers, how the channels stand, what runs, waits and was refused."""

from collections.abc import Callable
from dataclasses import dataclass

from bot import wording
from bot.commands.registry import Call
from bot.gateway.views import ReadinessView, StatusView
from bot.persistence.protocols import Store
from bot.runs.lanes import Lanes

_LOST_SHOWN = 5


@dataclass(eq=False)
class Status:
    """Reads what there is to say. stamp: a moment in milliseconds as people read it."""

    store: Store
    lanes: Lanes
    model: str
    model_reason: str
    stamp: Callable[[int], str]
    health: Callable[[], ReadinessView]

    async def view(self) -> StatusView:
        """The service as a whole."""
        totals = await self.store.reads.totals()
        failure = await self.store.reads.last_failure()
        return StatusView(
            model=self.model,
            model_reason=self.model_reason,
            running=self.lanes.active,
            waiting=totals.waiting,
            undelivered=totals.undelivered,
            failed_deliveries=totals.failed_deliveries,
            uncertain_deliveries=totals.uncertain_deliveries,
            lost=await self.store.reads.lost_deliveries(_LOST_SHOWN),
            last_failure=f"{self.stamp(failure[0])}, {failure[1]}" if failure else "",
        )

    async def text(self, call: Call) -> str:
        """The answer to /status: this conversation, and for owners the rest."""
        handle = self.lanes.handle(call.session_key)
        waiting = await self.store.inbox.count_waiting(call.session_key)
        state = "idle" if handle is None else "answering" if handle.is_streaming else "working"
        lines = [f"**Model** {self.model}", f"**This conversation** {state}, {waiting} waiting"]
        if call.by_owner:
            view = await self.view()
            lines.append(
                f"**Service** {view.running} running, {view.waiting} waiting, {view.undelivered} to be delivered,"
                f" {view.failed_deliveries} refused, {view.uncertain_deliveries} uncertain"
            )
            lines += [f"**Lost** {wording.lost(found, self.stamp(found.at))}" for found in view.lost]
            if view.last_failure:
                lines.append(f"**Last failure** {view.last_failure}")
            found = self.health().channels
            lines += [f"**{name.capitalize()}** {one.detail or one.state}" for name, one in found.items()]
        return "\n".join(f"- {line}" for line in lines)
