"""What /status and `hark status` say: which model answers, how the channels stand, what runs, waits and was refused."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.commands.registry import Call
from bot.health import Report
from bot.lanes import Lanes
from bot.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """Counts of this moment. model_reason: why this model was chosen."""

    model: str
    model_reason: str
    running: int
    waiting: int
    undelivered: int
    failed_deliveries: int


class Status:
    """Reads what there is to say."""

    def __init__(self, store: Store, lanes: Lanes, model: str, model_reason: str, health: Callable[[], Report]) -> None:
        self._store = store
        self._lanes = lanes
        self._model = model
        self._model_reason = model_reason
        self._health = health

    async def view(self) -> StatusView:
        """The service as a whole."""
        totals = await self._store.reads.totals()
        return StatusView(
            model=self._model,
            model_reason=self._model_reason,
            running=self._lanes.active,
            waiting=totals.waiting,
            undelivered=totals.undelivered,
            failed_deliveries=totals.failed_deliveries,
        )

    async def text(self, call: Call) -> str:
        """The answer to /status: this conversation, and for owners the rest."""
        handle = self._lanes.handle(call.session_key)
        waiting = await self._store.inbox.count_waiting(call.session_key)
        state = "idle" if handle is None else "answering" if handle.is_streaming else "working"
        lines = [f"**Model** {self._model}", f"**This conversation** {state}, {waiting} waiting"]
        if call.by_owner:
            view = await self.view()
            lines.append(
                f"**Service** {view.running} running, {view.waiting} waiting, {view.undelivered} to be delivered,"
                f" {view.failed_deliveries} refused"
            )
            lines += _channels(self._health())
        return "\n".join(f"- {line}" for line in lines)


def _channels(found: Report) -> list[str]:
    """How each of them stands; the store is among them when there is something to say about it."""
    return [f"**{name.capitalize()}** {health.detail or health.state.value}" for name, health in found.channels.items()]
