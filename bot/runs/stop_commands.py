"""The commands /stop, /new and /reset, which end the run of a session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.tools.background import Background
from bot import wording
from bot.approvals.requests import Requests
from bot.clock import Clock
from bot.commands.registry import Arguments, Call, Command, Effect
from bot.persistence.turns import CommandKept, Stopped
from bot.store.store import Store
from channels.outgoing import Planned
from channels.session_key import threads_of


@dataclass(frozen=True, slots=True)
class Stop(Effect):
    """Ends the run of the session and its commands in the background, and drops the messages that wait."""

    # Whether the session goes on with a new, empty transcript.
    renew: bool = False


@dataclass(eq=False)
class StopCommands:
    """Makes the commands, and carries `Stop` out."""

    store: Store
    clock: Clock
    # The commands that tools have started in the background.
    background: Background
    requests: Requests

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""

        async def stop(call: Call, _: Arguments) -> Effect:
            return Stop()

        async def reset(call: Call, _: Arguments) -> Effect:
            return Stop(renew=True)

        stops, begins = "Stop the run, and drop what waits.", "Begin a new conversation; the old one is kept."
        return (
            Command(name="stop", help=stops, run=stop, aliases=("abort",), lenient=True),
            Command(name="new", help=begins, run=reset),
            Command(name="reset", help="The same as /new.", run=reset),
        )

    async def carry_out(
        self,
        call: Call,
        effect: Stop,
        blocks: Callable[[str], Sequence[Planned]],
        chosen: Sequence[Planned],
        *,
        apart: bool,
    ) -> CommandKept:
        """Persist a stop and end the commands in the background; the caller cancels the runs afterwards.

        blocks: makes the deliveries of the answer from its text. chosen: see `Commands` of the store. apart: whether
        commands cannot be typed in threads of the platform, so that /stop in a chat also stops its threads. Raises
        StoreUnavailable.
        """
        words = wording.fresh_start if effect.renew else wording.stopped
        below = threads_of(call.session_key) if apart and not effect.renew else ""
        goes_on = self.background.stop(call.session_key, below)

        def reply(stopped: Stopped) -> Sequence[Planned]:
            return blocks(words(stopped.running or goes_on, stopped.dropped))

        renew = self.clock.new_id() if effect.renew else ""
        kept = await self.store.stops.stop(call.seq, call.session_key, reply, chosen, renew, below)
        self.requests.hurry()  # requests of the stopped turns are closed
        return kept
