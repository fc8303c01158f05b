"""The command /retry, which has the last message answered again.

The earlier answer stays in the transcript, and the message is asked again behind it, with its files and in the name of
whoever wrote it. Owners repeat anybody's message of a group, guests their own.
"""

from dataclasses import dataclass

from bot.commands.registry import Answer, Arguments, Call, Command, Effect
from bot.persistence.turns import CommandKept
from bot.store.store import Store

_BUSY = "I am not done with that message yet; /stop ends what I do."
_NOTHING = "There is no message here to answer again."


@dataclass(frozen=True, slots=True)
class Retry(Effect):
    """The last message is answered again."""

    store: Store

    async def persist(self, answer: Answer) -> CommandKept:
        """Make the command that message."""
        call = answer.call
        only = "" if call.asker.is_owner or call.asker.direct else call.message.origin.sender
        busy, nothing = answer.blocks(_BUSY), answer.blocks(_NOTHING)
        return await self.store.retries.retry(call.seq, call.message, only, busy, nothing)


def build(store: Store) -> Command:
    """Make the command."""

    async def run(call: Call, _: Arguments) -> Effect:
        return Retry(store)

    return Command(name="retry", help="Answers the last message again.", run=run, lenient=True, guests="everywhere")
