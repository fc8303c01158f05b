"""The conversation of this machine's terminals, as one of them has it: reads events, says things, waits for answers.

It reads the events of its session from the position on up to which they were shown, connects again by itself when the
service goes away, and turns what it hears into pieces. Each is noted as shown once it is printed, and only then is more
read; a terminal with a screen and one without differ in how they print alone.
"""

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from agent.events import AgentEnd, AgentEvent, AgentStart
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.cli.terminal.view import Piece, Tone, View
from bot.gateway.views import ChannelView
from channels.session_key import console_key

# Always of the same length, so that one write replaces the last one completely.
_ROW = "%018d\n"


class ShownPosition:
    """The position of the last event that a terminal of this machine has shown, in a small file that they share.

    When the file cannot be written, or two terminals write at the same instant, the next terminal repeats something;
    nothing else is lost, so there is no lock.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> int:
        """Return the position; 0 where none is stored."""
        try:
            return int(self._file.read_bytes().split()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def note(self, position: int, *, anew: bool = False) -> None:
        """Store the position, unless another terminal has shown more. anew: in any case (the store is another)."""
        if not anew and position <= self.read():
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(self._file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, (_ROW % position).encode(), 0)
            finally:
                os.close(descriptor)


# Seconds between tries to connect.
_RETRY = 0.5
# Seconds between looks at the platforms.
_LOOK = 2.0
# What `/readyz` lists besides platforms.
_OURS = ("console", "store")
_REMEMBERED = 256


# Prints pieces for good; none when only what is live has changed.
Show = Callable[[Sequence[Piece]], None]


class Conversation:
    """The conversation as one terminal has it. shown: the position up to which terminals have shown it."""

    def __init__(self, client: Client, shown: ShownPosition) -> None:
        self._client = client
        self._shown = shown
        self._session = str(console_key())
        self._unsent: tuple[str, str] | None = None
        self._typed: deque[str] = deque(maxlen=_REMEMBERED)
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)
        self._parked: set[str] = set()
        self._position: int | None = None
        self._noted = 0
        self._lost = False
        self._progress = asyncio.Condition()
        # What there is to show.
        self.view = View(time.time_ns() // 1_000_000)
        # The run of the last message from this terminal, until it has ended.
        self.last_said: str | None = None
        # The service ends, so nothing about connections is shown any more.
        self.quiet = False

    async def listen(self, show: Show) -> None:
        """Show all events until cancelled. Raises Rejected when the service wants no terminal."""
        while True:
            found = False
            try:
                if self._position is None:
                    show(await self._begin())
                async with self._client.events(self._session, self._position) as stream:
                    found = True
                    self.view.reconnected()
                    show(self._aside("The service is back.") if self._lost else ())
                    self._lost = False
                    async for heard in stream:
                        show(self._pieces(*heard))
                        await self._printed()
            except (Unreachable, Rejected) as error:
                first = self._position is None and not self._lost
                if isinstance(error, Rejected) and (first or error.status < 500):
                    raise  # later on it may be starting again
                if not (found or self._lost):
                    self._lost = True
                    show(self._aside("The service is not there; waiting for it."))
                    await self._printed()
            await asyncio.sleep(_RETRY)

    async def watch(self, show: Show) -> None:
        """Show how the platforms stand, at first and when it changes, until cancelled."""
        told: dict[str, ChannelView] = {}
        while True:
            with contextlib.suppress(Unreachable, Rejected):
                for name, channel in (await self._client.readiness()).channels.items():
                    before, told[name] = told.get(name), channel
                    news = before is None or (before.state, before.detail) != (channel.state, channel.detail)
                    if news and name not in _OURS and channel.state != "starting":
                        show(self._aside(_spoken(name.capitalize(), channel)))
            await asyncio.sleep(_LOOK)

    async def say(self, text: str) -> str:
        """Send a message; returns its run's id. Raises Unreachable or Rejected: then say the same text again,
        and it is taken once, whatever became of the first try."""
        if self._unsent is None or self._unsent[0] != text:
            self._unsent = (text, uuid4().hex)
            self._typed.append(text)  # shown by who says it
        run_id = await self._client.submit(text, self._session, self._unsent[1], typed=True)
        self._unsent = None
        if run_id not in self._ended:
            self.last_said = run_id
        return run_id

    async def answered(self, run_id: str, *, or_asks: bool = False) -> bool:
        """Whether the end of a run has been printed, once it has. or_asks: or that it waits for a person: then False.
        Raises Unreachable when the service goes away first."""
        async with self._progress:
            await self._progress.wait_for(
                lambda: self._lost or run_id in self._ended or (or_asks and run_id in self._parked)
            )
        if self._lost and run_id not in self._ended:
            raise Unreachable("the service has gone away")
        return run_id in self._ended

    async def abort(self, run_id: str) -> bool:
        """End a run; False when it had ended or the service is not there."""
        try:
            await self._client.abort(run_id)
        except (Unreachable, Rejected):
            return False
        return True

    async def _begin(self) -> Sequence[Piece]:
        """Find the position to read on from; returns what was said last before it."""
        position = self._shown.read()
        begin = await self._client.console(position)
        if begin.position != position:
            self._shown.note(begin.position, anew=True)
        self._position = begin.position
        return self.view.last(begin.last) if begin.last else ()

    def _pieces(self, position: int | None, event: AgentEvent) -> Sequence[Piece]:
        self._position = position or self._position
        if isinstance(event, AgentStart) and event.message in self._typed:
            self._typed.remove(event.message)
            event = replace(event, message="")
        if isinstance(event, AgentStart | AgentEnd):
            self._parked.discard(event.run.run_id)
        if isinstance(event, AgentEnd) and not event.is_last:
            self._parked.add(event.run.run_id)
        if isinstance(event, AgentEnd) and event.is_last:
            self._ended.append(event.run.run_id)
            if event.run.run_id == self.last_said:
                self.last_said = None
        return self.view.event(event)

    async def _printed(self) -> None:
        """Store how far was shown, and wake whoever waits for the end of a run."""
        if self._position and self._position != self._noted:
            self._noted = self._position
            self._shown.note(self._position)
        async with self._progress:
            self._progress.notify_all()

    def _aside(self, text: str) -> Sequence[Piece]:
        return () if self.quiet else (Piece(Tone.ASIDE, text),)


def _spoken(name: str, channel: ChannelView) -> str:
    detail = channel.detail or ("receiving" if channel.state == "ready" else channel.state)
    return detail if detail.startswith(name) else f"{name}: {detail}"
