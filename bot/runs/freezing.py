"""Freezing: /freeze and /thaw, with which owners stop everything, or a part of it, until they let it go on.

The row is what holds (`bot/store/frozen.py`); what is done here besides only ends at once what runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import Field

from agent.tools.background import Background
from bot.commands.registry import Answer, Arguments, Call, Command, Effect
from bot.outbox import Outbox
from bot.persistence.freezes import Freeze, Thawed, What
from bot.persistence.turns import CommandKept
from bot.runs import freeze_words
from bot.runs.lanes import Lanes
from bot.store.freezes import By
from bot.store.store import Store
from channels.message import Origin


class FreezeArguments(Arguments):
    """The arguments of /freeze."""

    what: What = Field(default="all", description="all, tools, network or beats; without it all.")


@dataclass(frozen=True, slots=True)
class Freezer:
    """Freezes and thaws, for commands and for programs of owners. hurry: looks at once at what is due."""

    store: Store
    lanes: Lanes
    outbox: Outbox
    background: Background
    hurry: Callable[[], None]

    async def freeze(
        self, what: What, who: str, place: str, by: By[Sequence[Freeze]] | None = None
    ) -> tuple[Sequence[Freeze], CommandKept]:
        """See `Freezes.freeze`. With all, what runs is ended; its turns are queued. Raises StoreUnavailable."""
        frozen = await self.store.freezes.freeze(what, who, place, by)
        if what == "all":
            self.lanes.halt()
            self.background.stop("", "agent:")
        return frozen

    async def thaw(self, by: By[Thawed] | None = None) -> tuple[Thawed, CommandKept]:
        """See `Freezes.thaw`; all that waits is begun, in order. Raises StoreUnavailable."""
        thawed = await self.store.freezes.thaw(by)
        await self.lanes.go_on()
        await self.outbox.serve_open()
        self.hurry()
        return thawed

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""

        async def freeze(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, FreezeArguments)
            return _Freeze(self, arguments.what)

        async def thaw(call: Call, _: Arguments) -> Effect:
            return _Thaw(self)

        stops = "Stop everything, or only tools, the network or beats, until /thaw."
        return (
            Command(name="freeze", help=stops, run=freeze, arguments=FreezeArguments),
            Command(name="thaw", help="Let go on what was frozen.", run=thaw, decides=True),
        )


@dataclass(frozen=True, slots=True)
class _Freeze(Effect):
    freezer: Freezer
    what: What

    async def persist(self, answer: Answer) -> CommandKept:
        """Freeze it."""
        call, words = answer.call, freeze_words.begun
        by = (call.seq, lambda found: answer.blocks(words(self.what, found)))
        return (await self.freezer.freeze(self.what, *_where(call.message.origin), by))[1]


@dataclass(frozen=True, slots=True)
class _Thaw(Effect):
    freezer: Freezer

    async def persist(self, answer: Answer) -> CommandKept:
        """Thaw everything."""
        by = (answer.call.seq, lambda thawed: answer.blocks(freeze_words.thawed(thawed)))
        return (await self.freezer.thaw(by))[1]


def _where(origin: Origin) -> tuple[str, str]:
    """Return who has written something, and where, for people."""
    place, who = origin.place, f"{origin.place.channel}:{origin.sender}"
    return f"{origin.sender_name} ({who})" if origin.sender_name else who, f"{place.channel}:{place.chat}"
