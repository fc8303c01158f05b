"""The commands /stop, /new and /reset, which end the run of a session.

/stop is also a plain word (`queue.stop_words`) that is the whole message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from pydantic import Field

from agent.tools.background import Background
from bot import wording
from bot.approvals.requests import Requests
from bot.clock import Clock
from bot.commands.registry import Answer, Arguments, Call, Command, Effect
from bot.persistence.turns import CommandKept, Ending, Reply, Stopped, TurnKind
from bot.runs.last_notes import LastNotes
from bot.runs.model_commands import ModelCommands
from bot.store.store import Store
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.session_key import CHILD, threads_of

# The most finished calls that the answer to /stop names.
_NAMED = 5


class NewArguments(Arguments):
    """The arguments of /new and /reset; the first may be left out."""

    model: str = Field(default="", description="provider/model, which answers from then on.")
    words: str = Field(default="", description="The first message of the new conversation.")


@dataclass(frozen=True, slots=True)
class Stop(Effect):
    """Ends the run of the session and its commands in the background, and drops the messages that wait.

    In a group, a guest ends their own runs alone and drops their own messages.
    """

    commands: "StopCommands"

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist the stop and end the commands in the background; the runs are cancelled afterwards."""
        return await self.commands.stop(answer)


@dataclass(frozen=True, slots=True)
class Renew(Effect):
    """Does the same, and lets the session go on with a new, empty transcript."""

    commands: "StopCommands"
    # The model that answers from then on; empty: as before.
    model: str
    # The first message of the new transcript; empty: there is none yet.
    words: str

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist the new transcript, and have notes saved of the old one."""
        return await self.commands.renew(answer, self.model, self.words)


@dataclass(eq=False)
class StopCommands:
    """Makes the commands, and carries them out."""

    store: Store
    clock: Clock
    # The commands that tools have started in the background.
    background: Background
    requests: Requests
    choosing: ModelCommands
    notes: LastNotes

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""

        async def stop(call: Call, _: Arguments) -> Effect:
            return Stop(self)

        async def reset(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, NewArguments)
            if "/" in arguments.model and self.choosing.fleet.knows(arguments.model):
                refusal = self.choosing.refusal(call, arguments.model)
                return refusal or Renew(self, arguments.model, arguments.words)
            _, *words = call.message.text.strip().split(None, 1)
            return Renew(self, "", "".join(words))

        stops, begins = "Stop the run, and drop what waits.", "Begin a new conversation; the old one is kept."
        return (
            Command(name="stop", help=stops, run=stop, aliases=("abort",), lenient=True, guests="everywhere"),
            Command(name="new", help=begins, run=reset, arguments=NewArguments, guests="direct"),
            Command(name="reset", help="The same as /new.", run=reset, arguments=NewArguments, guests="direct"),
        )

    async def stop(self, answer: Answer) -> CommandKept:
        """Persist a stop and end the commands in the background; the runs are cancelled afterwards.

        Where commands cannot be typed in threads of the platform, /stop in a chat also stops its threads. Raises
        StoreUnavailable.
        """
        call = answer.call
        below = threads_of(call.session_key) if answer.apart else ""
        shared = not (call.asker.is_owner or call.asker.direct)
        goes_on = not shared and self._end_commands(call.session_key, below)

        def reply(stopped: Stopped) -> Sequence[Planned]:
            running = stopped.running or goes_on
            said = (wording.stopped(running, stopped.dropped, alone=shared), done_before(stopped, call.by_owner))
            return answer.blocks(" ".join(filter(None, said)))

        ending = Ending(below=below, only=call.message.origin.sender if shared else "")
        return await self._end(answer, reply, ending)

    async def renew(self, answer: Answer, model: str, words: str) -> CommandKept:
        """Persist a new transcript, the end of the run, and the first message; notes are saved of the old transcript.

        Nothing is awaited before, so that a message behind the command finds the new transcript. May raise
        StoreUnavailable.
        """
        call = answer.call
        goes_on = self._end_commands(call.session_key)

        def reply(stopped: Stopped) -> Sequence[Planned]:
            answers = self.choosing.specs.answering(TurnKind.REPLY, stopped.settings, (call.message,)).model
            greeting = wording.fresh_start(answers, stopped.running or goes_on, stopped.dropped)
            return answer.blocks(greeting)

        message = replace(call.message, kind=InboundKind.MESSAGE, text=words) if words else None
        ending = Ending(renew=self.clock.new_id(), model=model, becomes=message)
        kept = await self._end(answer, reply, ending)
        if not kept.stopped.left:
            return kept
        return replace(kept, afterwards=partial(self.notes.save, call, kept.stopped.left))

    def _end_commands(self, session_key: str, below: str = "") -> bool:
        """End the commands in the background of a session, of its sub-agents, and of the sessions below."""
        ended = self.background.stop(session_key, f"{session_key}{CHILD}")
        return (bool(below) and self.background.stop(session_key, below)) or ended

    async def _end(self, answer: Answer, reply: Reply, ending: Ending) -> CommandKept:
        call = answer.call
        kept = await self.store.stops.stop(call.seq, call.session_key, reply, await answer.chosen(), ending)
        self.requests.hurry()  # requests of the stopped turns are closed
        return kept


def done_before(stopped: Stopped, by_owner: bool) -> str:
    """Return the sentence that names the calls that stopped runs had finished; empty if there were none."""
    calls = dict.fromkeys(wording.call(name, args if by_owner else "") for name, args in stopped.done)
    named = [one.removeprefix("🔧 ") for one in calls]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"Done before: {', '.join(named[:_NAMED])}{more}." if named else ""
