"""The Discord channel: receives with `gateway`, renders with `render`, and makes the calls that the outbox asks for.

Imported only when an account of the channel is built, because it imports the platform's library.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from channels.actions import Arguments
from channels.adapter import Adapter
from channels.base import Capabilities, Page, Times, rules_of
from channels.discord.actions import find, perform
from channels.discord.api import ONE, THREAD_EXISTS, Api
from channels.discord.calls import (
    ACTIONS,
    MESSAGES,
    answer,
    change,
    exchange,
    open_thread,
    post,
    webhook_of,
)
from channels.discord.events import snowflake_at
from channels.discord.gateway import DiscordReceiver
from channels.discord.history import around, found, page_of
from channels.discord.render import MAX_CHARS, bodies
from channels.discord.settings import DiscordAccount
from channels.discord.world import UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, channel_of, where_it_stands
from channels.failures import ApiError, Trouble
from channels.message import Attachment, Incoming, Origin, Place
from channels.outgoing import IDEMPOTENT, Delivery, NotSent, Refused, SendResult, Sent, Unknown

log = logging.getLogger(__name__)

_RULES = rules_of(__package__)
# Milliseconds for which Discord certainly remembers a nonce.
_NONCE_KNOWN = 120_000
# After so many sends, which take some twenty minutes, a message that the history never shows is given up.
_MOST_SENDS = 50
# Seconds between frames: Discord takes five edits in five seconds.
_FRAME = 1.0


class DiscordChannel(Adapter):
    """One bot; see `channels.base.Channel`, `History` and `Threaded`."""

    name = "discord"
    # Rendering makes Markdown little longer; a block that does not fit becomes two messages.
    capabilities = Capabilities(
        block_chars=MAX_CHARS - 96,
        typing_seconds=8.0,
        rules=_RULES,
        actions=ACTIONS,
        file_bytes=10 * 1024 * 1024,
        message_id=r"[1-8]?\d{1,18}",
        voice_messages=True,
        commands=("/", "!"),
    )

    def __init__(self, section: DiscordAccount, times: Times) -> None:
        self._section = section
        self._api = Api(section)
        receiver = DiscordReceiver(self.name, self._api, section, times)
        super().__init__(receiver, self._api.close, section, times)
        self._gateway, self._world = receiver, receiver.world

    async def stop_intake(self) -> None:
        """Stop receiving; events that have arrived are stored if possible."""
        self._gateway.stopping()
        await super().stop_intake()

    def render(self, text: str) -> Sequence[str]:
        """See `channels.base.Channel`."""
        return bodies(text)

    def pass_limit(self, place: Place) -> float:
        """See `channels.base.Channel`. The library counts the calls, so this only tells how long to wait."""
        return self._api.waits(f"POST {MESSAGES}", channel_of(place))

    async def settle(self, delivery: Delivery) -> SendResult:
        """Send again while Discord remembers the nonce, which gives the same message; later look in the history."""
        pauses = self._section.pauses()
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
        ids = {"channel_id": self._opened(place), "message_id": target}
        wait = self._api.waits(f"PATCH {ONE}", ids["channel_id"], keep=1)  # leaves one call for a delivery
        if not wait and not self._lock(place).locked():
            await self._best_effort(place, self._api.call("PATCH", ONE, json=json.loads(body), **ids))
        return max(wait, _FRAME)

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """See `channels/actions.py`."""
        return await perform(self._api, self._world, name, place, arguments)

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """See `channels.base.Channel`."""
        return await find(self._api, self._world, wanted)

    async def working(self, place: Place) -> None:
        """Show "typing" once, unless a call into that channel is under way, after which it would come too late."""
        if not self._lock(place).locked() and self.pass_limit(place) == 0:
            await self._best_effort(place, self._api.send_typing(self._opened(place)))

    def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """See `channels.base.Channel`."""
        return self._api.file(attachment.ref)

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """See `channels.base.History`."""
        return await page_of(self._api, self._world, place, after, before, most, self._roles)

    async def around(self, place: Place, before: str, most: int) -> Sequence[Incoming]:
        """See `channels.base.Threaded`."""
        return await around(self._api, self._world, place, before, most, self._roles)

    @property
    def _roles(self) -> bool:
        """Whether the configuration allows roles, so that the roles of authors have to be requested."""
        return any(group.roles for group in self._section.groups.allow.values())

    def position(self, at: int) -> str:
        """See `channels.base.History`."""
        return snowflake_at(at)

    def _opened(self, place: Place) -> str:
        """The id of the channel of a place: its thread if that is open, else its chat."""
        return place.thread if place.thread in self._world.spots else place.chat

    async def _react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See `Adapter._react`."""
        await where_it_stands(place, target, partial(exchange, self._api, target, emoji, before))

    async def _carry_out(self, delivery: Delivery) -> str:
        """See `Adapter._carry_out`."""
        self._world.check(delivery.place)
        if delivery.action in IDEMPOTENT:
            await change(self._api, delivery)
            return delivery.target
        webhook = webhook_of(delivery.respond, self._times.now())
        if webhook is not None:
            if delivery.respond in self._receiver.acknowledging:
                await asyncio.wait([self._receiver.acknowledging[delivery.respond]])
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
            if error.trouble is Trouble.UNKNOWN:  # only the thread may exist; the message was not sent yet
                raise ApiError(Trouble.NETWORK, error.reason) from None
            if error.trouble is not Trouble.REFUSED or error.code in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
                raise
            if error.code != THREAD_EXISTS:  # the message is there: better an answer below it than none
                log.warning("discord: no thread could be opened: %s", error.reason)
                raise replace(error, code="no thread") from None
        return await post(self._api, delivery)


def build(settings: DiscordAccount, times: Times) -> DiscordChannel:
    """The adapter of an account."""
    return DiscordChannel(settings, times)
