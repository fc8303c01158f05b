"""The command /tools, which lists the tools that the model has for its sender in a conversation."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from agent.events import RunRef
from agent.message import Usage
from agent.tools.registry import matches
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.persistence.deliveries import ToldOf
from bot.persistence.turns import Turn, TurnKind
from bot.runs.rooms import Rooms
from bot.runs.specs import Toolbox
from channels.message import Place
from channels.outgoing import Planned


def build(toolbox: Toolbox, rooms: Rooms) -> Command:
    """Make the command. toolbox: has the tools of turns. rooms: the folders in which turns work."""

    async def show(call: Call, _: Arguments) -> Effect:
        async with AsyncExitStack() as made:
            offer, tools = await toolbox.open(turn_of(call), rooms.inside(call.session_key), made, unsent)
        lines = []
        for name in offer.names:
            asked = matches(name, toolbox.permissions.tools.require_approval, tools[name].group)
            if name not in offer.refused:
                lines.append(f"- {name}{', each time with the consent of a person' if asked else ''}")
        lines += [f"- {name}: {why}" for name, why in offer.refused.items()]
        return Say("\n".join(lines))

    return Command(name="tools", help="What I can use here, and why not the rest.", run=show, guests="everywhere")


def turn_of(call: Call) -> Turn:
    """Return the turn that the message would cause if it were no command."""
    return Turn(
        run=RunRef(run_id="", turn_id="", session_key=call.session_key, attempt=1),
        kind=TurnKind.REPLY,
        transcript_id="",
        messages=(call.message,),
        conv_id=0,
        place=call.message.origin.place,
        step=0,
        usage=Usage(),
        ran=0,
        entries=(),
        prompt=None,
        fingerprint=None,
        more=False,
    )


async def unsent(place: Place, blocks: Sequence[Planned], told: ToldOf, most: int) -> bool:
    """Plan nothing, because the command runs no tool."""
    return False
