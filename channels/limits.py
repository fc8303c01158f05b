"""How many calls a chat, a group and the whole bot may still make. The outbox asks before each visible call.

Frames of a preview are visible calls, too, but nobody waits for them: they take what is left over.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

_MINUTE = 60.0
# The share of all places that may be taken when a frame takes one; the rest is for what people wait for.
_FOR_FRAMES = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a platform lets through before it answers 429: one message in `chat_interval` seconds per chat, so many per
    group and minute, so many per second in all."""

    chat_interval: float = 1.0
    group_per_minute: int = 20
    per_second: int = 30


class RateLimits:
    """Places in the limits of one bot. Memory is bounded by what all chats may send in one minute."""

    def __init__(self, limits: Rates, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._now = monotonic
        self._all: deque[float] = deque()
        self._chats: OrderedDict[str, deque[float]] = OrderedDict()
        # When the last call that was no frame ended.
        self._spoke: dict[str, float] = {}
        # Until when, by chat and whether that is said of frames alone.
        self._held: dict[tuple[str, bool], float] = {}

    def take(self, chat: str, group: bool, frame: bool = False) -> float:
        """Take a place for one visible call: 0.0 when granted, else the seconds after which to ask again.

        frame: of a preview. No other call to that chat waits for it; it waits for all. In a group frames are spread
        over the minute.
        """
        now = self._now()
        self._forget(now)
        share = _FOR_FRAMES if frame else 1.0
        per_second = max(int(share * self._limits.per_second), 1)
        per_minute = max(int(share * self._limits.group_per_minute), 1)
        calls = self._chats.get(chat, ())
        waits = [self.held(chat), self.held(chat, frame)]
        if len(self._all) >= per_second:
            waits.append(self._all[-per_second] + 1.0 - now)
        if chat in self._spoke:
            waits.append(self._spoke[chat] + self._limits.chat_interval - now)
        if group and len(calls) >= per_minute:
            waits.append(calls[-per_minute] + _MINUTE - now)
        if max(waits) > 0:
            return max(waits)
        self._all.append(now)
        self._chats.setdefault(chat, deque(maxlen=self._limits.group_per_minute)).append(now)
        self._chats.move_to_end(chat)
        if frame:
            self.hold(chat, _MINUTE / per_minute if group else self._limits.chat_interval, frame)
        else:
            self._spoke[chat] = now
        return 0.0

    def ended(self, chat: str) -> None:
        """The call that was granted last has ended: the platform cannot have counted it later than this."""
        if chat in self._spoke:
            self._chats[chat][-1] = self._spoke[chat] = self._now()
            self._chats.move_to_end(chat)

    def hold(self, chat: str, seconds: float, frame: bool = False) -> None:
        """The platform answered 429: no call to that chat, or no frame, before these seconds have passed."""
        until = self._now() + seconds
        self._held[chat, frame] = max(until, self._held.get((chat, frame), until))

    def held(self, chat: str, frame: bool = False) -> float:
        """How many seconds a chat must still be left alone, or its frames be left out."""
        now = self._now()
        return max(self._held.get((chat, frame), now) - now, 0.0)

    def _forget(self, now: float) -> None:
        """Drop what no limit asks for any more: whole chats in the order of their last call, so in few steps."""
        while self._all and self._all[0] <= now - 1.0:
            self._all.popleft()
        while self._chats:
            chat, sent = next(iter(self._chats.items()))
            if sent[-1] > now - _MINUTE:
                break
            del self._chats[chat]
            self._spoke.pop(chat, None)
        for held in [held for held, until in self._held.items() if until <= now]:
            del self._held[held]
