"""Who gets in: a pure decision about one message. Strangers reach no model and no tool, and are told nothing."""

from collections.abc import Collection

from channels.message import ChatKind, InboundMessage
from channels.settings import DirectMessages

LOCAL = (ChatKind.CONSOLE, ChatKind.API)
"""Places whose callers the gateway has let in already."""
OWNER, PERSON = "owner", "person"
"""Senders of what comes over HTTP, stored with each message: by the token or the Unix socket, and without."""


def is_trusted(message: InboundMessage) -> bool:
    """Whether somebody vouches for the sender: a channel's rules, a token, or the permissions of a socket."""
    origin = message.origin
    return origin.place.kind is not ChatKind.API or origin.sender == OWNER


def is_owner(owners: Collection[str], message: InboundMessage) -> bool:
    """Whether a message is by an owner: one of the list, or whoever has the terminal, the socket or the token."""
    origin = message.origin
    if origin.place.kind in LOCAL:
        return is_trusted(message)
    return f"{origin.place.channel}:{origin.sender}" in owners


def refusal(message: InboundMessage, direct: DirectMessages | None, owners: Collection[str]) -> str | None:
    """Why a message is dropped, None when it is let in.

    direct: of the account it came to, None for one that is not configured. owners: always get in.
    """
    place = message.origin.place
    if place.kind in LOCAL:
        return None
    if place.kind is not ChatKind.DIRECT:
        return "groups"
    if direct is None:
        return "access"
    if direct.policy == "open" or is_owner(owners, message) or message.origin.sender in direct.allow_from:
        return None
    return "access"
