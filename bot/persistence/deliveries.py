"""Values that the ledger of deliveries takes and returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.message import Provenance
from bot.persistence.causes import Cause
from channels.message import Place
from channels.outgoing import DeliveryState, Planned

# Makes the notice to a conversation about messages that did not arrive there, or may not have. Takes the time of the
# first such message, in milliseconds. None: no notice is sent.
Missed = Callable[[int], Sequence[Planned]] | None


@dataclass(frozen=True, slots=True)
class PlanIn:
    """The conversation in which blocks are planned.

    If its kind is `api` or `console`, every block counts as sent: programs and terminals read the store.
    """

    conv_id: int
    # The conversation is idle and its rate limit was passed: the first block is stored as `sending`.
    sending: bool = False


@dataclass(frozen=True, slots=True)
class ToldOf:
    """The session whose next turn is told of a message that is not of its own (empty: none), and of what it is made."""

    session_key: str
    origins: tuple[Provenance, ...]


@dataclass(frozen=True, slots=True)
class OwnerNotice:
    """A notice to the owner who wrote last, sent where that owner wrote; if none has written, to `otherwise`."""

    # Channel and sender id of each owner.
    owners: Sequence[tuple[str, str]]
    otherwise: Place
    # Makes the blocks for a place. Their source is the same at every place.
    blocks: Callable[[Place], Sequence[Planned]]
    # The notice is sent to `otherwise` as well.
    both: bool = False


@dataclass(frozen=True, slots=True)
class LostDelivery:
    """A message that did not arrive, or may not have: the delivery failed, expired or is uncertain."""

    state: DeliveryState
    channel: str
    chat: str
    # The error of the platform or the connection, or empty; and the rule by which it was given up, if it was.
    error: str
    cause: Cause | None
    # When the delivery was settled, in milliseconds.
    at: int


# The state of a message in all its pieces. planned: it is being sent or will be, after a crash as well.
Delivered = Literal["planned", "sent", "not sent", "unknown"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What has become of a message that a tool call has sent."""

    state: Delivered
    # The ids of the sent pieces on the platform.
    ids: tuple[str, ...] = ()
    # Why it was not sent, or empty.
    reason: str = ""
    # The state may still change.
    open: bool = False
