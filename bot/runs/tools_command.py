"""/tools: what the model can use where it is asked, for whoever asks, and why not the rest."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from agent.events import RunRef
from agent.message import Usage
from agent.tools.policy import matches
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.persistence.values import Turn, TurnKind
from bot.runs.specs import Specs
from channels.message import Place
from channels.outgoing import Planned


def build(specs: Specs) -> Command:
    """The command. specs: what makes the tools of turns, so that both say the same."""

    async def show(call: Call, _: Arguments) -> Effect:
        async with AsyncExitStack() as made:
            offer = await specs.offer(_turn(call), specs.rooms.inside(call.session_key), made, _send)
            lines = []
            for tool in offer.tools:
                asked = matches(tool.name, specs.permissions.tools.require_approval)
                if tool.name not in offer.refused:
                    lines.append(f"- {tool.name}{', each time with the consent of a person' if asked else ''}")
            lines += [f"- {name}: {why}" for name, why in offer.refused.items()]
        return Say("\n".join(lines))

    return Command(name="tools", help="What I can use here, and why not the rest.", run=show)


def _turn(call: Call) -> Turn:
    """The turn that the message would cause if it were none."""
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


async def _send(place: Place, blocks: Sequence[Planned], session_key: str, most: int) -> bool:
    """No tool is run."""
    return False
