"""Who gets in: a pure decision about one message. Strangers reach no model and no tool.

Ids decide, never names. Owners get in wherever the bot is at all: in direct messages that are not disabled, and in the
groups of the configuration, whatever people those list. A group that is not there stays shut for them, too: who else
reads along, and writes, is up to whoever runs the group.
"""

from bot.persistence.causes import Cause
from channels.message import ChatKind, InboundKind, InboundMessage, Origin
from channels.settings import AccountSection, Group

# Places whose callers the gateway has let in already.
LOCAL = (ChatKind.CONSOLE, ChatKind.API)
# Senders of what comes over HTTP, stored with each message: by the token or the Unix socket, and without.
OWNER, PERSON = "owner", "person"
_ASKS = (InboundKind.MESSAGE, InboundKind.COMMAND, InboundKind.EDIT, InboundKind.DELETE)

# Messages to others that one turn of somebody who is no owner may send: enough to ask a few people for something, too
# few to pester them in the name of the bot.
FOR_GUESTS = 3


def is_trusted(message: InboundMessage) -> bool:
    """Whether somebody vouches for the sender: a channel's rules, a token, or the permissions of a socket."""
    origin = message.origin
    return origin.place.kind is not ChatKind.API or origin.sender == OWNER


def refusal(
    message: InboundMessage, account: AccountSection | None, group: Group | None, *, is_owner: bool, is_paired: bool
) -> Cause | None:
    """Why a message is dropped or held, None when it is let in.

    account: the one it came to, None for one that is not configured. group: what holds where it was said, None in
    direct messages and where the bot is not to answer. is_owner, is_paired: the sender, see `People`.
    """
    origin = message.origin
    if origin.place.kind in LOCAL:
        return None
    if account is None:
        return Cause.ACCESS
    if origin.by_bot and not account.allow_bots:
        return Cause.BOT
    if message.kind is InboundKind.DELETE and not origin.sender:  # who may delete is the platform's matter
        return None
    if origin.place.kind is not ChatKind.DIRECT:
        if group is None:
            return Cause.GROUP
        return None if _listed(origin, group) or is_owner else Cause.MEMBER
    policy = account.dm.policy
    if policy == "disabled":
        return Cause.ACCESS
    if policy == "open" or origin.sender in account.dm.allow_from or is_owner:
        return None
    if policy != "pairing" or not origin.sender or origin.by_bot:
        return Cause.ACCESS
    if is_paired:
        return None
    return Cause.PAIRING if message.kind in _ASKS else Cause.ACCESS


def _listed(origin: Origin, group: Group) -> bool:
    """Whether somebody is among those who are answered in a group: everybody, where it lists nobody."""
    if group.users is None and group.roles is None:
        return True
    return origin.sender in (group.users or ()) or not set(origin.roles).isdisjoint(group.roles or ())
