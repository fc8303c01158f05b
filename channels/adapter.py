"""The base of the adapters of all platforms: sends, signs of work, and the rate limits of one bot.

Calls into one place are made one after the other, so that a typing sign or a frame of a preview never arrives after the
message that follows it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from channels.base import Health, Sink, Times
from channels.failures import ApiError, Rates, Trouble
from channels.manners import Manner, plainer
from channels.message import ChatKind, Place
from channels.outgoing import Action, Delivery, Elsewhere, Moved, NotSent, Refused, SendResult, Sent, Unknown
from channels.receiver import Receiver
from channels.settings import AccountSection

_MINUTE = 60.0
# The share of all calls that may have been made when a frame of a preview is; the rest is for what people wait for.
_FOR_FRAMES = 0.75
# Behind the id of a chat: the key that is held while the platform takes no signs there, such as typing or a reaction.
# A 429 of a sign delays no message.
SIGNS = " signs"


class Adapter:
    """The adapter of one account; each platform derives its own from it. See `channels.base.Channel`.

    disconnect: closes all connections.
    """

    name: str

    def __init__(
        self, receiver: Receiver, disconnect: Callable[[], Awaitable[None]], section: AccountSection, times: Times
    ) -> None:
        self._receiver = receiver
        self._disconnect = disconnect
        self._patience = section
        self._times = times
        self._limits = RateLimits(section.rates, times.monotonic)
        # The lock of a place lives as long as somebody holds it or waits for it.
        self._locks: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()
        self._unreached = section.pauses()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def account(self) -> str:
        """The bot's own id on the platform; empty until the receiver has learned it."""
        return self._receiver.account

    async def start(self, sink: Sink) -> None:
        """Begin to receive. While the platform is down, the receiver retries."""
        self._tasks.append(asyncio.create_task(self._receiver.run(sink), name=f"{self.name}-receive"))

    async def stop_intake(self) -> None:
        """Receive nothing more. An event that is just being stored is stored or delivered again; both are safe."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            await self._receiver.stop()

    async def close(self) -> None:
        """Stop receiving and close all connections."""
        await self.stop_intake()
        await self._disconnect()

    def health(self) -> Health:
        """See `channels.base.Surface`."""
        return self._receiver.health()

    def pass_limit(self, place: Place) -> float:
        """See `channels.base.Channel`."""
        return self._limits.take(place.chat, place.kind is not ChatKind.DIRECT)

    async def send(self, delivery: Delivery) -> SendResult:
        """See `channels.base.Channel`."""
        lost: list[Manner] = []
        async with self._lock(delivery.place):
            try:
                while True:
                    try:
                        sent = await self._carry_out(delivery)
                        break
                    except ApiError as error:
                        if (step := plainer(delivery, error)) is None:
                            return self._result(error, delivery)
                        delivery, manner = step
                        lost.append(manner)
            except (ValueError, TypeError, KeyError, OSError) as error:
                return Refused(f"it cannot be sent: {getattr(error, 'strerror', None) or error}")
            finally:
                self._limits.ended(delivery.place.chat)
        self._unreached.failures = 0
        return sent if isinstance(sent, Elsewhere) else Sent(sent, tuple(lost))

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See `channels.base.Channel`."""
        if self._limits.held(place.chat + SIGNS) == 0:
            error = await self._best_effort(place, self._react(place, target, emoji, before))
            self._limits.hold(place.chat + SIGNS, error.retry_after if error else 0.0)

    async def _react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See `react`. Raises ApiError."""
        raise NotImplementedError

    async def _carry_out(self, delivery: Delivery) -> str | Elsewhere:
        """Make the call; returns the platform's id of the message, or the conversation to send it to instead.

        Raises ApiError; ValueError, TypeError, KeyError or OSError for a delivery that cannot be sent.
        """
        raise NotImplementedError

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        """The outcome of a send that failed."""
        self._limits.hold(delivery.place.chat + SIGNS, error.retry_after)
        if delivery.action is not Action.REACT:
            self._limits.hold(delivery.place.chat, error.retry_after)
        match error.trouble:
            case Trouble.FLOOD:
                return NotSent(error.retry_after, error.reason)
            case Trouble.MOVED:
                return Moved(error.new_chat)
            case Trouble.REFUSED:
                return Refused(error.reason)
            case Trouble.UNKNOWN | Trouble.FAILED:
                return Unknown(error.reason)
            case Trouble.TOKEN | Trouble.SCOPE:
                return NotSent(self._patience.slow_retry, error.reason)
        return NotSent(self._unreached.next(), error.reason)

    def _lock(self, place: Place) -> asyncio.Lock:
        """The lock that a call into a place holds."""
        return self._locks.setdefault(place, asyncio.Lock())

    async def _best_effort(self, place: Place, call: Awaitable[object]) -> ApiError | None:
        """Make a call that may fail, such as a typing sign, within `typing_timeout`; returns its error if it failed."""
        async with self._lock(place):
            try:
                async with asyncio.timeout(self._patience.typing_timeout):
                    await call
            except ApiError as error:
                return error
            except TimeoutError:
                return ApiError(Trouble.UNKNOWN, "it took too long")
        return None


class RateLimits:
    """Counts the visible calls of one bot, and says how long the next one has to wait.

    Frames of a preview are visible calls too, but nobody waits for them, so they get what is left over. Memory is
    bounded by the calls that all chats may make in one minute.
    """

    def __init__(self, limits: Rates, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._now = monotonic
        self._all: deque[float] = deque()
        self._chats: OrderedDict[str, deque[float]] = OrderedDict()
        # Per chat, when the last call that was no frame ended.
        self._spoke: dict[str, float] = {}
        # Until when a chat is to be left alone after a 429; True in the key: only by frames.
        self._held: dict[tuple[str, bool], float] = {}

    def take(self, chat: str, group: bool, frame: bool = False) -> float:
        """Count one visible call and return 0.0, or return the seconds after which to ask again.

        frame: the call is a frame of a preview. It waits for other calls to that chat, which do not wait for it. In a
        group frames are spread over the minute.
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
        """Note that the last granted call has ended: the platform cannot have counted it later than this."""
        if chat in self._spoke:
            self._chats[chat][-1] = self._spoke[chat] = self._now()
            self._chats.move_to_end(chat)

    def hold(self, chat: str, seconds: float, frame: bool = False) -> None:
        """After a 429: make no call to that chat for these seconds. frame: make no frames, but other calls."""
        until = self._now() + seconds
        self._held[chat, frame] = max(until, self._held.get((chat, frame), until))

    def held(self, chat: str, frame: bool = False) -> float:
        """For how many seconds no call to a chat may still be made. frame: no frame."""
        now = self._now()
        return max(self._held.get((chat, frame), now) - now, 0.0)

    def _forget(self, now: float) -> None:
        """Drop what no limit needs any more. Chats are in the order of their last call, so this takes few steps."""
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
