"""Receiving: the loop in which an account receives, its health, and functions that read payloads.

`Receiver` is the base of the receivers of all platforms. The functions read payloads into inbound events: each returns
a value of the right kind or raises `Unreadable`, and then the payload is kept raw.
"""

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from channels.base import Health, HealthState, Mark, NotAccepted, Sink, Times
from channels.failures import ApiError, Patience, Trouble
from channels.message import Attachment, InboundKind, InboundMessage, Incoming, Origin, UnreadEvent
from channels.utf16 import whole

_SENTENCES = {
    Trouble.NETWORK: "{} cannot be reached",
    Trouble.FAILED: "{} answers that something is wrong on its side",
    Trouble.UNKNOWN: "The connection to {} broke",
    Trouble.FLOOD: "{} asks to wait",
}
# How often an event whose handling fails is offered to the store.
_TRIES = 3
_MOST_FAILURES = 4096
# Seconds that pending acknowledgements may take when the receiver stops.
_GOODBYE = 3.0

_RAW_LIMIT = 16_384
_FAMILIES = ("image", "audio", "video")


class Receiver:
    """Receives for one account until it is cancelled; each platform derives its own and says what a step is.

    After each failure it pauses. The plain sentence for a failure is logged once until something is received again.
    """

    # The platform's own sentences for kinds of failures.
    sentences: ClassVar[Mapping[Trouble, str]] = {}
    # Failures that only the operator can mend, so that retries are rare.
    needs_operator: ClassVar[Sequence[Trouble]] = (Trouble.TOKEN,)
    # The bot's own id on the platform; empty until it is learned.
    account = ""

    def __init__(self, name: str, patience: Patience, times: Times) -> None:
        self._name = name
        self._patience = patience
        self._times = times
        self._pauses = patience.pauses()
        self._sink: Sink
        self._health = Health(HealthState.STARTING, times.now(), "Not started")
        self._last_sentence = ""
        # The acknowledgements under way, by `InboundMessage.respond`.
        self.acknowledging: dict[str, asyncio.Task[None]] = {}
        # How often the handling of an event failed, by event key.
        self._failures: Counter[str] = Counter()
        self._log = logging.getLogger(f"channels.{name}")

    async def run(self, sink: Sink) -> None:
        """Receive until cancelled. May be called once."""
        self._sink = sink
        self._health = Health(HealthState.STARTING, self._times.now(), f"Connecting to {self._name.title()}")
        while True:
            try:
                await self._step()
            except ApiError as error:
                await self._pause(error)
            except NotAccepted as error:
                sentence = f"Messages cannot be stored, so none are taken from {self._name.title()}: {error}"
                await self._wait(sentence, self._patience.retry_first)
            except Exception as error:
                self._log.exception("%s: unexpected error while receiving", self._name)
                await self._wait(f"Unexpected error: {type(error).__name__}", self._pauses.next())

    async def stop(self) -> None:
        """After `run` was cancelled: wait for pending acknowledgements."""
        if self.acknowledging:
            await asyncio.wait(self.acknowledging.values(), timeout=_GOODBYE)
        self._health = Health(HealthState.DOWN, self._times.now(), "Stopped")

    def health(self) -> Health:
        """The health of the account: READY only while events really arrive."""
        wrong = self._problem() if self.is_ready else ""
        return replace(self._health, state=HealthState.DOWN, detail=wrong) if wrong else self._health

    @property
    def is_ready(self) -> bool:
        """Whether the last step reported that it receives."""
        return self._health.state is HealthState.READY

    async def _step(self) -> None:
        """Poll once, or receive over one connection until it ends. Raises ApiError and NotAccepted."""
        raise NotImplementedError

    def _problem(self) -> str:
        """Why nothing is received although no step failed; empty when events arrive."""
        return ""

    def _received(self, sentence: str) -> None:
        """Note that events arrive; the sentence says how."""
        self._last_sentence = ""
        if not self.is_ready:
            self._log.info("%s: %s", self._name, sentence)
            self._health = Health(HealthState.READY, self._times.now(), sentence)
            self._sink.can_send(self._name, self.account)

    async def _accept(self, items: Sequence[Incoming], mark: Mark | None = None) -> None:
        """Store a batch, awaiting nothing before, and then acknowledge it. Raises NotAccepted for any failure.

        When the handling of a batch fails, its events are stored one by one, so that one event does not hold up the
        others.
        """
        try:
            await self._sink.accept(items, mark)
        except NotAccepted:
            raise
        except Exception as error:
            self._log.exception("%s: unexpected error of the store", self._name)
            if len(items) < 2:
                await self._store_unread(items, mark, error)
                return
            for item in items[:-1]:
                await self._accept([item])
            await self._accept(items[-1:], mark)
            return
        for item in items:
            if isinstance(item, InboundMessage) and item.respond:
                task = asyncio.create_task(self._acknowledge(item), name=f"{self._name}-acknowledge")
                self.acknowledging[item.respond] = task
                task.add_done_callback(partial(self.acknowledging.pop, item.respond))

    async def _store_unread(self, items: Sequence[Incoming], mark: Mark | None, error: Exception) -> None:
        """Store an event whose handling failed _TRIES times as unread. Before that, raises NotAccepted."""
        for item in items:
            key = item.event_key if isinstance(item, InboundMessage | UnreadEvent) else f"x:{digest_of(repr(item))}"
            if len(self._failures) > _MOST_FAILURES:
                self._failures.clear()
            self._failures[key] += 1
            if self._failures[key] >= _TRIES and not isinstance(item, UnreadEvent):
                aside = UnreadEvent(
                    channel=self._name, account=self.account, event_key=key, raw=repr(item), error=repr(error)
                )
                with suppress(Exception):  # else it is no fault of this event
                    await self._sink.accept([aside], mark)
                    del self._failures[key]
                    self._log.error("%s: event %s failed %d times and is kept aside", self._name, key, _TRIES)
                    return
        raise NotAccepted(type(error).__name__) from error

    async def _acknowledge(self, message: InboundMessage) -> None:
        """Tell the platform that a command or a click was received, if it waits for that."""

    async def _renew_menu(self, menu: Sequence[object], list_them: Callable[[], Awaitable[object]]) -> None:
        """List the commands on the platform, unless the store remembers that this was done for the same commands.

        list_them: makes the call. Never fails, because the bot works without the menu.
        """
        mark = Mark(f"{self._name}:{self.account}:commands", digest_of(repr(menu)) if menu else "")
        try:
            if (await self._sink.mark(mark.scope) or "") != mark.value:
                await list_them()
                await self._sink.accept([], mark)
        except Exception as error:  # the next start tries again
            self._log.warning("%s: the commands could not be listed: %s", self._name, error)

    def _sentence(self, error: ApiError) -> str:
        """The plain sentence for a failure."""
        known = _SENTENCES | {**self.sentences}
        return known.get(error.trouble, "{} cannot be used").format(self._name.title())

    async def _pause(self, error: ApiError) -> None:
        seconds = self._pauses.next()
        if error.trouble in self.needs_operator:
            seconds = min(5 * seconds, self._patience.slow_retry)
        await self._wait(f"{self._sentence(error)} ({error.reason})", error.retry_after or seconds)

    async def _wait(self, sentence: str, seconds: float, level: int = logging.WARNING) -> None:
        """Set the health to DOWN with this sentence, and wait. level: of the log record."""
        if sentence != self._last_sentence:
            self._last_sentence = sentence
            self._log.log(level, "%s: %s", self._name, sentence)
        since = self._health.since if self._health.state is HealthState.DOWN else self._times.now()
        self._health = Health(HealthState.DOWN, since, sentence)
        await self._times.sleep(seconds)


