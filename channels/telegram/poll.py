"""How updates are received: raw, each read alone, batch and offset stored in one transaction, then the next poll.

Telegram forgets an update when a later offset is asked for, so the offset moves only after the store has the batch.
Nothing ends the loop but its cancellation: each trouble has a plain sentence, said once, and a pause.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from channels.base import Health, HealthState, Mark, NotAccepted, Sink, Times
from channels.failures import ApiError, Trouble
from channels.menu import renew_menu
from channels.message import InboundKind, InboundMessage, Incoming
from channels.standing import Standing
from channels.telegram.api import Api
from channels.telegram.events import ALLOWED_UPDATES, Me, read_me, read_update, unread, update_id_of
from channels.telegram.pastes import Pastes
from channels.telegram.settings import TelegramSettings

if TYPE_CHECKING:
    from channels.telegram.webhook import Webhook

log = logging.getLogger(__name__)

_BATCH = 100
_ANSWER_MARGIN = 10.0
"""Seconds beyond the long poll after which an answer is overdue."""
_SHORT = 0.1
_SENTENCES = {
    Trouble.NETWORK: "Telegram cannot be reached",
    Trouble.FAILED: "Telegram answers that something is wrong on its side",
    Trouble.UNKNOWN: "The connection to Telegram broke",
    Trouble.FLOOD: "Telegram asks to wait",
    Trouble.REFUSED: "Telegram refuses to hand out updates",
    Trouble.TOKEN: "Telegram does not accept the token of this bot; @BotFather has the right one",
    Trouble.CONFLICT: "Another program receives the messages of this bot; only one may, so it has to be stopped",
}
_CANNOT_STORE = "Messages cannot be stored, so none are taken from Telegram"
_PRIVACY = "; in groups it is shown only commands, its name and replies: privacy mode, switched off with @BotFather"
_WEBHOOK = "A webhook was set for this bot; it is removed, waiting messages are kept"


class Receiver:
    """Learns who the bot is, then polls. `me` is None until then."""

    def __init__(self, name: str, api: Api, settings: TelegramSettings, times: Times) -> None:
        self.me: Me | None = None
        self._name = name
        self._api = api
        self._settings = settings
        self._times = times
        self._offset: int | None = None
        self._marked = False
        self._standing = Standing(name, times)
        self._pauses = settings.pauses()
        self._heard = times.monotonic()
        self._pastes = Pastes()
        self._clicks: set[asyncio.Task[None]] = set()
        self._webhook: Webhook | None = None
        if settings.listen is not None:
            from channels.telegram import webhook  # it brings an HTTP server

            self._webhook = webhook.Webhook(api, settings, settings.listen, self._take)

    async def run(self, sink: Sink) -> None:
        """Receive until cancelled. Once only."""
        self._sink = sink
        self._standing.begin()
        while True:
            try:
                await self._step()
            except ApiError as error:
                await self._pause(error)
            except NotAccepted as error:
                await self._standing.wait(f"{_CANNOT_STORE}: {error}", self._settings.retry_first)
            except Exception as error:
                log.exception("telegram: unexpected error in the poll loop")
                await self._standing.wait(f"Unexpected error: {type(error).__name__}", self._pauses.next())

    async def stopped(self) -> None:
        """Nothing is received any more."""
        if self._webhook is not None:
            await self._webhook.close()
        for task in self._clicks:
            task.cancel()
        await asyncio.gather(*self._clicks, return_exceptions=True)
        self._standing.stop()

    def health(self) -> Health:
        """READY only while polls come back."""
        overdue = self._times.monotonic() - self._heard - self._settings.poll_timeout - 2 * _ANSWER_MARGIN
        health = self._standing.health
        if self._standing.is_ready and overdue > 0:
            return Health(HealthState.DOWN, health.since, "No poll has come back for too long")
        return health

    async def _step(self) -> None:
        if self.me is None:
            self.me = read_me(await self._api.call("getMe", {}, self._settings.request_timeout))
            await self._show_commands(self.me)
        if self._webhook is not None:
            try:
                await self._webhook.step()
            except OSError as error:
                await self._standing.wait(f"The webhook cannot listen: {error.strerror}", self._pauses.next())
                return
            self._received(self.me)
            await self._times.sleep(self._settings.poll_timeout)
            return
        scope = f"{self._name}:{self.me.id}"
        if not self._marked:
            self._offset = await self._stored_offset(scope)
            self._marked = True
        # The first poll, and the first after a trouble, comes back at once, so that the health is soon known.
        seconds = self._settings.poll_timeout if self._standing.is_ready else 0
        arguments = {"timeout": seconds, "limit": _BATCH, "allowed_updates": list(ALLOWED_UPDATES)}
        if self._offset is not None:
            arguments["offset"] = self._offset
        asked = self._times.monotonic()
        answer = await self._api.call("getUpdates", arguments, seconds + _ANSWER_MARGIN)
        # Nothing is awaited between the answer and the store.
        updates = answer if isinstance(answer, list) else [answer]
        offset = _next_offset(updates)
        if updates:
            await self._take(updates, None if offset is None else Mark(scope, str(offset)))
        if offset is not None:
            self._offset = offset
        elif updates:
            raise ApiError(Trouble.UNKNOWN, "no update has an id")
        self._received(self.me)
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
        """Store what updates mean; nothing is awaited before. Raises NotAccepted."""
        assert self.me is not None, "nothing is received before"
        batch = [self._pastes.joined(item) for update in updates for item in self._read(update, self.me)]
        try:
            await self._sink.accept(batch, mark)
        except NotAccepted:
            raise
        except Exception as error:
            log.exception("telegram: unexpected error of the store")
            raise NotAccepted(type(error).__name__) from error
        for item in batch:
            if isinstance(item, InboundMessage) and item.kind is InboundKind.BUTTON:
                task = asyncio.create_task(self._acknowledge(item.respond), name="telegram-click")
                self._clicks.add(task)
                task.add_done_callback(self._clicks.discard)

    async def _acknowledge(self, query_id: str) -> None:
        """A button ceases to show that it works. One that was pressed before a restart may be too old for it."""
        try:
            arguments = {"callback_query_id": query_id}
            await self._api.call("answerCallbackQuery", arguments, self._settings.request_timeout)
        except ApiError as error:
            log.info("telegram: a click could not be acknowledged: %s", error.reason)

    async def _show_commands(self, me: Me) -> None:
        """Set the menu of commands."""
        menu = [{"command": one.name, "description": one.help[:256]} for one in self._sink.commands()]
        arguments, seconds = {"commands": menu}, self._settings.request_timeout
        await renew_menu(
            self._sink, self._name, me.id, menu, partial(self._api.call, "setMyCommands", arguments, seconds)
        )

    def _read(self, update: object, me: Me) -> list[Incoming]:
        try:
            return read_update(update, me, self._times.now())
        except Exception as error:
            return [unread(update, me, error)]

    def _received(self, me: Me) -> None:
        self._pauses.failures = 0
        self._heard = self._times.monotonic()
        if self._standing.receive(f"receiving as @{me.username}{'' if me.reads_groups else _PRIVACY}"):
            self._sink.can_send(self._name, me.id)

    async def _pause(self, error: ApiError) -> None:
        sentence = _SENTENCES.get(error.trouble, "Telegram cannot be used")
        match error.trouble:
            case Trouble.CONFLICT if "webhook" in error.reason:
                await self._remove_webhook()
                return
            case Trouble.TOKEN | Trouble.CONFLICT:
                seconds = min(5 * self._pauses.next(), self._settings.slow_retry)
            case Trouble.FLOOD:
                seconds = error.retry_after
            case _:
                seconds = self._pauses.next()
        await self._standing.wait(f"{sentence} ({error.reason})", seconds)

    async def _remove_webhook(self) -> None:
        """While a webhook is set nothing can be polled; what waits there is kept for us."""
        self._standing.fail(_WEBHOOK)
        try:
            await self._api.call("deleteWebhook", {"drop_pending_updates": False}, self._settings.request_timeout)
        except ApiError as error:
            log.warning("telegram: the webhook could not be removed: %s", error.reason)
        # Whoever has set it may set it again: no race with them.
        await self._times.sleep(self._pauses.next())


def _next_offset(updates: list[object]) -> int | None:
    """What confirms all of them; None when none has an id."""
    return max((number + 1 for number in map(update_id_of, updates) if number is not None), default=None)
