"""Persisted agent events as subscribers and readers get them, and the totals of a store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PersistedAt:
    """A notification that an agent event was persisted."""

    # The position of the event, which no other event ever gets.
    seq: int
    session_key: str
    run_id: str
    # The event is the last of its run.
    ended: bool


# Called with the events that a commit has persisted, in order, before the writers of the commit get their results.
Subscriber = Callable[[Sequence[PersistedAt]], None]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A persisted agent event."""

    seq: int
    type: str
    # The event as JSON.
    body: str


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of rows of each kind that a store holds."""

    sessions: int
    # When people last used any session, in milliseconds; None when there is no session.
    used_at: int | None
    # Turns that run, are parked, or wait to be resumed.
    begun: int
    # Messages that wait for a run.
    waiting: int
    # Deliveries that are not settled.
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int
    expired_deliveries: int
