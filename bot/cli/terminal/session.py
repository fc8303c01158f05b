"""The terminal of `hark run` and `hark chat`: types lines, shows answers, ends runs with Esc or Ctrl-C.

A client like any other: it talks to the service over its socket, also when both are one process. Where stdin or
stdout is no terminal, `plain` does the same without a screen.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from bot.cli.terminal import plain, slash
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.cli.terminal.conversation import Conversation, ShownPosition
from bot.cli.terminal.view import Piece, Tone

# Said when the service ends while something may still run.
FINISHING = "finishing …"


def is_terminal() -> bool:
    """Whether there is a screen to draw on and a keyboard."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


async def talk(socket: Path, leaving: str = "Ctrl-D leaves", stopping: asyncio.Event | None = None) -> bool:
    """Talk to the service behind `socket` until the person leaves. leaving: how, in words.

    stopping: set when the service ends; the terminal stays, for what it still says.
    Returns whether the person wants to be done with all of it (Ctrl-C, /quit), not with this terminal only (Ctrl-D).
    Raises Rejected when the service wants no terminal; without a screen also Unreachable.
    """
    async with aclosing(Client(socket)) as client:
        conversation = Conversation(client, ShownPosition(socket.parent / "shown"))
        if is_terminal():
            history = socket.parent / "history"
            return await Terminal(client, conversation, history, leaving, stopping or asyncio.Event()).run()
        await plain.talk(conversation, plain.read_lines(), sys.stdout)
        return False


class Terminal:
    """A terminal with a screen. history: the file of what was typed. stopping: set when the service ends."""

    def __init__(
        self, client: Client, conversation: Conversation, history: Path, leaving: str, stopping: asyncio.Event
    ) -> None:
        # Only a screen needs them; pipes start faster without.
        from bot.cli.terminal.prompt import Prompt
        from bot.cli.terminal.screen import Screen

        self._client = client
        self._conversation = conversation
        self._leaving = leaving
        self._stopping = stopping
        self._view = conversation.view
        self._screen = Screen()
        self._prompt = Prompt(history, self._live, self._stop, self._words)
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> bool:
        """Talk until the person leaves; returns as `talk`. Raises Rejected when the service wants no terminal."""
        from prompt_toolkit.patch_stdout import patch_stdout

        done = False
        conversation = self._conversation
        with patch_stdout(raw=True), self._prompt.keyboard():
            self._print(await self._greeting())
            try:
                async with asyncio.TaskGroup() as self._tasks:
                    shown = conversation.listen(self._print), conversation.watch(self._print)
                    beside = [self._tasks.create_task(task) for task in (*shown, self._say_stopping())]
                    done = await self._read()
                    for task in beside:
                        task.cancel()
            except* Rejected as refused:
                raise refused.exceptions[0] from None
            finally:
                self._print(self._view.leave())
        return done

    def _stop(self) -> None:
        """Esc, or Ctrl-C on an empty line: end what runs, or what is about to."""
        target = self._view.running or self._conversation.last_said
        if target and self._tasks is not None:
            self._tasks.create_task(self._abort(target), name="terminal-abort")

    def _words(self) -> list[str]:
        """What Tab completes: commands, and those that decide with the ids that wait."""
        asked = reversed(self._view.asked)
        return [*slash.words(), *(f"/{name} {one} " for one in asked for name in ("approve", "answer"))]

    async def _say_stopping(self) -> None:
        await self._stopping.wait()
        self._conversation.quiet = True
        self._print([Piece(Tone.ASIDE, FINISHING)])

    async def _read(self) -> bool:
        """Read lines and send them; returns what `talk` returns."""
        unsent = doubtful = ""
        while True:
            try:
                text = await self._prompt.read(unsent)
            except KeyboardInterrupt:
                return True
            if text is None:
                return False
            unsent = ""
            if not text.strip():
                continue
            if text.strip().lower() in slash.LEAVE:
                return True
            self._print([Piece(Tone.ASKED, text)])
            nearest = slash.nearest(text)
            if nearest and text != doubtful:
                self._print([Piece(Tone.ASIDE, f"Unknown command; nearest is {nearest}. Enter says it as it is.")])
                doubtful = unsent = text
                continue
            try:
                await self._conversation.say(text)
            except (Rejected, Unreachable) as error:
                reason = str(error) if isinstance(error, Rejected) else "The service is not there."
                self._print([Piece(Tone.ASIDE, f"Not sent. {reason}")])
                unsent = text

    async def _abort(self, run_id: str) -> None:
        self._view.aborting = run_id
        waiting = run_id != self._view.running
        if await self._conversation.abort(run_id) and waiting:
            self._print([Piece(Tone.ASIDE, "Dropped.")])

    def _print(self, pieces: Sequence[Piece]) -> None:
        if pieces:
            width = self._prompt.width
            self._prompt.print("".join(self._screen.piece(piece, width) for piece in pieces))
        self._prompt.refresh()

    def _live(self, width: int, height: int) -> str:
        if live := self._view.live:
            return self._screen.live(live, width, height, time.time_ns() // 1_000_000)
        return self._screen.status(self._view.status, width)

    async def _greeting(self) -> list[Piece]:
        try:
            model = (await self._client.status()).model
        except (Rejected, Unreachable):
            return []
        return [Piece(Tone.ASIDE, f"{model} answers. /help shows what you can type; {self._leaving}.")]
