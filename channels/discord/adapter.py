"""The Discord channel: receives by `gateway`, renders by `render`, and makes the calls the outbox asks for.

Calls into one channel are made one after the other, so that a typing sign never arrives after the message that follows
it. `bot/wiring` makes one per account and imports this module only then, because it imports the library.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

from channels.actions import ActionFailed, Arguments
from channels.base import Capabilities, Health, Page, Sink, Times
from channels.discord.api import THREAD_EXISTS, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, Api
from channels.discord.calls import (
    ACTIONS,
    MESSAGES,
    answer,
    change,
    channel_of,
    open_thread,
    post,
    unthreaded,
    webhook_of,
)
from channels.discord.events import snowflake_at
from channels.discord.gateway import Receiver
from channels.discord.history import download, found, page_of
from channels.discord.render import MAX_CHARS, bodies
from channels.discord.settings import DiscordSettings
from channels.failures import ApiError, Trouble, outcome
from channels.message import Attachment, InboundKind, InboundMessage, Place
from channels.outgoing import IDEMPOTENT, Delivery, NotSent, Refused, SendResult, Sent, Unknown

log = logging.getLogger(__name__)

_RULES = """\
The conversation is on Discord. Write Markdown: bold, italic, strikethrough, ||spoilers||, inline code, fenced code with
its language, links, quotes, headings of three levels, lists and task lists are shown. A table becomes fixed-width text
where no line of it has more than 40 characters, else a list of "header: value". Formulas are shown as their LaTeX
source, images as links, footnotes and most HTML as they are written; write emoji as characters, not as :names:.
Mentions call nobody. A message has 17 lines: be brief."""
_NONCE_KNOWN = 120_000
"""Milliseconds for which Discord surely knows a nonce."""
_MOST_SENDS = 50
"""Of one message that history never shows: some twenty minutes of them."""
_GOODBYE = 3.0


class DiscordChannel:
    """One bot. See `channels.base.Channel` and `channels.base.History`."""

    name = "discord"
    # Markdown grows little when it is rendered, and what does not fit becomes two messages.
    capabilities = Capabilities(
        block_chars=MAX_CHARS - 96, typing_seconds=8.0, rules=_RULES, actions=ACTIONS, file_bytes=10 * 1024 * 1024
    )

    def __init__(self, settings: DiscordSettings, times: Times) -> None:
        self._settings = settings
        self._times = times
        self._api = Api(settings)
        self._receiver = Receiver(self.name, self._api, settings, times, self._stored)
        self._world = self._receiver.world
        # Of a channel; it lives as long as somebody holds it or waits for it.
        self._calls: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._deferring: dict[str, asyncio.Task[None]] = {}
        self._receiving: asyncio.Task[None] | None = None
        self._unreached = settings.pauses()

    @property
    def account(self) -> str:
        """The bot's own id; empty until Discord has told it."""
        return self._world.me

    async def start(self, sink: Sink) -> None:
        """Begin to receive; a Discord that is down is retried inside."""
        self._world.orders = {one.name: tuple(option.name for option in one.options) for one in sink.commands()}
        self._receiving = asyncio.create_task(self._receiver.run(sink), name="discord-gateway")

    async def stop_intake(self) -> None:
        """Receive nothing more; what came is stored if it can be."""
        self._receiver.stop()
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])
            self._receiving = None

    async def close(self) -> None:
        """Stop and close all connections."""
        await self.stop_intake()
        if self._deferring:
            await asyncio.wait(self._deferring.values(), timeout=_GOODBYE)
        await self._api.close()

    def render(self, text: str) -> Sequence[str]:
        """Markdown to the bodies of messages."""
        return bodies(text)

    def pass_limit(self, place: Place) -> float:
        """Seconds to wait, as far as the limit of that channel is known; the library counts the calls."""
        return self._api.waits("POST", MESSAGES, channel_of(place))

    async def send(self, delivery: Delivery) -> SendResult:
        """Make the call; what became of it is told by where it failed."""
        async with self._calls.setdefault(channel_of(delivery.place), asyncio.Lock()):
            try:
                sent = Sent(await self._carry_out(delivery))
            except ApiError as error:
                return outcome(error, self._unreached, self._settings.slow_retry)
            except ValueError as error:
                return Refused(f"the stored message cannot be read: {error}")
            except OSError as error:
                return Refused(f"the file cannot be read: {error.strerror or error}")
        self._unreached.failures = 0
        return sent

    async def settle(self, delivery: Delivery) -> SendResult:
        """While Discord knows the nonce, the same send again gives the same message; later history shows it or not."""
        pauses = self._settings.pauses()
        while True:
            if self._times.now() - delivery.planned_at < _NONCE_KNOWN:
                result = await self.send(delivery)
                if isinstance(result, Sent | Refused):
                    return result
            else:
                with suppress(ApiError):
                    looked = await found(self._api, self._world, delivery, pauses.after(delivery.attempts))
                    if isinstance(looked, NotSent) and delivery.attempts >= _MOST_SENDS:
                        return Unknown("Discord does not have it, however often it is sent")
                    return looked
            await self._times.sleep(pauses.next())

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
        """Show "typing" once, unless a call into that channel is under way: it would show only after that."""
        channel = place.thread if place.thread in self._world.spots else place.chat  # a thread may still be opened
        call = self._calls.setdefault(channel, asyncio.Lock())
        if call.locked() or self.pass_limit(place) > 0:
            return
        async with call:
            with suppress(ApiError, TimeoutError):
                async with asyncio.timeout(self._settings.typing_timeout):
                    await self._api.call("POST", "/channels/{channel_id}/typing", channel_id=channel)

    def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """The content of an attachment, from Discord's own hosts."""
        return download(self._api, self._settings, attachment)

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """See `channels.base.History`."""
        return await page_of(self._api, self._world, place, after, before, most, self._settings.roles)

    def position(self, at: int) -> str:
        """The least id of that moment."""
        return snowflake_at(at)

    def health(self) -> Health:
        """How it stands."""
        return self._receiver.health()

    async def _carry_out(self, delivery: Delivery) -> str:
        """The id of the message. Raises ApiError, ValueError, and OSError for a file."""
        if delivery.action in IDEMPOTENT:
            await change(self._api, delivery)
            return delivery.target
        webhook = webhook_of(delivery.respond, self._times.now())
        if webhook is not None:
            if delivery.respond in self._deferring:
                await asyncio.wait([self._deferring[delivery.respond]])
            try:
                return await answer(self._api, delivery, webhook)
            except ApiError as error:
                if error.trouble not in (Trouble.REFUSED, Trouble.TOKEN):
                    raise
        try:
            return await post(self._api, delivery)
        except ApiError as error:
            if error.code != UNKNOWN_CHANNEL or not delivery.place.thread:
                raise
        try:
            await open_thread(self._api, self._world, delivery.place)
        except ApiError as error:
            if error.trouble is Trouble.UNKNOWN:  # of the thread; the message was not sent yet
                raise ApiError(Trouble.NETWORK, error.reason) from None
            if error.trouble is not Trouble.REFUSED or error.code in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
                raise
            if error.code != THREAD_EXISTS:  # the message is there: better an answer below it than none
                log.warning("discord: no thread could be opened: %s", error.reason)
                return await post(self._api, unthreaded(delivery))
        return await post(self._api, delivery)

    def _stored(self, message: InboundMessage) -> None:
        """What is stored may be acknowledged, where Discord waits for that: three seconds long."""
        if message.respond:
            task = self._deferring[message.respond] = asyncio.create_task(self._defer(message), name="discord-defer")
            task.add_done_callback(lambda _: self._deferring.pop(message.respond, None))

    async def _defer(self, message: InboundMessage) -> None:
        """Show that a command is worked on, or that a click was taken."""
        number, token = message.event_key.partition(":")[2], message.respond.split(" ")[1]
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        kind = {"type": 5 if message.kind is InboundKind.COMMAND else 6}
        try:
            await self._api.call("POST", path, webhook_id=number, webhook_token=token, json=kind)
        except ApiError as error:
            log.warning("discord: a command or click was taken, but Discord was not told: %s", error.reason)
