"""The commands /pairing and /people, with which owners say who may write to the bot."""

from typing import Literal

from pydantic import Field

from bot import wording
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.inbound.pairing import NotChanged, Pairing
from bot.persistence.people import Standing


class PairingArguments(Arguments):
    """The arguments of /pairing."""

    action: Literal["list", "approve", "deny"] = Field(description="list, approve or deny.")
    code: str = Field(default="", description="The code that somebody was given.")


class PeopleArguments(Arguments):
    """The arguments of /people."""

    action: Literal["list", "revoke", "block", "owner"] = Field(
        default="list", description="list; revoke what was said of somebody, block them, make them an owner."
    )
    who: str = Field(default="", description="Who, as channel:id.")


def build(pairing: Pairing) -> tuple[Command, ...]:
    """Make the commands."""

    async def pair(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, PairingArguments)
        if arguments.action == "list":
            waiting = [f"- {wording.stranger(one)}" for one in await pairing.pending()]
            return Say("\n".join(waiting) or wording.NOBODY_WAITS)
        standing: Standing = "allowed" if arguments.action == "approve" else "blocked"
        return Say(wording.settled(await pairing.settle(arguments.code, standing, _sender(call))))

    async def people(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, PeopleArguments)
        if arguments.action == "list":
            known = [f"- {wording.person(one, pairing.clock.stamp)}" for one in await pairing.everybody()]
            return Say("\n".join(known) or wording.NOBODY_LET_IN)
        try:
            return Say(await pairing.stand(arguments.who, arguments.action, _sender(call)))
        except NotChanged as error:
            return Say(str(error))

    asks = "Who asks to write to me, and the codes that they were given."
    known = "Who may write to me and who may not, and what is to change: revoke, block or owner, and who."
    return (
        Command(name="pairing", help=asks, run=pair, arguments=PairingArguments, owner_only=True),
        Command(name="people", help=known, run=people, arguments=PeopleArguments, owner_only=True),
    )


def _sender(call: Call) -> str:
    """Return who gives a command, as "channel:id"."""
    origin = call.message.origin
    return f"{origin.place.channel}:{origin.sender}"
