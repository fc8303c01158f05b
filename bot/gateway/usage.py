"""What was used: the command /usage, and the view of it for programs and `hark usage`."""

from dataclasses import dataclass

from bot.clock import Clock
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.gateway.views import UsageView
from bot.store.store import Store
from channels.message import SEVERAL
from heartbeat.times import day_start

# Milliseconds.
_DAY = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Reads from the store what was used."""

    store: Store
    clock: Clock

    async def view(self, session_key: str = "") -> UsageView:
        """Return what was used. session_key: by this session; empty: by all. Raises StoreUnavailable."""
        today = day_start(self.clock.now(), self.clock.zone)
        week = day_start(today - 6 * _DAY + _DAY // 2, self.clock.zone)
        by = self.store.usage.by
        return UsageView(
            today_by_model=await by("model", today, session_key),
            today_by_session=await by("session_key", today, session_key),
            week_by_model=await by("model", week, session_key),
            week_by_session=await by("session_key", week, session_key),
        )

    def command(self) -> Command:
        """Make the command /usage."""
        return Command(
            name="usage",
            help="What models have used, today and in seven days.",
            run=self._show,
            lenient=True,
            guests="direct",
        )

    async def _show(self, call: Call, _: Arguments) -> Effect:
        """Answer owners with everything, where nobody else reads along; others with what their own session has used."""
        alone = call.by_owner and call.message.origin.place.kind not in SEVERAL
        view = await self.view("" if alone else call.session_key)
        return Say(view.text(one_session=not alone))
