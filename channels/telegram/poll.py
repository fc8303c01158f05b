"""Receives updates of the Bot API by polling.

Each update is read alone. A batch and the offset behind it are stored in one transaction before the next poll, because
Telegram forgets an update as soon as a later offset is asked for.
"""

import logging
from dataclasses import replace
from functools import partial
from typing import ClassVar

from channels.base import Mark, NotAccepted, Times
from channels.failures import ApiError, Trouble
from channels.message import InboundKind, InboundMessage, Incoming
from channels.receiver import Receiver
from channels.telegram.api import Api
from channels.telegram.events import ALLOWED_UPDATES, Me, read_me, read_update, unread, update_id_of
from channels.telegram.settings import TelegramAccount
from channels.utf16 import units

log = logging.getLogger(__name__)

_BATCH = 100
# Seconds after the end of the long poll at which its answer is overdue.
_ANSWER_MARGIN = 10.0
_SHORT = 0.1
_PRIVACY = "; in groups it is shown only commands, its name and replies: privacy mode, switched off with @BotFather"
_WEBHOOK = "A webhook was set for this bot; it is removed, waiting messages are kept"


class TelegramReceiver(Receiver):
    """Learns the bot's own id, then polls."""

    sentences: ClassVar = {
        Trouble.REFUSED: "Telegram refuses to hand out updates",
        Trouble.TOKEN: "Telegram does not accept the token of this bot; @BotFather has the right one",
        Trouble.CONFLICT: "Another program receives the messages of this bot; only one may, so it has to be stopped",
    }
    needs_operator: ClassVar = (Trouble.TOKEN, Trouble.CONFLICT)

    def __init__(self, name: str, api: Api, section: TelegramAccount, times: Times) -> None:
        super().__init__(name, section, times)
        self.me = Me()
        self._api = api
        self._section = section
        self._offset: int | None = None
        self._heard = times.monotonic()
        self._pastes = Pastes()

    def _problem(self) -> str:
        overdue = self._times.monotonic() - self._heard - self._section.poll_timeout - 2 * _ANSWER_MARGIN
        return "No poll has come back for too long" if overdue > 0 else ""

    async def _step(self) -> None:
        if not self.account:
            me = read_me(await self._api.call("getMe", {}))
            self._offset = await self._stored_offset(f"{self._name}:{me.id}")
            self.me, self.account = me, me.id
            menu = [{"command": one.name, "description": one.help[:256]} for one in self._sink.commands()]
            await self._renew_menu(menu, partial(self._api.call, "setMyCommands", {"commands": menu}))
        await self._receive()

    async def _receive(self) -> None:
        """Poll once. Raises ApiError and NotAccepted."""
        # The first poll, also after a failure, returns at once, so that the health is soon known.
        seconds = self._section.poll_timeout if self.is_ready else 0
        arguments = {"timeout": seconds, "limit": _BATCH, "allowed_updates": list(ALLOWED_UPDATES)}
        if self._offset is not None:
            arguments["offset"] = self._offset
        asked = self._times.monotonic()
        answer = await self._api.call("getUpdates", arguments, seconds + _ANSWER_MARGIN)
        # Nothing is awaited between the answer and the store.
        updates = answer if isinstance(answer, list) else [answer]
        # The offset that confirms all of them; None when none has an id.
        offset = max((number + 1 for number in map(update_id_of, updates) if number is not None), default=None)
        if updates:
            await self._take(updates, None if offset is None else Mark(f"{self._name}:{self.account}", str(offset)))
        if offset is not None:
            self._offset = offset
        elif updates:
            raise ApiError(Trouble.UNKNOWN, "no update has an id")
        self._poll_returned()
        if seconds and not updates and self._times.monotonic() - asked < _SHORT:
            # A server that does not hold polls is asked no faster than this.
            await self._times.sleep(_SHORT)

    async def _stored_offset(self, scope: str) -> int | None:
        try:
            value = await self._sink.mark(scope)
        except Exception as error:
            raise NotAccepted(type(error).__name__) from error
        return int(value) if value else None

    async def _take(self, updates: list[object], mark: Mark | None = None) -> None:
        """Read and store updates, awaiting nothing before. Raises NotAccepted."""
        batch = [self._pastes.joined(item) for update in updates for item in self._read(update)]
        await self._accept(batch, mark)

    async def _acknowledge(self, message: InboundMessage) -> None:
        """End the progress sign of a button. A click from before a restart may be too old for that."""
        try:
            await self._api.call("answerCallbackQuery", {"callback_query_id": message.respond})
        except ApiError as error:
            log.info("telegram: a click could not be acknowledged: %s", error.reason)

    def _read(self, update: object) -> list[Incoming]:
        try:
            return read_update(update, self.me, self._times.now())
        except Exception as error:
            return [unread(update, self.me, error)]

    def _poll_returned(self) -> None:
        self._pauses.failures = 0
        self._heard = self._times.monotonic()
        self._received(f"receiving as @{self.me.username}{'' if self.me.reads_groups else _PRIVACY}")

    async def _pause(self, error: ApiError) -> None:
        if error.trouble is Trouble.CONFLICT and "webhook" in error.reason:
            await self._remove_webhook()
        else:
            await super()._pause(error)

    async def _remove_webhook(self) -> None:
        """Remove a webhook, because nothing can be polled while one is set; waiting updates are kept."""
        await self._wait(_WEBHOOK, 0.0)
        try:
            await self._api.call("deleteWebhook", {"drop_pending_updates": False})
        except ApiError as error:
            log.warning("telegram: the webhook could not be removed: %s", error.reason)
        # Another program may set it again, so the next attempt waits.
        await self._times.sleep(self._pauses.next())


# The UTF-16 units from which on a message may be a piece of a paste; clients cut at 4,096 or a little before.
_LONG = 4000
# The most milliseconds between two pieces.
_GAP = 2000


class Pastes:
    """Gives the pieces of one long paste the same `part_of`, also when they come in different batches.

    A client cuts a text that does not fit one message, and sends the pieces directly one after the other.
    """

    def __init__(self) -> None:
        self._last: InboundMessage | None = None

    def joined(self, item: Incoming) -> Incoming:
        """Return the item; if it continues or may begin a paste, with its `part_of` set."""
        if not isinstance(item, InboundMessage) or item.kind is not InboundKind.MESSAGE or item.attachments:
            return item
        last, origin = self._last, item.origin
        if last is not None and _goes_on(last, item):
            item = replace(item, part_of=last.part_of)
        elif units(item.text) >= _LONG:
            item = replace(item, part_of=f"paste:{origin.message_id}")
        self._last = item if units(item.text) >= _LONG else None
        return item


def _goes_on(last: InboundMessage, item: InboundMessage) -> bool:
    same = (last.origin.place, last.origin.sender) == (item.origin.place, item.origin.sender)
    follows = int(item.origin.message_id) == int(last.origin.message_id) + 1
    return same and follows and item.sent_at - last.sent_at <= _GAP and not item.forwarded