class Unreadable(ValueError):
    """A payload is not as the platform documents it; the text says what is wrong."""


def an_object(value: object, name: str) -> dict[str, Any]:
    """Return a value that must be an object. Raises Unreadable."""
    if not isinstance(value, dict):
        raise Unreadable(f"{name} is no object")
    return value


def objects(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The list of objects in a field; empty when the field is missing. Raises Unreadable."""
    value = fields.get(name) or []
    if not isinstance(value, list):
        raise Unreadable(f"{name} is no list")
    return [an_object(one, name) for one in value]


def string(fields: dict[str, Any], name: str) -> str:
    """The text in a field. Raises Unreadable."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise Unreadable(f"{name} is no text")
    return value


def file_of(ref: str, name: object, mime: str, size: object, kind: str = "", *, spoken: bool = False) -> Attachment:
    """A file that came with a message. size: in bytes. kind: if empty, of the MIME type. spoken: a voice message."""
    family = mime.partition("/")[0]
    kind = kind or ("audio" if spoken else family if family in _FAMILIES else "file")
    told = max(size, 0) if isinstance(size, int) else 0
    return Attachment(kind=kind, ref=ref, name=whole(str(name or "")), mime=mime, size=told, spoken=spoken)


def digest_of(text: str) -> str:
    """A hash of a text, as 16 hexadecimal digits."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def edit_key(chat: str, message_id: str, stamp: object, text: str) -> str:
    """The event key of an edit; two edits at the same time (stamp) to the same text are the same edit."""
    return f"e:{chat}:{message_id}:{stamp}:{digest_of(text)}"


def interaction(
    kind: InboundKind, number: str, origin: Origin, text: str, sent_at: int, respond: str, reply_to: str = ""
) -> InboundMessage:
    """A command, or a click on a button of the message `reply_to`.

    number: the platform's id of the event. The other parameters are fields of `InboundMessage`.
    """
    key, text = f"{'c' if kind is InboundKind.COMMAND else 'b'}:{number}", whole(text)
    return InboundMessage(
        origin=origin, event_key=key, kind=kind, text=text, sent_at=sent_at, respond=respond, reply_to=reply_to
    )


def deletion(origin: Origin, sent_at: int) -> InboundMessage:
    """The event that a message was deleted. origin: of the message."""
    key = f"d:{origin.place.chat}:{origin.message_id}"
    return InboundMessage(origin=origin, event_key=key, kind=InboundKind.DELETE, text="", sent_at=sent_at)


def unread_of(channel: str, account: str, payload: object, error: Exception, number: object = None) -> UnreadEvent:
    """Keep a payload that could not be read. number: the platform's id of the event, None when it has none."""
    raw = json.dumps(payload)
    key, wrong = f"u:{digest_of(raw) if number is None else number}", f"{type(error).__name__}: {error}"
    return UnreadEvent(channel=channel, account=account, event_key=key, raw=raw[:_RAW_LIMIT], error=wrong)
