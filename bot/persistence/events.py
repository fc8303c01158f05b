"""Kept agent events as their readers get them, and how much of everything a store holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PersistedAt:
    """That an agent event was kept, and where."""

    # Its position, which is never given to another one.
    seq: int
    session_key: str
    run_id: str
    # It is the last of its run.
    ended: bool


# Told of the events that a commit has kept, in order, before those who wrote them are answered.
Ring = Callable[[Sequence[PersistedAt]], None]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A kept agent event."""

    seq: int
    type: str
    # As JSON.
    body: str


@dataclass(frozen=True, slots=True)
class Totals:
    """How much of everything a store holds."""

    sessions: int
    # When a session was used last, in milliseconds; None when there is none.
    used_at: int | None
    # Turns that run or go on.
    begun: int
    waiting: int
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int
    expired_deliveries: int
