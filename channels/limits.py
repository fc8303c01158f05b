"""How many calls a chat, a group and the whole bot may still make. The outbox asks before each visible call."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

_MINUTE = 60.0


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
        self._held: dict[str, float] = {}

    def take(self, chat: str, group: bool) -> float:
        """Take a place for one visible call: 0.0 when granted, else the seconds after which to ask again."""
        now = self._now()
        self._forget(now)
        sent = self._chats.get(chat)
        waits = [self.held(chat)]
        if len(self._all) >= self._limits.per_second:
            waits.append(self._all[0] + 1.0 - now)
        if sent is not None:
            waits.append(sent[-1] + self._limits.chat_interval - now)
            if group and len(sent) >= self._limits.group_per_minute:
                waits.append(sent[0] + _MINUTE - now)
        if max(waits) > 0:
            return max(waits)
        self._all.append(now)
        if chat not in self._chats:
            self._chats[chat] = deque(maxlen=self._limits.group_per_minute)
        self._chats[chat].append(now)
        self._chats.move_to_end(chat)
        return 0.0

    def ended(self, chat: str) -> None:
        """The call that was granted last has ended: the platform cannot have counted it later than this."""
        if chat in self._chats:
            self._chats[chat][-1] = self._now()
            self._chats.move_to_end(chat)

    def hold(self, chat: str, seconds: float) -> None:
        """The platform answered 429: no call to that chat before these seconds have passed."""
        self._held[chat] = self._now() + seconds

    def held(self, chat: str) -> float:
        """How many seconds a chat must still be left alone."""
        now = self._now()
        return max(self._held.get(chat, now) - now, 0.0)

    def _forget(self, now: float) -> None:
        """Drop what no limit asks for any more: whole chats in the order of their last call, so in few steps."""
        while self._all and self._all[0] <= now - 1.0:
            self._all.popleft()
        while self._chats:
            chat, sent = next(iter(self._chats.items()))
            if sent[-1] > now - _MINUTE:
                break
            del self._chats[chat]
        for chat in [chat for chat, until in self._held.items() if until <= now]:
            del self._held[chat]
