"""The Telegram channel: receives by `poll`, renders by `render`, and makes the calls the outbox asks for.

Calls into one chat are made one after the other, so that a typing sign never arrives after the message that follows
it. `bot/wiring` makes one per account and imports this module only then, because it imports the library.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

from channels.actions import ActionFailed, Arguments
from channels.base import Capabilities, Health, NotDownloaded, Sink, Times
from channels.failures import ApiError, Trouble, outcome
from channels.limits import RateLimits
from channels.message import Attachment, ChatKind, Place
from channels.outgoing import Delivery, NotSent, Refused, SendResult, Sent, Unknown
from channels.telegram.api import Api
from channels.telegram.calls import ACTIONS, FILE_BYTES, WITH_TEXT, addressed, call_of, done_before
from channels.telegram.poll import Receiver
from channels.telegram.render import MAX_UNITS, bodies, plain_body
from channels.telegram.settings import TelegramSettings

_RULES = """\
The conversation is on Telegram. Write Markdown: bold, italic, strikethrough, ||spoilers||, inline code, fenced code
with its language, links, quotes, headings, lists, task lists and <details> are shown. A table becomes fixed-width text
where a line of it has at most 40 characters, else a list of "header: value". Formulas are shown as their LaTeX source,
images as links, footnotes and other HTML as they are written. People read on phones: be brief."""


_LARGEST = 20 * 1024 * 1024
_MOST_SENDS = 3
"""Of one message, when Telegram never tells what became of them: at the worst two copies too many."""


class TelegramChannel:
    """One bot. See `channels.base.Channel`."""

    name = "telegram"
    # Markdown grows little when it is rendered, and what does not fit becomes two messages.
    capabilities = Capabilities(
        block_chars=MAX_UNITS - 96,
        typing_seconds=4.0,
        rules=_RULES,
        actions=ACTIONS,
        file_bytes=FILE_BYTES,
    )

    def __init__(self, settings: TelegramSettings, times: Times) -> None:
        self._settings = settings
        self._times = times
        self._limits = RateLimits(settings.limits, times.monotonic)
        # Of a chat; it lives as long as somebody holds it or waits for it.
        self._calls: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unreached = settings.pauses()
        self._api = Api(settings)
        self._receiver = Receiver(self.name, self._api, settings, times)
        self._receiving: asyncio.Task[None] | None = None

    @property
    def account(self) -> str:
        """The bot's own id; empty until Telegram has told it."""
        return self._receiver.me.id if self._receiver.me else ""

    async def start(self, sink: Sink) -> None:
        """Begin to receive; a Telegram that is down is retried inside."""
        self._receiving = asyncio.create_task(self._receiver.run(sink), name="telegram-poll")

    async def stop_intake(self) -> None:
        """Poll no more. A batch that is just being stored is stored or comes again: both are safe."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])
            self._receiving = None
            await self._receiver.stopped()

    async def close(self) -> None:
        """Stop and close all connections."""
        await self.stop_intake()
        await self._api.close()

    def render(self, text: str) -> Sequence[str]:
        """Markdown to the bodies of messages."""
        return bodies(text, self._settings.rich)

    def pass_limit(self, place: Place) -> float:
        """Take a place in the limits: 0.0 when granted, else seconds to wait."""
        return self._limits.take(place.chat, place.kind is not ChatKind.DIRECT)

    async def send(self, delivery: Delivery) -> SendResult:
        """Make the call; what became of it is told by where it failed."""
        try:
            method, arguments = await asyncio.to_thread(call_of, delivery) if delivery.file else call_of(delivery)
        except ValueError as error:
            return Refused(f"the stored message cannot be read: {error}")
        except OSError as error:
            return Refused(f"the file cannot be read: {error.strerror}")
        chat = delivery.place.chat
        async with self._calls.setdefault(chat, asyncio.Lock()):
            try:
                answer = await self._api.call(method, arguments, self._settings.request_timeout)
            except ApiError as error:
                return self._result(error, delivery)
            finally:
                self._limits.ended(chat)
        self._unreached.failures = 0
        return Sent(str(answer.get("message_id", "")) if isinstance(answer, dict) else delivery.target)

    async def settle(self, delivery: Delivery) -> SendResult:
        """Telegram cannot be asked what it has: send again, but only once it is alive, and not for ever."""
        if delivery.attempts >= _MOST_SENDS:
            return Unknown(f"sent {delivery.attempts} times, and Telegram never told what became of it")
        known, pauses = self._api.answers, self._settings.pauses()
        while self._api.answers == known:
            await self._times.sleep(pauses.next())
            if self._api.answers == known:
                with suppress(ApiError):  # a refusal is an answer, too
                    await self._api.call("getMe", {}, self._settings.request_timeout)
        return NotSent(0.0, "it is not known whether it was sent; sent again")

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """Its content; the address of a file lives for an hour, so it is asked for anew each time."""
        if attachment.size > _LARGEST:
            raise NotDownloaded("it has more than the 20 MB that Telegram hands to bots")
        try:
            found = await self._api.call("getFile", {"file_id": attachment.ref}, self._settings.request_timeout)
            async for piece in self._api.file(str(found["file_path"])):
                yield piece
        except ApiError as error:
            raise NotDownloaded(f"Telegram does not hand it out: {error.reason}") from None

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See `channels.base.Channel`."""
        return 60.0

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """See `channels/actions.py`."""
        raise ActionFailed(f"{name} is not possible here")

    async def find(self, wanted: str) -> Place | Sequence[str]:
        """See `channels.base.Channel`."""
        return ()

    async def working(self, place: Place) -> None:
        """Show "typing" once, unless a call into that chat is under way: it would show only after that."""
        call = self._calls.setdefault(place.chat, asyncio.Lock())
        if call.locked() or self._limits.held(place.chat) > 0:
            return
        seconds = self._settings.typing_timeout
        async with call:
            try:
                async with asyncio.timeout(seconds):
                    await self._api.call("sendChatAction", addressed(place, {"action": "typing"}), seconds)
            except ApiError as error:
                if error.trouble is Trouble.FLOOD:
                    self._limits.hold(place.chat, error.retry_after)
            except TimeoutError:
                pass

    def health(self) -> Health:
        """How it stands."""
        return self._receiver.health()

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        match error.trouble:
            case Trouble.FLOOD:
                self._limits.hold(delivery.place.chat, error.retry_after)
            case Trouble.REFUSED if done_before(delivery.action, error.reason):
                return Sent(delivery.target)
            case Trouble.TOKEN if "method not found" in error.reason:  # a server of one's own that is older
                return NotSent(0.0, error.reason, plain_body(delivery.body))
            case Trouble.REFUSED:
                formatted = error.status == 400 and delivery.action in WITH_TEXT
                plain = plain_body(delivery.body) if formatted else None
                if plain is not None:
                    return NotSent(0.0, error.reason, plain)
        return outcome(error, self._unreached, self._settings.slow_retry)
