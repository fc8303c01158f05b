"""The command /fork, which lets a conversation go on from an earlier point while the old one is kept."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.commands.registry import Answer, Arguments, Call, Command, Effect
from bot.persistence.exchanges import Forked
from bot.persistence.turns import CommandKept
from bot.store.store import Store
from channels.outgoing import Planned

# The digits of the id of a transcript that people are shown: those of the millisecond in which it began.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Fork(Effect):
    """Lets the session go on with a copy of its transcript."""

    store: Store

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist the copy and the answer."""
        call, message = answer.call, answer.call.message
        upto = (message.origin.place, message.reply_to) if message.reply_to else None

        def tell(forked: Forked) -> Sequence[Planned]:
            if not forked.of:
                nothing = (
                    "I do not find that message in this conversation." if upto else "There is nothing to go on from."
                )
                return answer.blocks(nothing, private=True)
            went = "We go on from that message; what came after it is left out." if upto else "We go on in a copy."
            kept = f"The conversation as it was is kept as `{forked.of[:_SHOWN]}`."
            return answer.blocks(f"{went} {kept}")

        return await self.store.forks.fork(call.seq, call.session_key, upto, tell)


def build(store: Store) -> Command:
    """Make the command."""

    async def run(call: Call, _: Arguments) -> Effect:
        return Fork(store)

    help_ = "Go on from here, or from the message that this replies to, and keep the old conversation."
    return Command(name="fork", help=help_, run=run, guests="direct")
