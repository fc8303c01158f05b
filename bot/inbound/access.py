"""Who gets in: a pure decision about one message. Strangers reach no model and no tool, and are told nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from channels.message import ChatKind, InboundMessage


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Rules of one channel. allow_from: ids of senders; owners: ids that always get in."""

    policy: Literal["allowlist", "open"]
    allow_from: Collection[str]
    owners: Collection[str]


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


def refusal(message: InboundMessage, rules: AccessRules | None) -> str | None:
    """Why a message is dropped, None when it is let in. rules: None for a channel without any."""
    place = message.origin.place
    if place.kind in LOCAL:
        return None
    if place.kind is not ChatKind.DIRECT:
        return "groups"
    if rules is None:
        return "access"
    sender = message.origin.sender
    if rules.policy == "open" or sender in rules.owners or sender in rules.allow_from:
        return None
    return "access"
