"""Decides whether the bot accepts a message, by its sender and conversation. Strangers reach no model and no tool.

People are recognised by their ids, never by their names. Owners are let in to all direct messages that are not disabled
and to all groups of the configuration, whichever people a group lists. A group that the configuration does not name is
closed to owners as well, because whoever runs the group decides who reads and writes there.
"""

from typing import Literal

from bot.persistence.causes import Cause
from channels.message import ChatKind, InboundKind, InboundMessage, Origin
from channels.settings import AccountSection, Group

# How somebody was let in who is no owner: by a code, by the order of an owner, or not at all.
LetInBy = Literal["", "code", "order"]
# Kinds of chats whose callers the gateway has already let in.
LOCAL = (ChatKind.CONSOLE, ChatKind.API)
# Senders of messages over HTTP, persisted with each message: OWNER came with the token or over the Unix socket.
OWNER, PERSON = "owner", "person"
_ASKS = (InboundKind.MESSAGE, InboundKind.COMMAND, InboundKind.EDIT, InboundKind.DELETE)

# How many messages to others a turn may send for somebody who is no owner: enough to ask a few people for something,
# too few to pester people in the name of the bot.
FOR_GUESTS = 3


def is_trusted(message: InboundMessage) -> bool:
    """Return whether a channel's rules, the token or the permissions of the socket vouch for the sender."""
    origin = message.origin
    return origin.place.kind is not ChatKind.API or origin.sender == OWNER


def refusal(
    message: InboundMessage,
    account: AccountSection | None,
    group: Group | None,
    *,
    is_owner: bool,
    let_in_by: LetInBy,
) -> Cause | None:
    """Return why a message is dropped or held; None: the message is let in.

    account: the section of the account that the message came to; None: the account is not configured. group: the
    settings of the group; None in direct messages, and in groups where the bot must not answer. is_owner, let_in_by:
    what `People` says about the sender.
    """
    origin = message.origin
    if origin.place.kind in LOCAL:
        return None
    if account is None:
        return Cause.ACCESS
    if origin.by_bot and not account.allow_bots:
        return Cause.BOT
    if message.kind is InboundKind.DELETE and not origin.sender:  # the platform decides who may delete
        return None
    if origin.place.kind is not ChatKind.DIRECT:
        if group is None:
            return Cause.GROUP
        return None if _listed(origin, group) or is_owner else Cause.MEMBER
    policy = account.dm.policy
    if policy == "disabled":
        return Cause.ACCESS
    if policy == "open" or origin.sender in account.dm.allow_from or is_owner or let_in_by == "order":
        return None
    if policy != "pairing" or not origin.sender or origin.by_bot:
        return Cause.ACCESS
    if let_in_by == "code":
        return None
    return Cause.PAIRING if message.kind in _ASKS else Cause.ACCESS


def _listed(origin: Origin, group: Group) -> bool:
    """Return whether the bot answers the sender in a group; a group that lists no users and roles is for everybody."""
    if group.users is None and group.roles is None:
        return True
    return origin.sender in (group.users or ()) or not set(origin.roles).isdisjoint(group.roles or ())
