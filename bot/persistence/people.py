"""What the store knows of people: who was let in or shut out, and who waits for that."""

from dataclasses import dataclass
from typing import Literal

from channels.message import InboundMessage
from channels.outgoing import Delivery

Standing = Literal["pending", "allowed", "owner", "blocked"]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has asked to write to an account, or of whom an owner has said something."""

    channel: str
    # Empty for all accounts of the channel, which an owner speaks of.
    account: str
    sender: str
    standing: Standing
    # As the platform shows it, never compared.
    name: str = ""
    # When the code of somebody pending expires, in milliseconds.
    until: int = 0
    # When they became what they are, in milliseconds, and who made them that, as "channel:id"; 0 and empty where that
    # is not recorded.
    since: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a code or an order of an owner did."""

    person: Person
    # Nothing, because the code had been used or was too old.
    used: bool = False
    # What they had written, now accepted: seq, session key, message.
    waiting: tuple[tuple[int, str, InboundMessage], ...] = ()
    # What is to be delivered.
    said: tuple[Delivery, ...] = ()
    # Turns of theirs that had begun or were asked for; what is left of one goes on with the rights that they have now.
    turns: tuple[str, ...] = ()
    # How many messages of theirs are not answered any more.
    dropped: int = 0
    # In which they wrote directly.
    sessions: tuple[str, ...] = ()
