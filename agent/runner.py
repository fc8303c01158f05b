"""Retries around the loop: what a model error leads to, within one run.

After a rate limit or an overload the run waits as the provider asks, at most 30 seconds in all. A network failure or a
silent model is retried once, and again as long as the answer gets further each time. An answer that broke off after
text is continued by the cut-answer rule. Any other error ends the run, and the journal tells the person.
"""

import asyncio
from collections.abc import Callable

import structlog

from agent.context import Context
from agent.errors import ErrorKind, ModelError
from agent.events import AgentEnd, Notice, Outcome
from agent.journal import Cut, Journal
from agent.loop import Loop
from agent.spec import RunSpec

log = structlog.get_logger()

# How many seconds one run waits for busy providers in all.
MAX_WAIT = 30.0
# Least seconds between two tries, even if the provider asks for less: it has just refused.
_LEAST_WAIT = 1.0
_WAITS = {ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED}
_TRY_AGAIN = {ErrorKind.NETWORK, ErrorKind.TIMEOUT, ErrorKind.UNKNOWN}
# What people are told about errors that lead to a retry.
_WHAT_HAPPENED = {
    ErrorKind.RATE_LIMIT: "The provider is busy",
    ErrorKind.OVERLOADED: "The provider is busy",
    ErrorKind.NETWORK: "The connection to the model broke",
    ErrorKind.TIMEOUT: "The model fell silent",
    ErrorKind.UNKNOWN: "The model gave no answer",
    ErrorKind.INVALID_REQUEST: "The provider refused a request with images",
}


class Runner:
    """One run with its retries. `model` is the client of the next step."""

    def __init__(self, spec: RunSpec, context: Context, journal: Journal) -> None:
        self._spec = spec
        self._context = context
        self._journal = journal
        self._waited = 0.0
        self._answers_at_retry: int | None = None
        self._notices = 0
        self._told: set[str] = set()
        self.model = spec.model
        self._loop = Loop(spec, context, journal, lambda: self.model)

    async def run(self) -> AgentEnd:
        """Run the turn to its end, which is persisted when this returns.

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
        while True:
            try:
                return await self._loop.run()
            except ModelError as error:
                wait = self._wait_for(error)
                if wait is None and await self._journal.keep() and self._goes_further(error):
                    wait = 0.0
                self._log(error, given_up=wait is None)
                if wait is None:
                    cause = f"{self.model.name}: {error.detail}"
                    return await self._journal.fail(Outcome.FAILED, error.kind.value, cause)
                cut = await self._journal.cut(self._notice(error.kind, wait))
                self._context.append(cut.entries)
                self._loop.go_on(cut)
                if wait:
                    self._waited += wait
                    await self._spec.sleep(wait)

    def _wait_for(self, error: ModelError) -> float | None:
        """Return the seconds until the next try; None when there is none."""
        if error.kind in _WAITS:
            told = error.retry_after
            wait = max(told, _LEAST_WAIT) if told is not None else min(2.0 ** (self._notices + 1), 8.0)
            return wait if self._waited + wait <= MAX_WAIT else None
        if error.kind is ErrorKind.INVALID_REQUEST and self._loop.hide_images():
            return 0.0
        if error.kind in _TRY_AGAIN and self._answers_at_retry != self._loop.answers:
            self._answers_at_retry = self._loop.answers
            return 0.0
        return None

    def _goes_further(self, error: ModelError) -> bool:
        """Whether an answer that broke off again, after more text, is continued; each time counts as a step."""
        return error.kind in _TRY_AGAIN and self._loop.step < self._spec.limits.max_steps

    def _log(self, error: ModelError, *, given_up: bool) -> None:
        provider, _, model = self.model.name.partition("/")
        write = log.warning if given_up else log.info
        write(
            "model call failed" if given_up else "model call failed, trying again",
            turn=self._spec.ref.turn_id,
            provider=provider,
            model=model,
            kind=error.kind.value,
            status=error.status,
            said=error.detail,
        )

    def _notice(self, error: ErrorKind, wait: float) -> Callable[[Cut], Notice]:
        """Return a function that makes the notice about a retry; people read the words once per kind of cause."""
        self._notices += 1
        ref, now, number = self._spec.ref, self._spec.now(), self._notices
        what = _WHAT_HAPPENED[error]
        again = {"cut": "going on from there", "retry": "trying again"} if what not in self._told else {}
        self._told.add(what)

        def made(cut: Cut) -> Notice:
            kind = "cut" if cut.entries else "retry"
            detail = f"{what}; {again[kind]}{f' in {round(wait, 1):g} s' if wait else ''}." if again else ""
            return Notice(run=ref, at=now, step=cut.step, number=number, kind=kind, detail=detail)

        return made
