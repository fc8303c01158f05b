"""How an account receives: step by step, for ever; what its health says, and its troubles, each said once."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

from channels.base import Health, HealthState, Mark, NotAccepted, Sink, Times
from channels.failures import ApiError, Patience, Trouble
from channels.fields import digest_of
from channels.message import InboundMessage, Incoming, UnreadEvent

_SENTENCES = {
    Trouble.NETWORK: "{} cannot be reached",
    Trouble.FAILED: "{} answers that something is wrong on its side",
    Trouble.UNKNOWN: "The connection to {} broke",
    Trouble.FLOOD: "{} asks to wait",
}
# How often an event is offered to the store whose handling fails.
_TRIES = 3
_MOST_FAILURES = 4096
# Seconds that acknowledgements under way may take at the end.
_GOODBYE = 3.0


class Receiver:
    """Of one account; a platform's own derives from it and says what a step is.

    Nothing ends it but its cancellation: each trouble has a plain sentence, said once until something is received
    again, and a pause. sentences: those of the platform alone. lasting: troubles that only people mend, so that it is
    asked rarely meanwhile. account: the bot's own id on the platform; empty until it is learned. acknowledging: by the
    handle under which it wants to be answered, what is just being acknowledged.
    """

    sentences: ClassVar[Mapping[Trouble, str]] = {}
    lasting: ClassVar[Sequence[Trouble]] = (Trouble.TOKEN,)
    account = ""

    def __init__(self, name: str, patience: Patience, times: Times) -> None:
        self._name = name
        self._patience = patience
        self._times = times
        self._pauses = patience.pauses()
        self._sink: Sink
        self._health = Health(HealthState.STARTING, times.now(), "Not started")
        self._said = ""
        self.acknowledging: dict[str, asyncio.Task[None]] = {}
        self._failures: Counter[str] = Counter()  # of events, by their keys
        self._log = logging.getLogger(f"channels.{name}")

    async def run(self, sink: Sink) -> None:
        """Receive until cancelled. Once only."""
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
        """After `run` was cancelled: nothing is received any more; what was taken is acknowledged."""
        if self.acknowledging:
            await asyncio.wait(self.acknowledging.values(), timeout=_GOODBYE)
        self._health = Health(HealthState.DOWN, self._times.now(), "Stopped")

    def health(self) -> Health:
        """READY only while events really arrive."""
        wrong = self._wrong() if self.is_ready else ""
        return replace(self._health, state=HealthState.DOWN, detail=wrong) if wrong else self._health

    @property
    def is_ready(self) -> bool:
        """Whether it receives, as far as it was told."""
        return self._health.state is HealthState.READY

    async def _step(self) -> None:
        """Receive what there is, or a connection until its end. Raises ApiError and NotAccepted."""
        raise NotImplementedError

    def _wrong(self) -> str:
        """Why it does not receive although it was not told so."""
        return ""

    def _received(self, sentence: str) -> None:
        """It receives; the sentence says how."""
        self._said = ""
        if not self.is_ready:
            self._log.info("%s: %s", self._name, sentence)
            self._health = Health(HealthState.READY, self._times.now(), sentence)
            self._sink.can_send(self._name, self.account)

    async def _accept(self, items: Sequence[Incoming], mark: Mark | None = None) -> None:
        """Store them, nothing is awaited before; then they may be acknowledged. Raises NotAccepted, for any reason.

        Of a batch whose handling fails, each is stored alone: it is one of them that holds up the others.
        """
        try:
            await self._sink.accept(items, mark)
        except NotAccepted:
            raise
        except Exception as error:
            self._log.exception("%s: unexpected error of the store", self._name)
            if len(items) < 2:
                await self._keep_aside(items, mark, error)
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

    async def _keep_aside(self, items: Sequence[Incoming], mark: Mark | None, error: Exception) -> None:
        """Keep the one event of a batch unread whose handling has failed so often; before that, raises NotAccepted."""
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
        """Tell the platform that a command or a click was taken, where it waits for that."""

    async def _renew_menu(self, menu: Sequence[object], list_them: Callable[[], Awaitable[object]]) -> None:
        """Call `list_them` unless it was done for these commands before, which the store remembers.

        Never fails: the bot works without.
        """
        mark = Mark(f"{self._name}:{self.account}:commands", digest_of(repr(menu)) if menu else "")
        try:
            if (await self._sink.mark(mark.scope) or "") != mark.value:
                await list_them()
                await self._sink.accept([], mark)
        except Exception as error:  # the next start tries again
            self._log.warning("%s: the commands could not be listed: %s", self._name, error)

    def _sentence(self, error: ApiError) -> str:
        """What a trouble is called."""
        known = _SENTENCES | {**self.sentences}
        return known.get(error.trouble, "{} cannot be used").format(self._name.title())

    async def _pause(self, error: ApiError) -> None:
        seconds = self._pauses.next()
        if error.trouble in self.lasting:
            seconds = min(5 * seconds, self._patience.slow_retry)
        await self._wait(f"{self._sentence(error)} ({error.reason})", error.retry_after or seconds)

    async def _wait(self, sentence: str, seconds: float, level: int = logging.WARNING) -> None:
        """It does not receive, for this reason, and waits. level: how loud that is said."""
        if sentence != self._said:
            self._said = sentence
            self._log.log(level, "%s: %s", self._name, sentence)
        since = self._health.since if self._health.state is HealthState.DOWN else self._times.now()
        self._health = Health(HealthState.DOWN, since, sentence)
        await self._times.sleep(seconds)
