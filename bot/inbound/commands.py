"""Runs commands: finds out what they do, has the effect and the answer written, then sends the answer.

The effect, the answer and the end of a command are one transaction of the store, so that it happens once. What an
effect does is in the module of its feature.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from bot import wording
from bot.approvals import words
from bot.approvals.commands import LATE, ApprovalCommands, AskAgain, Decide
from bot.clock import Clock
from bot.commands.registry import Call, Effect, Registry, Say
from bot.outbox import Outbox
from bot.persistence.turns import CommandKept
from bot.runs.lanes import Lanes
from bot.runs.model_commands import Ask
from bot.runs.settings_commands import ChangeSetting
from bot.runs.stop_commands import Stop, StopCommands
from bot.speech import spoken
from bot.store.store import Store
from bot.store.writer import once_available
from channels.message import InboundKind, InboundMessage
from channels.outgoing import Action, Button, Planned
from channels.sources import Source, sentence

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
    # Whether a message is by an owner of the bot.
    is_owner: Callable[[InboundMessage], bool]
    approvals: ApprovalCommands
    stops: StopCommands
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set, init=False)

    def begin(self, seq: int, session_key: str, message: InboundMessage) -> None:
        """Start to carry a command out. While the store cannot be written it is tried again."""
        call = Call(seq, session_key, message, self.is_owner(message))
        task = asyncio.create_task(self._carry_out(call), name=f"command-{seq}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def recover(self) -> None:
        """Carry out the commands that were accepted before the service ended, in their order."""
        for seq, session_key, message in await self.store.inbox.open_commands():
            await self._carry_out(Call(seq, session_key, message, self.is_owner(message)))

    async def drain(self, seconds: float) -> None:
        """Wait so long for the commands under way; the rest are cancelled and carried out at the next start."""
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _carry_out(self, call: Call) -> None:
        """Carry a command out; where that fails by a fault of the service, an apology is the answer instead."""
        found = self.registry.effect if call.message.decides is None else self.approvals.of_words
        for effect in (found, _apologise):
            try:
                keep = partial(self._keep, call, effect)
                self._follow(call, await once_available(keep, lambda _: self.clock.sleep(_PAUSE)))
                return
            except Exception:
                log.exception("command failed", seq=call.seq)

    async def _keep(self, call: Call, find: Callable[[Call], Awaitable[Effect]]) -> CommandKept:
        """Have the effect of a command, the answer and its end written. find: returns the effect."""
        commands = self.store.commands
        if call.is_words and find is not _apologise:
            message = replace(call.message, kind=InboundKind.MESSAGE)
            return await commands.take_up(call.seq, message, await self._chosen(call))
        blocks = partial(self._blocks, call)
        match await find(call):
            case Say() as said:
                chosen = () if said.mistake else await self._chosen(call)
                answer = blocks(said.text, said.choices, private=said.mistake, source=said.source)
                return await commands.answer(call.seq, answer, chosen)
            case ChangeSetting() as setting:
                answer = blocks(setting.text)
                return await self.store.settings.change(call.seq, call.session_key, setting.change, answer)
            case Ask(message=message):
                return await commands.take_up(call.seq, message, ())
            case Decide() as decided:
                kept = await self.approvals.decide(call, decided, blocks(decided.text))
                return kept or await commands.answer(call.seq, blocks(LATE))
            case AskAgain() as again:
                return await self.approvals.ask_again(call, again)
            case Stop() as stop:
                chosen, apart = await self._chosen(call), self._apart(call)
                return await self.stops.carry_out(call, stop, blocks, chosen, apart=apart)
            case other:
                raise TypeError(f"{type(other).__name__} is not carried out here")

    def _blocks(
        self,
        call: Call,
        text: str,
        choices: tuple[Button, ...] = (),
        *,
        private: bool = False,
        source: Source | None = None,
    ) -> tuple[Planned, ...]:
        """Make the deliveries of an answer; none for an empty text.

        A native command is answered to its sender alone where the platform can do that. private: so is the press of a
        button. choices, source: see `Say`.
        """
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


async def _apologise(call: Call) -> Effect:
    return Say(wording.INTERNAL_ERROR)
