"""The Telegram channel: receives with `poll`, renders with `render`, and makes the calls that the outbox asks for.

Imported only when an account of the channel is built, because it imports the platform's library.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from channels.actions import ActionFailed, Arguments
from channels.adapter import SIGNS, Adapter
from channels.base import Capabilities, NotDownloaded, Times, rules_of
from channels.failures import ApiError, Trouble
from channels.message import Attachment, ChatKind, Origin, Place
from channels.outgoing import Delivery, NotSent, Refused, SendResult, Sent, Unknown
from channels.telegram import render
from channels.telegram.actions import perform
from channels.telegram.api import Api
from channels.telegram.events import place_of
from channels.telegram.poll import TelegramReceiver
from channels.telegram.settings import TelegramAccount

_NO_REACTION = "{} is no reaction that may be used there; most chats take 👍 👎 ❤ 🔥 👏 😁 🤔 🎉 🙏 👌 💯 👀"
_ADDRESS = re.compile(r"-?\d+|@\w+", re.ASCII)
_LARGEST = 20 * 1024 * 1024
# The pauses before a message of unknown outcome is sent again, as multiples of the first pause after a failure. At the
# worst there are three copies too many.
_SPACED = (1, 5, 30)


class TelegramChannel(Adapter):
    """One bot; see `channels.base.Channel`."""

    name = "telegram"
    # Rendering makes Markdown little longer; a block that does not fit becomes two messages.
    capabilities = Capabilities(
        block_chars=render.MAX_UNITS - 96,
        typing_seconds=4.0,
        rules=rules_of(__package__),
        actions=render.ACTIONS,
        file_bytes=render.FILE_BYTES,
        voice_messages=True,
        drafts=True,
        message_id=r"\d{1,9}",
        deletes_within=48 * 3600,
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
        """See `channels.base.Channel`."""
        return render.bodies(text, self._section.rich == "auto")

    async def settle(self, delivery: Delivery) -> SendResult:
        """Send again, at most three times, after a pause and once Telegram answers: it has no history to look into."""
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
        """See `channels.base.Channel`. The address of a file is valid for an hour, so it is requested each time."""
        if attachment.size > _LARGEST:
            raise NotDownloaded("it has more than the 20 MB that Telegram hands to bots")
        try:
            found = await self._api.call("getFile", {"file_id": attachment.ref})
            async for piece in self._api.file(str(found["file_path"])):
                yield piece
        except ApiError as error:
            raise NotDownloaded(f"Telegram does not hand it out: {error.reason}") from None

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See `channels.base.Channel`. A 429 delays only frames."""
        chat = place.chat
        if self._lock(place).locked():
            return 1.0
        wait = self._limits.take(chat, place.kind is not ChatKind.DIRECT, frame=True)
        if wait > 0:
            return wait
        error = await self._best_effort(place, self._api.call(*render.frame_of(place, target, body)))
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
        """Find a chat by its id, or a public one by its @name; Telegram finds none by its title."""
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
        """Show "typing" once, unless a call into that chat is under way, after which it would come too late."""
        if not self._lock(place).locked() and self._limits.held(place.chat + SIGNS) == 0:
            arguments = render.addressed(place, {"action": "typing"})
            error = await self._best_effort(place, self._api.call("sendChatAction", arguments))
            self._limits.hold(place.chat + SIGNS, error.retry_after if error else 0.0)

    async def _react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See `Adapter`. A chat shows one reaction of a bot."""
        await self._api.call("setMessageReaction", render.reaction(place, target, emoji))

    async def _carry_out(self, delivery: Delivery) -> str:
        call = render.call_of
        method, arguments = await asyncio.to_thread(call, delivery) if delivery.file else call(delivery)
        answer = await self._api.call(method, arguments)
        return str(answer.get("message_id", "")) if isinstance(answer, dict) else delivery.target

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        match error.trouble:
            case Trouble.REFUSED if render.done_before(delivery.action, error.reason):
                return Sent(delivery.target)
            case Trouble.TOKEN if "method not found" in error.reason:  # a server of one's own that is older
                return NotSent(0.0, error.reason, render.plain_body(delivery.body))
            case Trouble.REFUSED if "REACTION_INVALID" in error.reason:
                return Refused(_NO_REACTION.format(delivery.body))
            case Trouble.REFUSED:
                # A message that cannot be edited will not be, whatever its form.
                formatted = error.status == 400 and delivery.action in render.WITH_TEXT and " edit" not in error.reason
                plain = render.plain_body(delivery.body) if formatted else None
                if plain is not None:
                    return NotSent(0.0, error.reason, plain)
        return super()._result(error, delivery)


def build(settings: TelegramAccount, times: Times) -> TelegramChannel:
    """The adapter of an account."""
    return TelegramChannel(settings, times)
