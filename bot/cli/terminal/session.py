"""The terminal of `hark run` and `hark chat`: types lines, shows answers, ends runs with Ctrl-C.

A client like any other: it talks to the service over its socket, also when both are one process. Where stdin or
stdout is no terminal, `plain` does the same without a screen.
"""

import asyncio
import os
import signal
import sys
import time
from enum import Enum
from pathlib import Path

from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.cli.terminal.conversation import Connection, Conversation, Heard
from bot.cli.terminal.plain import PlainTerminal
from bot.cli.terminal.standard_input import lines
from bot.cli.terminal.view import Piece, Tone, View
from channels.console.adapter import ConsoleBlock

_TICK = 0.5
"""Seconds between redraws while something runs: the clock on the screen moves."""


class Left(Enum):
    """How a person left the terminal."""

    END_OF_INPUT = "end of input"
    INTERRUPTED = "interrupted"


def is_terminal() -> bool:
    """Whether there is a screen to draw on and a keyboard."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


async def talk(socket: Path, leaving: str = "Ctrl-D leaves", *, own_process: bool = False) -> Left:
    """Talk to the service behind `socket` until the person leaves. leaving: how, in words.

    own_process: SIGINT is for this terminal, and cancels this task when it means to leave.
    Raises Rejected when the service wants no terminal; without a screen also Unreachable.
    """
    client = Client(socket)
    terminal: Terminal | PlainTerminal
    if is_terminal():
        terminal = Terminal(client, socket.parent / "history", leaving)
    else:
        terminal = PlainTerminal(client, lines(), sys.stdout)
    task = asyncio.current_task()
    assert task is not None
    if own_process:
        leave = task.cancel
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: terminal.interrupt() and leave())
    try:
        return (await terminal.run()) or Left.END_OF_INPUT
    finally:
        await client.close()


class Terminal:
    """One open terminal. history: the file of what was typed."""

    def __init__(self, client: Client, history: Path | None, leaving: str) -> None:
        # Only a screen needs them; pipes start faster without.
        from bot.cli.terminal.prompt import Prompt
        from bot.cli.terminal.screen import Screen, colours

        self._client = client
        self._conversation = Conversation(client)
        self._leaving = leaving
        self._view = View(_now())
        self._screen = Screen(colours())
        self._prompt = Prompt(history, self._live, self.interrupt)
        self._last_said: str | None = None
        self._pressed: str | None = None
        self._lost = False
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> Left:
        """Until the person leaves. Raises Rejected when the service wants no terminal."""
        from prompt_toolkit.patch_stdout import patch_stdout

        left = Left.END_OF_INPUT
        with patch_stdout(raw=True), self._prompt.keyboard():
            try:
                async with asyncio.TaskGroup() as self._tasks:
                    beside = [self._tasks.create_task(task) for task in (self._conversation.listen(), self._show())]
                    left = await self._read()
                    for task in beside:
                        task.cancel()
            except* Rejected as refused:
                raise _first(refused) from None
        return left

    def interrupt(self) -> bool:
        """Ctrl-C: ends what runs; True when it was pressed for that before, which leaves."""
        target = self._view.running or self._last_said or ""
        if self._pressed is not None and target in ("", self._pressed):
            return True
        self._pressed = target
        self._prompt.hint = "Ctrl-C again to leave"
        if target and self._tasks is not None:
            self._tasks.create_task(self._abort(target), name="terminal-abort")
        return False

    async def _read(self) -> Left:
        """Read lines and say them."""
        self._print(await self._greeting())
        unsent = ""
        while True:
            try:
                text = await self._prompt.read(unsent)
            except KeyboardInterrupt:
                return Left.INTERRUPTED
            if text is None:
                return Left.END_OF_INPUT
            self._pressed, self._prompt.hint, unsent = None, "", ""
            if not text.strip():
                continue
            self._prompt.print(self._screen.echo(text, self._prompt.width))
            try:
                self._last_said = await self._conversation.say(text)
            except (Rejected, Unreachable) as error:
                reason = str(error) if isinstance(error, Rejected) else "The service is not there."
                self._print([Piece(Tone.ASIDE, f"Not sent. {reason}")])
                unsent = text

    async def _show(self) -> None:
        """Show what is heard, a few things at once when there are many."""
        heard = self._conversation.heard
        while True:
            found: list[Heard] = []
            try:
                async with asyncio.timeout(_TICK if self._view.running else None):
                    found.append(await heard.get())
            except TimeoutError:
                pass
            while not heard.empty():
                found.append(heard.get_nowait())
            self._print([piece for item in found for piece in self._pieces(item)])
            self._prompt.refresh()

    def _pieces(self, item: Heard) -> list[Piece]:
        match item:
            case Connection.LOST:
                self._lost = True
                return [Piece(Tone.ASIDE, "The service is not there; waiting for it.")]
            case Connection.FOUND:
                self._view.reconnected()
                back, self._lost = self._lost, False
                return [Piece(Tone.ASIDE, "The service is back.")] if back else []
            case ConsoleBlock():
                return [*self._view.block(item)]
            case _:
                if item.type == "agent_end" and item.run.run_id == self._last_said:
                    self._last_said = None
                return [*self._view.event(item)]

    async def _abort(self, run_id: str) -> None:
        waiting = run_id != self._view.running
        if await self._conversation.abort(run_id) and waiting:
            self._print([Piece(Tone.ASIDE, "Dropped.")])

    def _print(self, pieces: list[Piece]) -> None:
        if pieces:
            width = self._prompt.width
            self._prompt.print("".join(self._screen.piece(piece, width) for piece in pieces))

    def _live(self, width: int, height: int) -> str:
        live = self._view.live
        return self._screen.live(live, width, height, _now()) if live else ""

    async def _greeting(self) -> list[Piece]:
        try:
            model = (await self._client.activity()).model
        except (Rejected, Unreachable):
            return []
        return [Piece(Tone.ASIDE, f"{model} answers. /help shows what you can type; {self._leaving}.")]


def _first(group: BaseExceptionGroup[Rejected]) -> Rejected:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _now() -> int:
    return time.time_ns() // 1_000_000
