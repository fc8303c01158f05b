"""Queues of sessions that wait for a place: an owner's first, then those of guests by turns.

A queue holds a bounded number of session keys; further sessions wait in the store alone, and the queue knows whose.
"""

from collections.abc import Callable, Container, Iterator

from agent.shares import OWNER

# The most sessions in memory: of owners or the background, of all guests together, and of one guest.
READY, READY_EACH = 4096, 64
# Stands for all guests in `SessionQueue.beyond`.
ALL = "*"


class SessionQueue:
    """Sessions of one kind that wait for a place."""

    def __init__(self) -> None:
        # By guest (OWNER for owners and the background), the sessions in their order, each with the time in
        # milliseconds up to which its messages count as ready even if the clock was set back. No dict in it is empty.
        self._waiting: dict[str, dict[str, int]] = {}
        # Who wrote in each session of `_waiting`.
        self._who: dict[str, str] = {}
        # Who has more sessions in the store.
        self.beyond: set[str] = set()

    def __contains__(self, session_key: object) -> bool:
        return session_key in self._who

    def __len__(self) -> int:
        return len(self._who)

    def who(self, session_key: str) -> str:
        """Return whose session it is that waits."""
        return self._who[session_key]

    def add(self, session_key: str, until: int, who: str | None, *, settled: bool) -> None:
        """Add a session at the end, or leave it to the store when earlier sessions of the same people wait there.

        who: None if it is not known, which counts as an owner until the claim. A session in which an owner writes as
        well is the owner's. settled: False while the store is being read, whose answer may lack the session.
        """
        before = self._who.get(session_key)
        if before is not None and (who != OWNER or before == OWNER):
            self._waiting[before][session_key] = max(until, self._waiting[before][session_key])
        elif not settled or not self._has_room(who or OWNER):
            self.beyond.add(who or OWNER)
        else:
            self.put(session_key, max(until, self.pop(session_key) if before is not None else 0), who or OWNER)

    def put(self, session_key: str, until: int, who: str) -> None:
        """Add a session at the end, unless it waits here."""
        if self._who.setdefault(session_key, who) == who:
            self._waiting.setdefault(who, {}).setdefault(session_key, until)

    def pop(self, session_key: str) -> int:
        """Take a session out, after which its guest's other sessions wait behind those of other guests."""
        who = self._who.pop(session_key)
        waiting = self._waiting.pop(who)
        until = waiting.pop(session_key)
        if waiting:
            self._waiting[who] = waiting
        return until

    def next(self, free: Callable[[str], bool], guests: bool, busy: Container[str]) -> str | None:
        """Return the session that is to have the next place; None: no session that waits may have one.

        free: whether somebody may have a place. guests: whether any guest may. busy: sessions that cannot run now.
        """
        for who in self._order(guests):
            if free(who):
                for session_key in self._waiting[who]:
                    if session_key not in busy:
                        return session_key
        return None

    @property
    def lacks(self) -> bool:
        """Whether somebody of whom more is in the store has nothing here any more."""
        guests = len(self) - len(self._waiting.get(OWNER, ()))
        return any(not guests if who == ALL else who not in self._waiting for who in self.beyond)

    def _order(self, guests: bool) -> Iterator[str]:
        if OWNER in self._waiting:
            yield OWNER
        if guests:
            yield from (who for who in self._waiting if who != OWNER)

    def _has_room(self, who: str) -> bool:
        if who in self.beyond or (who != OWNER and ALL in self.beyond):
            return False
        if who == OWNER:
            return len(self._waiting.get(OWNER, ())) < READY
        if len(self) - len(self._waiting.get(OWNER, ())) >= READY:
            self.beyond.add(ALL)
            return False
        return len(self._waiting.get(who, ())) < READY_EACH
