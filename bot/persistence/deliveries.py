"""What the ledger of deliveries is given to keep, and what it answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.persistence.causes import Cause
from channels.message import Place
from channels.outgoing import DeliveryState, Planned

# Makes what a conversation is told of messages that did not arrive there, or may not have. It is given the moment
# (milliseconds) from which on they are missed. None: nothing is told.
Missed = Callable[[int], Sequence[Planned]] | None


@dataclass(frozen=True, slots=True)
class PlanIn:
    """Into which conversation blocks are planned, and how the first begins.

    In a conversation of kind `api` or `console` every block counts as sent: programs and terminals read the store.
    """

    conv_id: int
    # The conversation is idle and its rate limit was passed, so the first may be sent as soon as it is stored.
    sending: bool = False


@dataclass(frozen=True, slots=True)
class OwnerNotice:
    """Something an owner is to be told: where they wrote last, else at `otherwise`."""

    # Channel and id of each.
    owners: Sequence[tuple[str, str]]
    otherwise: Place
    # Makes the deliveries for a place; their source is the notice's own.
    blocks: Callable[[Place], Sequence[Planned]]
    # It is said at `otherwise` in any case.
    both: bool = False


@dataclass(frozen=True, slots=True)
class LostDelivery:
    """What did not arrive, or may not have: it failed, or is uncertain, or expired."""

    state: DeliveryState
    channel: str
    chat: str
    # What the platform or the connection said, empty where nothing did; why it was given up, None where it was not.
    error: str
    cause: Cause | None
    # When that was known, in milliseconds.
    at: int


# What has become of a message. planned: it will be sent, also after a crash, or is being sent.
Delivered = Literal["planned", "sent", "not sent", "unknown"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What has become of a message of a call."""

    state: Delivered
    # Of the platform, one per piece.
    ids: tuple[str, ...] = ()
    # Why it was not sent, where that is told.
    reason: str = ""
    # More will become of it.
    open: bool = False
