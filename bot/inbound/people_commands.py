"""The commands /pairing, /people and /allowlist, with which owners say who may write to the bot, and /whoami."""

from typing import Literal

from pydantic import Field

from bot import wording
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.inbound.pairing import NotChanged, Order, Pairing
from bot.people.people import People
from bot.persistence.people import Standing

_NOBODY_LISTED = "Nobody is on the list: owners alone may write to me. `/allowlist add channel:id` lets somebody in."


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


class AllowlistArguments(Arguments):
    """The arguments of /allowlist."""

    action: Literal["list", "add", "remove"] = Field(default="list", description="list, add or remove.")
    who: str = Field(default="", description="Who, as channel:id.")


def whoami(people: People) -> Command:
    """Make the command /whoami."""

    async def run(call: Call, _: Arguments) -> Effect:
        message, asker = call.message, call.asker
        standing = "an owner of this bot" if asker.is_owner else "a guest"
        if not asker.is_owner and people.let_in_by(message.origin):
            standing = "a guest, let in by an owner"
        may_decide = ", and may decide what I ask for" if asker.is_approver else ""
        who = f"`{_sender(call)}`, {standing}{may_decide}"
        return Say(f"You are {who}. This is the session `{call.session_key}`.")

    return Command(name="whoami", help="Who you are to me.", run=run, lenient=True, guests="everywhere")


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

    async def allowlist(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, AllowlistArguments)
        if arguments.action == "list":
            let_in = [one for one in await pairing.everybody() if one.standing == "allowed"]
            return Say("\n".join(f"- {wording.person(one, pairing.clock.stamp)}" for one in let_in) or _NOBODY_LISTED)
        order: Order = "allow" if arguments.action == "add" else "revoke"
        try:
            return Say(await pairing.stand(arguments.who, order, _sender(call)))
        except NotChanged as error:
            return Say(str(error))

    asks = "Who asks to write to me, and the codes that they were given."
    listed = "Who may write to me directly without being an owner: list, add or remove, and who."
    known = "Who may write to me and who may not, and what is to change: revoke, block or owner, and who."
    return (
        Command(name="pairing", help=asks, run=pair, arguments=PairingArguments, decides=True),
        Command(name="people", help=known, run=people, arguments=PeopleArguments, decides=True),
        Command(name="allowlist", help=listed, run=allowlist, arguments=AllowlistArguments, decides=True),
    )


def _sender(call: Call) -> str:
    """Return who gives a command, as "channel:id"."""
    origin = call.message.origin
    return f"{origin.place.channel}:{origin.sender}"
