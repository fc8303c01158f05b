"""Carries commands out: effect and reply in one transaction, then the signals that hurry what was decided."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from agent.tools.background import Background
from agent.tools.base import Verdict
from bot import wording
from bot.approvals import words
from bot.clock import Clock
from bot.commands.registry import AskAgain, Call, Decide, Effect, Registry, Say
from bot.outbox import Outbox
from bot.persistence.errors import once_available
from bot.persistence.turns import CommandKept, Stopped
from bot.runs.lanes import Lanes
from bot.speech import spoken
from bot.store.store import Store
from channels.message import InboundKind, InboundMessage
from channels.outgoing import Action, Button, Planned
from channels.session_key import threads_of
from channels.sources import Source, sentence

log = structlog.get_logger()

_PAUSE = 1.0


@dataclass(eq=False)
class CommandRunner:
    """Runs accepted commands, each in a task of its own.

    is_owner: whether a message is by an owner of the bot. decided: told of a request that was settled. background: what
    /stop ends besides.
    """

    store: Store
    outbox: Outbox
    lanes: Lanes
    clock: Clock
    registry: Registry
    is_owner: Callable[[InboundMessage], bool]
    decided: Callable[[Verdict], Awaitable[None]]
    background: Background
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set, init=False)

    def begin(self, seq: int, session_key: str, message: InboundMessage) -> None:
        """Carry a command out soon; one that cannot be written now is tried until it can."""
        call = Call(seq, session_key, message, self.is_owner(message))
        task = asyncio.create_task(self._carry_out(call), name=f"command-{seq}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def recover(self) -> None:
        """Carry out what was accepted before the service ended, in order."""
        for seq, session_key, message in await self.store.inbox.open_commands():
            await self._carry_out(Call(seq, session_key, message, self.is_owner(message)))

    async def drain(self, seconds: float) -> None:
        """Wait for commands under way; those that take longer are carried out at the next start."""
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _carry_out(self, call: Call) -> None:
        """Once; where it fails by a fault of ours, that is said instead."""
        for effect in (self.registry.effect, _apologise):
            try:
                keep = partial(self._keep, call, effect)
                self._follow(call, await once_available(keep, lambda _: self.clock.sleep(_PAUSE)))
                return
            except Exception:
                log.exception("command failed", seq=call.seq)

    async def _keep(self, call: Call, find: Callable[[Call], Awaitable[Effect]]) -> CommandKept:
        """Effect, reply and the end of the command in one transaction."""
        commands = self.store.commands
        if call.is_words and find is not _apologise:
            message = replace(call.message, kind=InboundKind.MESSAGE)
            return await commands.take_up(call.seq, message, await self._chosen(call))
        effect = await find(call)
        if isinstance(effect, Say):
            chosen = () if effect.mistake else await self._chosen(call)
            blocks = self._blocks(call, effect.text, effect.choices, private=effect.mistake, source=effect.source)
            if effect.change is not None:
                return await commands.set(call.seq, call.session_key, effect.change, blocks)
            return await commands.answer(call.seq, blocks, chosen)
        if isinstance(effect, Decide):
            return await self._decide(call, effect)
        if isinstance(effect, AskAgain):
            message = replace(call.message, kind=InboundKind.MESSAGE, text=effect.said)
            return await commands.take_up(call.seq, message, effect.edits, effect.approval_id)
        text, chosen = effect.text, await self._chosen(call)

        def reply(stopped: Stopped) -> tuple[Planned, ...]:
            return self._blocks(call, text(stopped.running or goes_on, stopped.dropped))

        # typed where it runs in threads, in which it cannot be typed
        below = threads_of(call.session_key) if self._apart(call) and not effect.renew else ""
        goes_on = self.background.stop(call.session_key, below)
        renew = self.clock.new_id() if effect.renew else ""
        kept = await commands.stop(call.seq, call.session_key, reply, chosen, renew, below)
        await self.decided("expired")  # what was asked of people for it is not open any more
        return kept

    async def _decide(self, call: Call, effect: Decide) -> CommandKept:
        """The messages that show the request follow by themselves."""
        origin = call.message.origin
        kept = await self.store.commands.decide(
            call.seq,
            effect.approval_id,
            effect.verdict,
            f"{origin.place.channel}:{origin.sender} {origin.sender_name}".strip(),
            effect.reason,
            lambda won: self._blocks(call, effect.text(won)),
            effect.passed_on,
        )
        if kept.resumed is not None:
            await self.decided(effect.verdict)
        return kept

    def _blocks(
        self,
        call: Call,
        text: str,
        choices: tuple[Button, ...] = (),
        *,
        private: bool = False,
        source: Source | None = None,
    ) -> tuple[Planned, ...]:
        """private: to a press of a button, too, only who pressed it is answered, where the platform can."""
        if not text:
            return ()
        blocks = self.outbox.notice(
            source or sentence("cmd", call.seq), text, call.message.origin.place.channel, choices
        )
        if call.message.respond and (private or call.message.kind is InboundKind.COMMAND):
            alone = len(blocks) if self._apart(call) else 1
            blocks = (*(replace(one, respond=call.message.respond) for one in blocks[:alone]), *blocks[alone:])
        return blocks

    def _apart(self, call: Call) -> bool:
        """Whether native commands are apart from what is said there."""
        channel = self.outbox.channel(call.message.origin.place.channel)
        return channel is not None and channel.capabilities.commands_apart

    async def _chosen(self, call: Call) -> tuple[Planned, ...]:
        """Of a button: the edit that puts the choice in the place of the buttons; whoever presses first makes it."""
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
        """Stop what was stopped, then send the reply: in this order, so that it is the last word."""
        at_work = {key for key in kept.stopped.sessions if self.lanes.handle(key)}
        self.lanes.stop(kept.stopped.turns)
        if kept.resumed is not None:
            self.lanes.wake(kept.resumed[0], background=kept.resumed[1])
        for session_key in {*kept.stopped.sessions} - at_work:  # it was parked, others may have come behind it
            self.lanes.wake(session_key)
        self.outbox.send(kept.deliveries)


async def _apologise(call: Call) -> Effect:
    return Say(wording.INTERNAL_ERROR)
