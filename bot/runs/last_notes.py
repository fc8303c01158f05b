"""Lets the model save notes of a conversation that a person has ended with /new, before it is out of its sight.

It happens behind the answer to the command and in the old transcript. Nothing of it is kept for the next start: where
the service ends meanwhile, no notes are saved.
"""

from dataclasses import dataclass, replace

import structlog

from agent.compaction.engine import ContextEngine
from agent.context import Context
from bot.commands.registry import Call
from bot.runs.runner import TurnRunner
from bot.runs.specs import Specs
from bot.runs.tools_command import turn_of, unsent
from bot.store.store import Store

log = structlog.get_logger()

# A conversation with fewer estimated tokens has nothing that is worth a call of the model.
LEAST = 2_000


@dataclass(frozen=True, slots=True)
class LastNotes:
    """Has notes saved of conversations that are over."""

    specs: Specs
    store: Store
    runner: TurnRunner

    async def save(self, call: Call, transcript_id: str) -> None:
        """Save notes of a transcript. call: the command that has ended it."""
        try:
            found = await self.store.compactions.last_run(call.session_key, transcript_id)
            context = Context(await self.store.reads.context(transcript_id))
            if found is None or context.tokens < LEAST:
                return
            _, last, conv_id = found
            settings = await self.store.settings.of(call.session_key)
            turn = replace(turn_of(call), run=last, transcript_id=transcript_id, conv_id=conv_id, settings=settings)
            async with self.specs.of(turn, unsent) as spec:
                await ContextEngine(spec, context, self.runner.journal(turn)).save_last_notes()
        except Exception:  # nobody waits for it, and the conversation can still be read
            log.exception("no notes were saved of a conversation that is over", session=call.session_key)
