"""The heartbeat as owners see and steer it: in a chat, over HTTP and on the command line."""

from dataclasses import dataclass

from bot.background.dispatcher import Dispatcher
from bot.background.views import BeatView, HeartbeatView, receipt
from bot.compose import composer
from bot.persistence.schedules import HEARTBEAT
from channels.message import InboundKind, InboundMessage

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Control:
    """Of one service."""

    dispatcher: Dispatcher

    async def heartbeat(self) -> HeartbeatView:
        """How it stands. Raises StoreUnavailable."""
        beats = self.dispatcher.beats
        job, beat = await beats.job(), await beats.look("due")
        facts, shown = beat.facts, await beats.store.schedules.firings(HEARTBEAT, _SHOWN)
        return HeartbeatView(
            on=facts.enabled,
            every=beats.settings.every.total_seconds(),
            session=facts.session,
            next_at=job.next_at if job and facts.enabled else None,
            skip=beat.skip.words if beat.skip else "",
            spent=facts.spent,
            budget=facts.budget.amount,
            unit=facts.budget.unit,
            beats=tuple(receipt(one, beats.cost) for one in shown),
        )

    async def sentence(self) -> str:
        """Return when the next beat is, and what became of the last, in a few words. Raises StoreUnavailable."""
        beats, stamp = self.dispatcher.beats, self.dispatcher.clock.stamp
        job, found = await beats.job(), await beats.store.schedules.firings(HEARTBEAT, 1)
        is_on = beats.settings.every and job is not None and not job.paused
        following = f"next {stamp(job.next_at)}" if is_on and job and job.next_at else "off"
        return f"{following}; " + (f"last {receipt(found[0], beats.cost).words(stamp)}" if found else "none yet")

    async def beat(self, *, dry: bool) -> BeatView:
        """Beat now, or with dry only say what a beat that is due now would be. Raises StoreUnavailable."""
        beats = self.dispatcher.beats
        beat = await (beats.look("due") if dry else beats.begin("now"))
        skip, prompt = beat.skip, beat.prompt
        if dry:
            now, compose = self.dispatcher.clock.now(), composer(self.dispatcher.clock.stamp)
            asked = InboundMessage(origin=beat.origin, event_key="", kind=InboundKind.WAKE, text=prompt, sent_at=now)
            events = await self.dispatcher.store.schedules.events(beat.facts.session)
            prompt = compose(asked, now, events).text
        return BeatView(
            session=beat.session_key,
            begun=skip is None and not dry,
            reason=skip.reason if skip else "",
            words=skip.words if skip else "",
            prompt=prompt,
        )

    async def wake(self, text: str, session_key: str = "", *, now: bool = False) -> str | None:
        """See `Beats.wake`."""
        told = await self.dispatcher.beats.wake(text, session_key, now=now)
        self.dispatcher.hurry()
        return told

    async def carry_out(self, action: str) -> str:
        """What an owner asks for in a chat (status, on, off or now), in words. Raises StoreUnavailable."""
        if action == "now":
            begun = await self.beat(dry=False)
            return "I am having a look." if begun.begun else f"No beat now: {begun.words}"
        if action != "status":
            await self.dispatcher.beats.switch(action == "on")
            self.dispatcher.hurry()
        rows = (await self.heartbeat()).rows(self.dispatcher.clock.stamp)
        return "\n".join(f"- **{name.capitalize()}** {text}" for name, text in rows)
