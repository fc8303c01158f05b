"""Queues of sessions that wait for a place: an owner's first, then those of guests by turns.

A queue holds a bounded number of session keys; further sessions wait in the store alone, and the queue knows whose.
"""

from collections.abc import Container

from agent.shares import BACKGROUND, OWNER, Shares

# The most sessions in memory: of owners, of all guests together, and of one guest.
READY, READY_EACH = 4096, 64
# Stands for all guests in `SessionQueue.beyond`.
ALL = "*"
_OWNERS = (OWNER, BACKGROUND)


class SessionQueue:
    """Sessions of one kind that wait for a place."""

    def __init__(self) -> None:
        # Whose each session is, as `agent/shares` names them.
        self.whose: dict[str, str] = {}
        # By these, the sessions in their order, each with the time in milliseconds up to which its messages count as
        # ready even if the clock was set back. No dict in it is empty.
        self._waiting: dict[str, dict[str, int]] = {}
        # Who has more sessions in the store.
        self.beyond: set[str] = set()

    def add(self, session_key: str, until: int, who: str, *, sure: bool, settled: bool) -> None:
        """Add a session at the end, or leave it to the store when earlier sessions of the same people wait there.

        sure: False if `who` is a guess. A session in which an owner writes as well is the owner's. settled: False while
        the store is being read, whose answer may lack the session.
        """
        before, guest = self.whose.get(session_key), who not in _OWNERS
        if before is not None and (guest or not sure or before in _OWNERS):
            self._waiting[before][session_key] = max(until, self._waiting[before][session_key])
        elif not settled or who in self.beyond or len(self._waiting.get(who, ())) >= (READY_EACH if guest else READY):
            self.beyond.add(who)
        elif guest and (ALL in self.beyond or self._guests >= READY):
            self.beyond.add(ALL)
        else:
            self.put(session_key, max(until, self.pop(session_key) if before is not None else 0), who)

    def put(self, session_key: str, until: int, who: str) -> None:
        """Add a session at the end, unless it waits here."""
        if self.whose.setdefault(session_key, who) == who:
            self._waiting.setdefault(who, {}).setdefault(session_key, until)

    def next(self, shares: Shares, *busy: Container[str]) -> tuple[str, str, int] | None:
        """Take out the session that is to have the next place; None: none that waits may have one.

        busy: those that cannot run now. Returns whose it is as well, and the time up to which messages count as ready.
        """
        for who in shares.free(self._waiting):
            for session_key in self._waiting[who]:
                if not any(session_key in one for one in busy):
                    return session_key, who, self.pop(session_key)
        return None

    def pop(self, session_key: str) -> int:
        """Take a session out, after which its guest's other sessions wait behind those of other guests."""
        who = self.whose.pop(session_key)
        waiting = self._waiting.pop(who)
        until = waiting.pop(session_key)
        if waiting:
            self._waiting[who] = waiting
        return until

    @property
    def lacks(self) -> bool:
        """Whether somebody of whom more is in the store has nothing here any more."""
        return any(not self._guests if who == ALL else who not in self._waiting for who in self.beyond)

    @property
    def _guests(self) -> int:
        return len(self.whose) - sum(len(self._waiting.get(who, ())) for who in _OWNERS)
