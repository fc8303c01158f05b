"""Runs commands: finds out what they do, has the effect and the answer written, then sends the answer.

The effect, the answer and the end of a command are one transaction of the store, so that it happens once. What an
effect does is in the module of its feature.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from agent.hooks import NO_HOOKS, Hooks
from bot import wording
from bot.approvals import words
from bot.approvals.commands import ApprovalCommands
from bot.clock import Clock
from bot.commands.registry import Answer, Askers, Call, Effect, Registry, Say, TakeUp
from bot.hooks.points import Command as GivenCommand
from bot.outbox import Outbox
from bot.persistence.turns import CommandKept
from bot.runs.lanes import Lanes
from bot.speech import spoken
from bot.store.store import Store
from bot.store.writer import once_available
from channels.message import InboundKind, InboundMessage
from channels.outgoing import Action, Planned
from channels.sources import sentence

log = structlog.get_logger()

# Seconds between tries while the store cannot be written.
_PAUSE = 1.0


@dataclass(eq=False)
class CommandRunner:
    """Runs accepted commands, each in a task of its own."""

    store: Store
    outbox: Outbox
    lanes: Lanes
    clock: Clock
    registry: Registry
    askers: Askers
    approvals: ApprovalCommands
    hooks: Hooks = NO_HOOKS
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set, init=False)

    def begin(self, seq: int, session_key: str, message: InboundMessage) -> None:
        """Start to carry a command out. While the store cannot be written it is tried again."""
        call = Call(seq, session_key, message, self.askers.of(message))
        task = asyncio.create_task(self._carry_out(call, to_the_end=True), name=f"command-{seq}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def recover(self) -> None:
        """Carry out the commands that were accepted before the service ended, in their order."""
        for seq, session_key, message in await self.store.inbox.open_commands():
            await self._carry_out(Call(seq, session_key, message, self.askers.of(message)))

    async def drain(self, seconds: float) -> None:
        """Wait so long for the commands under way; the rest are cancelled and carried out at the next start."""
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _carry_out(self, call: Call, *, to_the_end: bool = False) -> None:
        """Carry a command out; where that fails by a fault of the service, an apology is the answer instead.

        to_the_end: also do what is left to do behind its answer.
        """
        for effect in (self._effect, _apologise):
            try:
                keep = partial(self._keep, call, effect)
                kept = await once_available(keep, lambda _: self.clock.sleep(_PAUSE))
                self._follow(call, kept)
                if GivenCommand.point in self.hooks.points and not call.is_words:
                    self.hooks.tell(_given(call))
                if to_the_end and kept.afterwards is not None:
                    await kept.afterwards()
                return
            except Exception:
                log.exception("command failed", seq=call.seq)

    async def _effect(self, call: Call) -> Effect:
        """Return what a command does: what its words name, decide about a request, or say as the press of a button."""
        if call.is_words:
            return TakeUp(replace(call.message, kind=InboundKind.MESSAGE))
        return await (self.registry.effect if call.message.decides is None else self.approvals.of_words)(call)

    async def _keep(self, call: Call, find: Callable[[Call], Awaitable[Effect]]) -> CommandKept:
        """Have the effect of a command, the answer and its end written. find: returns the effect."""
        answer = Answer(
            call=call,
            chosen=partial(self._chosen, call),
            apart=self._apart(call),
            notice=self.outbox.notice,
            say=self.store.commands.answer,
            take_up=self.store.commands.take_up,
        )
        return await (await find(call)).persist(answer)

    def _apart(self, call: Call) -> bool:
        """Whether the platform keeps native commands apart from what is said, so that they do not reach threads."""
        channel = self.outbox.channel(call.message.origin.place.channel)
        return channel is not None and channel.capabilities.commands_apart

    async def _chosen(self, call: Call) -> tuple[Planned, ...]:
        """Return the edit that puts what was pressed in the place of the buttons; empty if no button was pressed.

        Its source is the same for all who press, so only the first of them can have it planned.
        """
        message = call.message
        if message.kind is not InboundKind.BUTTON:
            return ()
        place = message.origin.place
        offer = await self.store.reads.offer(place, message.reply_to)
        if offer is None:
            return ()
        label = next((button.label for button in offer.buttons if button.sends == message.text), "")
        if not label:  # no button of it says that: the program of who pressed has made it up
            return ()
        label = words.prose(message.text) if call.is_words else label
        text = f"{offer.said}\n\n{spoken(f'✓ **{label}**')}"
        edit = self.outbox.notice(sentence("chosen", offer.delivery_id), text, place.channel)[:1]
        return tuple(replace(one, action=Action.EDIT, target=message.reply_to, said="") for one in edit)

    def _follow(self, call: Call, kept: CommandKept) -> None:
        """Cancel the runs that were stopped, wake the sessions that go on, then send the answer.

        They are in this order so that the answer is the last that is said.
        """
        at_work = {key for key in kept.stopped.sessions if self.lanes.handle(key)}
        self.lanes.stop(kept.stopped.turns)
        if kept.resumed is not None:
            self.lanes.wake(kept.resumed[0], background=kept.resumed[1])
        for session_key in {*kept.stopped.sessions} - at_work:  # it was parked, others may have come behind it
            self.lanes.wake(session_key)
        self.outbox.send(kept.deliveries)


def _given(call: Call) -> GivenCommand:
    """Return what hooks are told of a command."""
    origin, text = call.message.origin, call.message.text
    name = text.partition(" ")[0].removeprefix("/").partition("@")[0].lower()
    channel = origin.place.channel
    return GivenCommand(session_key=call.session_key, channel=channel, sender=origin.sender, name=name, text=text)


async def _apologise(call: Call) -> Effect:
    return Say(wording.INTERNAL_ERROR)
