"""Runs claimed turns: makes what a run needs, lets the agent work, and sees to it that no turn is left lying."""

import asyncio
import contextlib

import structlog

from agent.errors import RunLost
from agent.events import Outcome
from agent.runner import Runner
from bot.persistence.errors import StaleRun, StoreUnavailable
from bot.persistence.turns import Turn
from bot.replies.cutting import Replies
from bot.replies.typing import Typing
from bot.runs.contexts import Contexts
from bot.runs.journal import RunDependencies, RunJournal
from bot.runs.media import Media
from bot.runs.presentation import Presentation
from bot.runs.specs import BY_THEMSELVES, Specs
from bot.store.writer import once_available

log = structlog.get_logger()

# Seconds between tries while the store cannot write.
PAUSE = 1.0


class TurnRunner:
    """Makes and executes the run of a claimed turn."""

    def __init__(self, dependencies: RunDependencies, specs: Specs, presentation: Presentation, media: Media) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._clock = dependencies.clock
        self._specs = specs
        self._presentation = presentation
        self._media = media
        self.contexts = Contexts(self._store)

    async def claim(self, session_key: str, *, background: bool, until: int) -> Turn | None:
        """Take a session's next turn, see the store. Raises StoreUnavailable."""
        worker = self._dependencies.worker
        return await self._store.turns.claim(
            session_key, worker, self._specs.answered_by, background=background, until=until
        )

    def journal(self, turn: Turn) -> RunJournal:
        """The journal of a turn that is about to run."""
        outbox = self._dependencies.outbox
        serving = outbox.serving(turn.place)
        rendering = serving or outbox.channel(turn.place.channel)
        replies = Replies(turn, rendering, *self._presentation.shown(turn), self._clock.nonce)
        typing = Typing(
            None if turn.kind in BY_THEMSELVES else serving,
            turn.place,
            lambda error: log.info("typing failed", reason=str(error)),
        )
        return RunJournal(self._dependencies, turn, replies, typing, self._presentation.beat_words(turn))

    async def run(self, journal: RunJournal) -> bool:
        """Run a turn to its end, or give it back to the queue when it is cancelled or the store cannot write.

        Returns whether something of it may be left to run (itself, or steering texts that nobody read).
        """
        turn = journal.turn
        try:
            return await self._execute(journal)
        except (RunLost, StaleRun):
            log.info("run ended by a stop", turn=turn.turn_id)
        except asyncio.CancelledError:
            await self.give_back(turn)
            raise
        except StoreUnavailable:
            await self._wait_for_store(turn)
        finally:
            journal.stop_showing()
        return True

    async def give_back(self, turn: Turn, until: int | None = None) -> None:
        """Put a cancelled turn back into the queue, unless a stop has settled it."""
        with contextlib.suppress(StoreUnavailable):  # repaired at the next start
            await asyncio.shield(self._release(turn, until))

    async def _execute(self, journal: RunJournal) -> bool:
        turn = journal.turn
        try:
            context = await self.contexts.take(turn)
            journal.resume(context)
            if any(one.state == "always" for one in turn.decisions.values()):
                await self._dependencies.requests.load()  # whoever decided may not have come to that yet
            async with self._specs.of(turn, journal.send) as spec:
                runner = Runner(spec, context, journal)
                with journal.typing:
                    if (files := await self._media.of(turn, context)) is not None:
                        context.append([await journal.note(files, "user")])
                    end = await runner.run()
        except (RunLost, StaleRun, StoreUnavailable):
            raise
        except Exception:
            log.exception("run failed", turn=turn.turn_id)
            await journal.fail(Outcome.FAILED, "internal", "an error inside the service; the log has it")
            return True
        if turn.kind not in BY_THEMSELVES:  # their lines may be hidden
            self.contexts.give_back(turn.transcript_id, context)
        log.info(
            "turn",
            turn=turn.turn_id,
            session=turn.session_key,
            outcome=end.outcome.value,
            seconds=round(end.duration, 3),
            tokens_in=end.usage.input,
            tokens_out=end.usage.output,
        )
        return end.outcome is not Outcome.COMPLETED

    async def _wait_for_store(self, turn: Turn) -> None:
        """The store could not write during a run: as soon as it can, the turn goes back into the queue."""
        log.error("the store cannot write; the run waits", turn=turn.turn_id)
        since = self._clock.now()
        try:
            await self._clock.sleep(PAUSE)
            await once_available(lambda: self._release(turn, since), lambda _: self._clock.sleep(PAUSE))
        except asyncio.CancelledError:
            await self.give_back(turn, since)
            raise

    async def _release(self, turn: Turn, until: int | None = None) -> None:
        """until: when the run ceased to work, if that is not now."""
        await self._store.turns.release(turn.run, until)
