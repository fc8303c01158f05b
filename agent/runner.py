"""Answers the failures of model calls within a run, so that whoever started it never sees them.

`ACTIONS` is the whole of it: for each kind of failure what is tried, in this order. Before each further call the answer
that broke off is closed by the cut-answer rule, so that nothing is said twice; no call of a tool is ever repeated.
"""

import asyncio
from collections.abc import Callable, Container
from enum import StrEnum

import structlog

from agent.context import Context
from agent.errors import HALTED, BudgetReached, ErrorKind, ModelError, RunLost
from agent.events import AgentEnd, Notice, Outcome
from agent.journal import Cut, Journal, Outage
from agent.loop import Loop
from agent.models.base import ModelClient
from agent.models.fleet import Rest, Route
from agent.spec import RunSpec

log = structlog.get_logger()

# The kind of error of a run that a budget has ended.
BUDGET = "budget"
# How many seconds one run waits for busy providers in all, before it parks.
MAX_WAIT = 30.0
# Least seconds between two tries, even if the provider asks for less: it has just refused.
_LEAST_WAIT = 1.0
# Seconds for which a run leaves a key alone that has failed for another run.
_SHORT_WAIT = 2.0


class Action(StrEnum):
    """What the runner can do about a failure. The values are the kinds of the notices about it."""

    RETRY = "retry"  # Ask once more since the last complete answer, and again as long as an answer gets further.
    COMPACT = "compact"  # Sum the older part of the conversation up, at most three times in a run.
    SHORTEN = "shortened"  # Shorten results of tools, and drop the older half of the conversation.
    LESS_THINKING = "thinking"  # Ask with the next lower level of thinking.
    NEXT_KEY = "key"  # Ask with another key of the provider.
    NEXT_MODEL = "model"  # Ask the next model of `agent.fallbacks` whose `on` has this kind.
    WAIT = "wait"  # Wait as the provider asks, at most MAX_WAIT seconds in all, then begin anew.
    PARK = "parked"  # End the run; the turn goes on by itself when a model works again.


A = Action
ACTIONS: dict[ErrorKind, tuple[Action, ...]] = {
    ErrorKind.RATE_LIMIT: (A.NEXT_KEY, A.NEXT_MODEL, A.WAIT, A.PARK),
    ErrorKind.OVERLOADED: (A.NEXT_KEY, A.NEXT_MODEL, A.WAIT, A.PARK),
    ErrorKind.AUTH: (A.NEXT_KEY, A.NEXT_MODEL, A.PARK),
    ErrorKind.BILLING: (A.NEXT_KEY, A.NEXT_MODEL, A.PARK),
    ErrorKind.NETWORK: (A.RETRY, A.NEXT_MODEL, A.WAIT, A.PARK),
    ErrorKind.TIMEOUT: (A.RETRY, A.NEXT_MODEL),
    ErrorKind.UNKNOWN: (A.RETRY, A.NEXT_MODEL),
    ErrorKind.CONTEXT_OVERFLOW: (A.COMPACT, A.SHORTEN, A.NEXT_MODEL),
    ErrorKind.THINKING_UNSUPPORTED: (A.LESS_THINKING, A.NEXT_MODEL),
    ErrorKind.INVALID_REQUEST: (A.NEXT_MODEL,),
    ErrorKind.MODEL_NOT_FOUND: (A.NEXT_MODEL,),
    ErrorKind.REGION: (A.NEXT_MODEL,),
    ErrorKind.CONTENT_FILTER: (A.NEXT_MODEL,),
    ErrorKind.OWNERS_ONLY: (A.NEXT_MODEL,),
    ErrorKind.UNSAFE: (A.NEXT_MODEL,),
}
# Actions that ask with the same key at once, so that nothing is known against it yet, and those that ask elsewhere.
_SAME_KEY = (A.RETRY, A.LESS_THINKING, A.COMPACT, A.SHORTEN)
_ELSEWHERE = (A.NEXT_KEY, A.NEXT_MODEL)
# What people are told about failures, where a sentence fits.
_WHAT_HAPPENED = {
    ErrorKind.RATE_LIMIT: "The provider is busy",
    ErrorKind.OVERLOADED: "The provider is busy",
    ErrorKind.NETWORK: "The connection to the model broke",
    ErrorKind.TIMEOUT: "The model fell silent",
    ErrorKind.UNKNOWN: "The model gave no answer",
}


