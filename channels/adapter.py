"""What the adapters of all platforms do alike: one call into a place after the other, sends and signs of work.

Calls into one place are made one after the other, so that a typing sign or a frame of a preview never arrives after the
message that follows it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from channels.base import Health, Sink, Times
from channels.failures import ApiError, Trouble
from channels.limits import RateLimits
from channels.message import ChatKind, Place
from channels.outgoing import Delivery, Elsewhere, Moved, NotSent, Refused, SendResult, Sent, Unknown
from channels.receiver import Receiver
from channels.settings import AccountSection


class Adapter:
    """Of one account; a platform's own derives from it, see `channels.base.Channel`. receiver: brings events in.
    disconnect: closes all connections."""

    name: str

    def __init__(
        self, receiver: Receiver, disconnect: Callable[[], Awaitable[None]], section: AccountSection, times: Times
    ) -> None:
        self._receiver = receiver
        self._disconnect = disconnect
        self._patience = section
        self._times = times
        self._limits = RateLimits(section.rates, times.monotonic)
        # Of a place; it lives as long as somebody holds it or waits for it.
        self._calls: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()
        self._unreached = section.pauses()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def account(self) -> str:
        """The bot's own id; empty until the platform has told it."""
        return self._receiver.account

    async def start(self, sink: Sink) -> None:
        """Begin to receive; a platform that is down is retried inside."""
        self._tasks.append(asyncio.create_task(self._receiver.run(sink), name=f"{self.name}-receive"))

    async def stop_intake(self) -> None:
        """Receive nothing more. What is just being stored is stored or comes again: both are safe."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            await self._receiver.stop()

    async def close(self) -> None:
        """Stop and close all connections."""
        await self.stop_intake()
        await self._disconnect()

    def health(self) -> Health:
        """How it stands."""
        return self._receiver.health()

    def pass_limit(self, place: Place) -> float:
        """Take a place in the limits: 0.0 when granted, else seconds to wait."""
        return self._limits.take(place.chat, place.kind is not ChatKind.DIRECT)

    async def send(self, delivery: Delivery) -> SendResult:
        """Make the call; what became of it is told by where it failed."""
        async with self._call(delivery.place):
            try:
                sent = await self._carry_out(delivery)
            except ApiError as error:
                return self._result(error, delivery)
            except (ValueError, TypeError, KeyError, OSError) as error:
                return Refused(f"it cannot be sent: {getattr(error, 'strerror', None) or error}")
            finally:
                self._limits.ended(delivery.place.chat)
        self._unreached.failures = 0
        return sent if isinstance(sent, Elsewhere) else Sent(sent)

    async def _carry_out(self, delivery: Delivery) -> str | Elsewhere:
        """The id of what is there now, or where it belongs. Raises ApiError, and others for what cannot be sent."""
        raise NotImplementedError

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        """What became of a send that failed."""
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

    def _call(self, place: Place) -> asyncio.Lock:
        """Held by the one call into a place that is under way."""
        return self._calls.setdefault(place, asyncio.Lock())

    async def _aside(self, place: Place, call: Awaitable[object]) -> ApiError | None:
        """Make a call whose failure is no matter, and for which no send waits long; what was wrong with it."""
        async with self._call(place):
            try:
                async with asyncio.timeout(self._patience.typing_timeout):
                    await call
            except ApiError as error:
                return error
            except TimeoutError:
                return ApiError(Trouble.UNKNOWN, "it took too long")
        return None
