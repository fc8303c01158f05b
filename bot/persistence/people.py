"""Values of the store about people: who is let in or blocked, and who waits for a decision."""

from dataclasses import dataclass
from typing import Literal

from channels.message import InboundMessage
from channels.outgoing import Delivery

Standing = Literal["pending", "allowed", "owner", "blocked"]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has written to an account, or whose standing an owner has set."""

    channel: str
    # Empty if the standing holds for all accounts of the channel, because an owner has ordered it.
    account: str
    sender: str
    standing: Standing
    # The name that the platform shows. It is never compared.
    name: str = ""
    # When the code of a pending person expires, in milliseconds.
    until: int = 0
    # When the standing was set, in milliseconds, and by whom, as "channel:id"; 0 and empty if that is not recorded.
    since: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a code or a command of an owner has changed."""

    person: Person
    # The code had been used or had expired, so nothing was changed.
    used: bool = False
    # The held messages of the person that were accepted: seq, session key, message.
    waiting: tuple[tuple[int, str, InboundMessage], ...] = ()
    # The deliveries that were planned.
    said: tuple[Delivery, ...] = ()
    # Open turns that answer messages of the person. Those that go on have the rights that the person has after this.
    turns: tuple[str, ...] = ()
    # How many messages of the person were dropped.
    dropped: int = 0
    # The sessions of their direct messages.
    sessions: tuple[str, ...] = ()