class Runner:
    """One run of a turn, with everything that is tried when a model call fails."""

    def __init__(self, spec: RunSpec, context: Context, journal: Journal) -> None:
        self._spec = spec
        self._context = context
        self._journal = journal
        self._route: Route = spec.route
        self._waited = 0.0
        self._waits = 0
        self._answers_at_retry: int | None = None
        self._notices = 0
        self._told: set[str] = set()
        self._loop = Loop(spec, context, journal)
        self.engine = self._loop.engine

    async def run(self) -> AgentEnd:
        """Run the turn to its end, or until it is parked; the end is persisted when this returns.

        Raises RunLost, or what the store raises when it cannot write. Cancellation leaves the turn as it is; whoever
        cancelled it (stop, drain) settles it.
        """
        try:
            async with asyncio.timeout(self._spec.limits.timeout - self._spec.progress.ran) as clock:
                return await self._run()
        except TimeoutError:
            if not clock.expired():
                raise
            await self._journal.keep()
            return await self._journal.fail(Outcome.TIMEOUT, ErrorKind.TIMEOUT.value, "the turn took too long")

    async def _run(self) -> AgentEnd:
        if (rest := self._route.rest) is not None:
            ended = await self._until_ready(rest)
            if ended is not None:
                return ended
        while True:
            try:
                if not self._spec.background and self._route.lacks():
                    model, level = self._route.model.name, self._route.thinking
                    log.info("a model lacks the level of thinking", model=model, level=level)
                    await self._journal.thinks_less(model, level, refused=False)
                return await self._loop.run()
            except BudgetReached as error:
                if (parked := await self._journal.park_for_budget(error)) is not None:
                    return parked
                # a job is tried again later
                outcome = Outcome.FAILED if self._spec.background else Outcome.LIMIT
                return await self._journal.fail(outcome, BUDGET, str(error))
            except ModelError as error:
                ended = await self._after(error)
                if ended is not None:
                    return ended

    async def _until_ready(self, rest: Rest) -> AgentEnd | None:
        """Before the first call, wait for a key that rests; returns the end of the run if none was ready in time.

        Waiting mends neither a refused key nor an empty account: the first turn that meets one asks all the same.
        """
        by_itself = rest.kind not in (ErrorKind.AUTH, ErrorKind.BILLING)
        wait = max(_SHORT_WAIT, (rest.asked - self._spec.now()) / 1000)
        if not self._is_known and wait <= MAX_WAIT:
            if by_itself:
                await self._wait(wait)
            return None
        if by_itself and await self._wait(MAX_WAIT):
            self._route.begin_anew()
            return None
        return await self._park(self._route.model, ModelError(rest.kind, "it failed a short while ago, and rests"))

    async def _after(self, error: ModelError) -> AgentEnd | None:
        """Do what there is to do about a failure; returns the end of the run if that ends it."""
        failed = self._route.model.name
        if await self._try(_SAME_KEY, error, failed):
            return None
        await self._route.fails(error)
        if await self._try(_ELSEWHERE, error, failed):
            return None
        client, error = self._mildest()
        failed = client.name
        actions, wait = ACTIONS[error.kind], self._next_wait(error)
        if Action.WAIT in actions and wait is not None:
            await self._go_on(Action.WAIT, error, failed, wait)
            return None
        if Action.PARK in actions:
            self._log(error, failed, Action.PARK)
            if (parked := await self._park(client, error)) is not None:
                return parked
        self._log(error, failed, None)
        await self._journal.keep()
        return await self._journal.fail(Outcome.FAILED, error.kind.value, f"{failed}: {error.detail}")

    def _mildest(self) -> tuple[ModelClient, ModelError]:
        """Return the failure, of those since the last answer, that most likely passes first, and whose it is."""

        def lasts(error: ModelError) -> tuple[bool, bool, float]:
            actions = ACTIONS[error.kind]
            return Action.WAIT not in actions, Action.PARK not in actions, error.retry_after or 0.0

        return min(self._route.failed.items(), key=lambda one: lasts(one[1]))

    async def _try(self, actions: Container[Action], error: ModelError, failed: str) -> bool:
        """Go on with the first of these actions that the table has for a failure and that makes another call possible.

        Returns whether there was one.
        """
        for action in ACTIONS[error.kind]:
            if action in actions and await self._can(action, error):
                await self._go_on(action, error, failed)
                return True
        return False

    async def _can(self, action: Action, error: ModelError) -> bool:
        """Prepare the next call, if the action makes one possible."""
        match action:
            case Action.RETRY:
                again, self._answers_at_retry = self._answers_at_retry != self._loop.answers, self._loop.answers
                goes_on = self._loop.step < self._spec.limits.max_steps
                return again or (goes_on and await self._journal.keep())
            case Action.COMPACT:
                return await self._loop.engine.after_overflow()
            case Action.SHORTEN:
                return self._loop.engine.shorten()
            case Action.LESS_THINKING:
                if lower := self._route.think_less():
                    await self._journal.thinks_less(self._route.model.name, self._route.thinking, refused=True)
                return lower
            case Action.NEXT_KEY:
                return self._route.next_key()
            case Action.NEXT_MODEL:
                return await self._route.next_model(error)
            case _:
                return True

    async def _go_on(self, action: Action, error: ModelError, failed: str, wait: float = 0.0) -> None:
        """Close the answer that broke off, publish the decision, and wait until the next call."""
        self._log(error, failed, action)
        cut = await self._journal.cut(self._notice(action, error.kind, wait), error.kind)
        self._context.append(cut.entries)
        if cut.halted:
            raise RunLost(HALTED)
        self._loop.go_on(cut)
        if wait:
            await self._wait(wait)
            self._route.begin_anew()

    def _next_wait(self, error: ModelError) -> float | None:
        """Return the seconds to wait before the next try; None if the run has waited for long enough."""
        if self._is_known:
            return MAX_WAIT - self._waited if self._waited < MAX_WAIT else None
        told = error.retry_after
        wait = max(told, _LEAST_WAIT) if told is not None else min(2.0 ** (self._waits + 1), 8.0)
        return wait if self._waited + wait <= MAX_WAIT else None

    @property
    def _is_known(self) -> bool:
        """Whether turns are parked already because this model and those that stand in for it do not work."""
        return self._route.wanted in self._route.fleet.missed

    async def _wait(self, seconds: float) -> bool:
        """Wait so long, or until a key works that rested; returns whether another call makes sense.

        While turns are parked for the same model only a probe asks it.
        """
        self._waited += seconds
        self._waits += 1
        known = self._is_known
        works = asyncio.ensure_future(self._route.fleet.until_one_works())
        passed = asyncio.ensure_future(self._spec.sleep(seconds))
        try:
            await asyncio.wait((works, passed), return_when=asyncio.FIRST_COMPLETED)
            return works.done() or not known
        finally:
            works.cancel()
            passed.cancel()

    async def _park(self, client: ModelClient, error: ModelError) -> AgentEnd | None:
        """Park the turn until a model works again; None where turns of this kind are not parked."""
        outage = Outage(
            kind=error.kind,
            wanted=self._route.wanted,
            cause=f"{client.name}: {error.detail}",
            until=self._route.fleet.until(client),
        )
        return await self._journal.park_for_model(outage)

    def _log(self, error: ModelError, failed: str, action: Action | None) -> None:
        provider, _, model = failed.partition("/")
        ends = action in (None, Action.PARK)
        write = log.warning if ends else log.info
        write(
            "model call failed" if ends else "model call failed, going on",
            turn=self._spec.ref.turn_id,
            provider=provider,
            model=model,
            kind=error.kind.value,
            status=error.status,
            said=error.detail,
            **({} if action is None else {"action": action.value}),
        )

    def _notice(self, action: Action, kind: ErrorKind, wait: float) -> Callable[[Cut], Notice]:
        """Return a function that makes the notice of a decision; people read the words once per kind of cause."""
        self._notices += 1
        ref, now, number = self._spec.ref, self._spec.now(), self._notices
        what = _WHAT_HAPPENED.get(kind, "")
        words = what and what not in self._told and action in (Action.RETRY, Action.WAIT)
        self._told.add(what)

        def made(cut: Cut) -> Notice:
            again = "going on from there" if cut.entries else "trying again"
            detail = f"{what}; {again}{f' in {round(wait, 1):g} s' if wait else ''}." if words else ""
            return Notice(
                run=ref, at=now, step=cut.step, number=number, kind="cut" if cut.entries else action, detail=detail
            )

        return made
