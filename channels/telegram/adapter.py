"""The Telegram channel: receives by `poll`, renders by `render`, and makes the calls the outbox asks for.

`bot/wiring` makes one per account and imports this module only then, because it imports the library.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from channels.actions import ActionFailed, Arguments
from channels.adapter import Adapter
from channels.base import Capabilities, NotDownloaded, Times, rules_of
from channels.failures import ApiError, Trouble
from channels.message import Attachment, ChatKind, Origin, Place
from channels.outgoing import Delivery, NotSent, Refused, SendResult, Sent, Unknown
from channels.telegram.actions import perform
from channels.telegram.api import Api
from channels.telegram.calls import ACTIONS, FILE_BYTES, WITH_TEXT, addressed, call_of, done_before, frame_of
from channels.telegram.events import place_of
from channels.telegram.poll import TelegramReceiver
from channels.telegram.render import MAX_UNITS, bodies, plain_body
from channels.telegram.settings import TelegramAccount

_NO_REACTION = "{} is no reaction that may be used there; most chats take 👍 👎 ❤ 🔥 👏 😁 🤔 🎉 🙏 👌 💯 👀"
_ADDRESS = re.compile(r"-?\d+|@\w+", re.ASCII)
_LARGEST = 20 * 1024 * 1024
# Before each further send of one message, when Telegram does not tell what became of those before it, as multiples of
# the first pause after a failure: a few seconds of trouble lose nothing. At the worst three copies are too many.
_SPACED = (1, 5, 30)


class TelegramChannel(Adapter):
    """One bot. See `channels.base.Channel`."""

    name = "telegram"
    # Markdown grows little when it is rendered, and what does not fit becomes two messages.
    capabilities = Capabilities(
        block_chars=MAX_UNITS - 96,
        typing_seconds=4.0,
        rules=rules_of(__package__),
        actions=ACTIONS,
        file_bytes=FILE_BYTES,
        drafts=True,
        message_id=r"\d{1,9}",
    )

    def __init__(self, section: TelegramAccount, times: Times) -> None:
        self._section = section
        self._api = Api(section)
        kind = TelegramReceiver
        if section.mode == "webhook":
            from channels.telegram.webhook import WebhookReceiver as kind  # it brings an HTTP server
        receiver = kind(self.name, self._api, section, times)
        super().__init__(receiver, self._api.close, section, times)
        self._bot = receiver

    def render(self, text: str) -> Sequence[str]:
        """Markdown to the bodies of messages."""
        return bodies(text, self._section.rich == "auto")

    async def settle(self, delivery: Delivery) -> SendResult:
        """Telegram cannot be asked what it has: send again, but later, only once it is alive, and not for ever."""
        if delivery.attempts > len(_SPACED):
            return Unknown(f"sent {delivery.attempts} times, and Telegram never told what became of it")
        known, pauses = self._api.answers, self._section.pauses()
        spaced = self._section.retry_first * _SPACED[delivery.attempts - 1]
        await self._times.sleep(min(spaced, self._section.retry_most))
        while self._api.answers == known:
            with suppress(ApiError):  # a refusal is an answer, too
                await self._api.call("getMe", {})
            if self._api.answers == known:
                await self._times.sleep(pauses.next())
        return NotSent(0.0, "it is not known whether it was sent; sent again")

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """Its content; the address of a file lives for an hour, so it is asked for anew each time."""
        if attachment.size > _LARGEST:
            raise NotDownloaded("it has more than the 20 MB that Telegram hands to bots")
        try:
            found = await self._api.call("getFile", {"file_id": attachment.ref})
            async for piece in self._api.file(str(found["file_path"])):
                yield piece
        except ApiError as error:
            raise NotDownloaded(f"Telegram does not hand it out: {error.reason}") from None

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See `channels.base.Channel`; a 429 holds only frames back."""
        chat = place.chat
        if self._call(place).locked():
            return 1.0
        wait = self._limits.take(chat, place.kind is not ChatKind.DIRECT, frame=True)
        if wait > 0:
            return wait
        error = await self._aside(place, self._api.call(*frame_of(place, target, body)))
        self._limits.hold(chat, error.retry_after if error else 0.0, frame=True)
        return self._limits.held(chat, frame=True)

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """See `channels/actions.py`."""
        if (wait := self._limits.held(place.chat)) > 0:
            raise ActionFailed(f"Telegram asks to leave that chat alone for {wait:.0f} seconds")
        try:
            return await perform(self._api.call, name, place, arguments)
        except ApiError as error:
            self._limits.hold(place.chat, error.retry_after)
            raise

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """By the id of a chat, or the @name of a public one: Telegram tells no others, and knows none by a title."""
        if not _ADDRESS.fullmatch(wanted):
            return ()
        try:
            place = place_of({"chat": await self._api.call("getChat", {"chat_id": wanted})}, self._bot.me)
        except ApiError as error:
            if error.trouble is Trouble.REFUSED:
                return ()
            raise
        return Origin(place=place, sender=place.chat if place.kind is ChatKind.DIRECT else "")

    async def working(self, place: Place) -> None:
        """Show "typing" once, unless a call into that chat is under way: it would show only after that."""
        if not self._call(place).locked() and self._limits.held(place.chat) == 0:
            error = await self._aside(place, self._api.call("sendChatAction", addressed(place, {"action": "typing"})))
            self._limits.hold(place.chat, error.retry_after if error else 0.0)

    async def _carry_out(self, delivery: Delivery) -> str:
        method, arguments = await asyncio.to_thread(call_of, delivery) if delivery.file else call_of(delivery)
        answer = await self._api.call(method, arguments)
        return str(answer.get("message_id", "")) if isinstance(answer, dict) else delivery.target

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        match error.trouble:
            case Trouble.REFUSED if done_before(delivery.action, error.reason):
                return Sent(delivery.target)
            case Trouble.TOKEN if "method not found" in error.reason:  # a server of one's own that is older
                return NotSent(0.0, error.reason, plain_body(delivery.body))
            case Trouble.REFUSED if "REACTION_INVALID" in error.reason:
                return Refused(_NO_REACTION.format(delivery.body))
            case Trouble.REFUSED:
                # A message that cannot be edited will not be, whatever its form.
                formatted = error.status == 400 and delivery.action in WITH_TEXT and " edit" not in error.reason
                plain = plain_body(delivery.body) if formatted else None
                if plain is not None:
                    return NotSent(0.0, error.reason, plain)
        return super()._result(error, delivery)


def build(settings: TelegramAccount, times: Times) -> TelegramChannel:
    """The adapter of an account."""
    return TelegramChannel(settings, times)
