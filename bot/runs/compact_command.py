"""The command /compact, which sums up the older part of a conversation at once.

It needs no turn, so it also works while one runs or waits for a person. A run that is under way goes on with what it
has in mind; the next turn begins with the summary.
"""

from dataclasses import replace

from agent.compaction.engine import Compacted, ContextEngine
from agent.context import Context
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.runs import freeze_words
from bot.runs.runner import Contexts
from bot.runs.specs import Specs
from bot.runs.tools_command import turn_of, unsent
from bot.store.store import Store


class CompactArguments(Arguments):
    """The arguments of the command."""

    focus: str = ""


def build(specs: Specs, store: Store, contexts: Contexts) -> Command:
    """Make the command. specs: decides what runs are made of. contexts: the cached contexts."""

    async def run(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, CompactArguments)
        if any(one.what == "all" for one in await store.freezes.all()):
            return Say(freeze_words.COMPACT)
        found = await store.compactions.last_run(call.session_key)
        if found is None:
            return Say("There is nothing to sum up yet.")
        transcript_id, last, conv_id = found
        settings = await store.settings.of(call.session_key)
        turn = replace(turn_of(call), run=last, transcript_id=transcript_id, conv_id=conv_id, settings=settings)
        async with specs.of(turn, unsent) as spec:
            engine = ContextEngine(spec, Context(await store.reads.context(transcript_id)))
            before = engine.count()
            done = await engine.on_demand(arguments.focus)
        if done is Compacted.TOO_LITTLE:
            return Say("There is nothing to sum up yet: the newest part of a conversation stays as it is.")
        if done is Compacted.FAILED:
            return Say("No model could sum the conversation up, so everything stays as it is. The log says more.")
        contexts.forget(transcript_id)
        after = engine.count()
        return Say(f"The earlier part is summed up; the next request has about {after:,} tokens instead of {before:,}.")

    help_ = "Sums the earlier part of this conversation up; what follows is kept above all."
    return Command(name="compact", help=help_, run=run, arguments=CompactArguments, guests="direct")
