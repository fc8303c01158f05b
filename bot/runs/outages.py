"""OutageWatch of models: parks the turns that no model answers, tells their people, and lets them go on by themselves.

While turns are parked, or a model is down for which another one stands in, its keys are probed with one short call each
time. When a probe succeeds all turns that wait for the model are queued again, in the order in which people wrote.
Turns that wait for the budget of another day go on with it as well.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from agent.errors import ErrorKind
from agent.events import PARKED, AgentEnd, Notice
from agent.journal import Outage
from agent.message import Usage
from agent.models.base import ThinkingLevel
from agent.models.fleet import Fleet
from agent.runner import BUDGET
from bot import wording
from bot.clock import Clock
from bot.outbox import Outbox
from bot.people.access import LOCAL
from bot.persistence.errors import StoreUnavailable
from bot.persistence.turns import BY_THEMSELVES, Turn
from bot.runs import budget_words, refusal_words
from bot.runs.budgets import Budgets
from bot.store.store import Store
from channels.message import ChatKind
from channels.outgoing import Planned
from channels.session_key import CHILD
from channels.sources import of_turn, sentence

log = structlog.get_logger()

# Seconds between probes: while turns wait, otherwise, and for failures that only an owner can mend.
PARKED_EVERY, OTHERWISE_EVERY, MENDED_EVERY = 20.0, 300.0, 300.0
# Failures of keys, which only an owner can mend.
KEY_FAILURES = (ErrorKind.AUTH, ErrorKind.BILLING)
_HOUR = 3_600_000


class OutageWatch:
    """Parks turns and probes models.

    wake: starts what waits in a session; it is given the key, and whether it is work of the background. max_age: after
    it a turn that waits is given up.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        outbox: Outbox,
        fleet: Fleet,
        budgets: Budgets,
        wake: Callable[[str, bool], None],
        max_age: timedelta,
    ) -> None:
        self._store, self._clock, self._outbox, self._fleet, self._budgets = store, clock, outbox, fleet, budgets
        self._wake, self._max_age = wake, int(max_age.total_seconds() * 1000)
        self._probed: dict[tuple[str, str], float] = {}  # when a model was probed last with a key, in seconds

    async def load(self) -> None:
        """Take over the rests of keys, and let turns go on if the budgets are others. Raises StoreUnavailable."""
        if await self._store.budget_waits.waiting():
            await self._store.budget_waits.begin(repr(self._budgets.limits))
        self._fleet.load(await self._store.outages.rests(), await self._store.outages.refused())
        self._fleet.missed = {turn.model for turn in await self._store.outages.missing() if turn.model}

    async def park(self, turn: Turn, outage: Outage, *, to_owner: bool) -> AgentEnd:
        """Park a turn until a model works again, and tell its people unless they know.

        to_owner: only owners read the conversation of the turn. Raises StaleRun or StoreUnavailable.
        """
        now = self._clock.now()
        least = MENDED_EVERY if outage.kind in KEY_FAILURES else PARKED_EVERY
        wait = max((outage.until - now) / 1000, least)
        cause = outage.cause if to_owner else ""
        said = wording.outage(outage.kind, wait, cause, to_owner=to_owner or turn.place.kind in LOCAL)
        notice = None
        if outage.kind in KEY_FAILURES and not to_owner:
            source = sentence("outage", outage.kind, now // _HOUR)
            notice = self._outbox.to_owner(source, wording.failed_elsewhere(turn.place, outage.kind, outage.cause))
        blocks = self._blocks(turn, "outage", said)
        told = Notice(run=turn.run, at=now, step=turn.step, number=0, kind=PARKED, detail=said)
        with self._outbox.planning(turn.conv_id, turn.place, blocks) as where:
            deliveries, end = await self._store.outages.park(turn.run, outage.wanted, where, blocks, notice, told)
            self._outbox.send(deliveries)
        for client in self._fleet.all_of(outage.wanted):  # they have just been asked
            self._probed[client.name, client.key] = self._clock.monotonic()
        self._fleet.missed.add(outage.wanted)
        self._fleet.rested.set()
        if notice is not None:
            await self._outbox.serve_open()
        return end

    async def answers(self, turn: Turn, wanted: str, away: str, *, tell: bool) -> None:
        """Remember that a model answers in place of the wanted one (away), or that this one does again (empty)."""
        said = wording.answers_instead(wanted, away) if away else wording.answers_again(wanted)
        blocks = self._blocks(turn, f"model:{turn.run.attempt}:{away}", said) if tell else ()
        with self._outbox.planning(turn.conv_id, turn.place, blocks) as where:
            self._outbox.send(await self._store.outages.answers(turn.run, away, where, blocks))

    async def thinks_less(self, turn: Turn, model: str, level: ThinkingLevel, *, refused: bool) -> None:
        """Remember the highest level of thinking that a model has not refused in a session, and tell its people.

        refused: otherwise the model lacks higher ones, which may change with the configuration.
        """
        said = wording.thinks_less(model, "none" if level == "auto" else level, refused=refused)
        blocks = self._blocks(turn, f"thinking:{model}:{level}", said)
        most = level if refused else "auto"
        with self._outbox.planning(turn.conv_id, turn.place, blocks) as where:
            self._outbox.send(await self._store.outages.thinks_less(turn.run, model, most, where, blocks))

    async def left_out(self, turn: Turn, model: str, parts: Sequence[str]) -> None:
        """Tell the people of a turn what a model has refused, unless nothing is missing now."""
        said = refusal_words.left_out(model, parts)
        if said and (blocks := self._blocks(turn, f"left-out:{model}:{parts[0]}", said)):
            with self._outbox.planning(turn.conv_id, turn.place, blocks) as where:
                self._outbox.send(await self._store.turns.plan(turn.run, where, blocks))

    async def serve(self) -> None:
        """Probe what does not work, until cancelled."""
        while True:
            pause = OTHERWISE_EVERY
            try:
                if await self._look():
                    pause = PARKED_EVERY
            except StoreUnavailable:
                pause = PARKED_EVERY
            except Exception:
                log.exception("the look for models that work again has failed")
            await self._pause(pause)

    async def _look(self) -> bool:
        """Give up what waits for too long, probe, and queue what can go on; returns whether to look again soon."""
        if any(one.what == "all" for one in await self._store.freezes.all()):  # no model is asked
            return True
        for session_key in await self._store.budget_waits.resume(self._clock.now()):
            self._wake(session_key, CHILD in session_key)
        waiting = await self._store.outages.missing()
        now = self._clock.now()
        late = [turn for turn in waiting if now - turn.since > min(turn.most or self._max_age, self._max_age)]
        for turn in late:
            said = wording.GIVEN_UP if turn.model else budget_words.GIVEN_UP
            told = CHILD not in turn.session_key  # a sub-agent tells its parent alone
            blocks = self._outbox.notice(of_turn(turn.turn_id, "error"), said, turn.channel) if told else ()
            why = "outage" if turn.model else BUDGET
            self._outbox.send(await self._store.outages.give_up(turn.turn_id, blocks, why, said))
            self._wake(turn.session_key, not told)
        self._fleet.missed = {turn.model for turn in waiting if turn.model and turn not in late}
        for wanted in [*self._fleet.missed]:
            if await self._works(wanted):
                self._fleet.missed.discard(wanted)
                log.info("a model works again", model=wanted)
                for session_key in await self._store.outages.resume((wanted,)):
                    self._wake(session_key, CHILD in session_key)
        for name in self._fleet.down:
            if not all(self._fleet.is_down(other) for other, _ in self._fleet.chain(name)):  # another one stands in
                await self._probe(name, OTHERWISE_EVERY)
        return bool(self._fleet.missed or self._fleet.rests)

    async def _works(self, wanted: str) -> bool:
        """Return whether a model, or one that stands in for it, works; it is probed where that is due."""
        try:
            self._fleet.clients(wanted)
        except LookupError:  # it is not configured any more, so the session gets another one
            return True
        names = [name for name, _ in self._fleet.chain(wanted)]
        for name in names:
            if not self._fleet.is_down(name) or await self._probe(name, PARKED_EVERY):
                return True
        return False

    async def _probe(self, name: str, every: float) -> bool:
        """Probe the keys of a model that does not work, each once in so many seconds; returns whether one works."""
        for client in self._fleet.clients(name):
            rest, now = self._fleet.rest_of(client), self._clock.monotonic()
            if rest is not None and rest.asked > self._clock.now():
                continue
            pause = MENDED_EVERY if rest is not None and rest.kind in KEY_FAILURES else every
            if now - self._probed.setdefault((client.name, client.key), now) >= pause:
                self._probed[client.name, client.key] = now
                works, usage = await self._fleet.probe(client)
                if usage != Usage():
                    await self._store.usage.probed(client.name, usage)
                if works:
                    return True
        return False

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until a key begins to rest or a turn is parked."""
        changed = asyncio.ensure_future(self._fleet.rested.wait())
        passed = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((changed, passed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            passed.cancel()
        self._fleet.rested.clear()

    def _blocks(self, turn: Turn, name: str, text: str) -> Sequence[Planned]:
        """Return what people are told; programs read it in the events, and beats, jobs and sub-agents tell nothing."""
        if turn.kind in BY_THEMSELVES or turn.settings.child or turn.place.kind is ChatKind.API:
            return ()
        return self._outbox.notice(of_turn(turn.turn_id, name), text, turn.place.channel)
